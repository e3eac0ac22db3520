"""The Spectral Filtering Operator (SFO)."""

import inspect
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar, Literal, cast

from torch import Tensor, nn

from sfo.checks import check_at_least, check_choice, check_whole
from sfo.models.blocks import GLU, MLP, Activation, ChannelNorm, Lift, Update, fused, projection
from sfo.models.frames import Decoder, carry_frames, frames_of
from sfo.models.kernel import FactoredKernel, Mixing, SpectralKernel
from sfo.models.kernel_modes import (
    Boundary,
    Gain,
    Index,
    KernelModes,
    KernelOptions,
    Product,
    Support,
    Transfer,
    Transform,
)
from sfo.models.operator import LayeredOperator, split_components
from sfo.models.option_state import pack, unpack
from sfo.models.standardise import OutputSkip, Standardise
from sfo.registry import MODELS
from sfo.shapes import Field

CHOICES: dict[str, object] = dict(
    mixing=Mixing,
    update=Update,
    activation=Activation,
    norm=Literal["layer", None],
    lift_norm=Literal["group", None],
)
"""What the settings that are words may be."""
SIZES = ("n_dim", "hidden_channels", "n_layers", "decode", "out_fields")
OPTIONAL_SIZES = ("rank", "lift_kernel", "lift_channels", "projection_channels")


class SFOLayer(nn.Module):
    """v + update(kernel(norm(v))): norm, kernel, pointwise update, residual."""

    def __init__(
        self, norm: nn.Module, kernel: SpectralKernel | FactoredKernel, update: nn.Module
    ) -> None:
        super().__init__()
        self.norm, self.kernel, self.update = norm, kernel, update

    def forward(self, v: Field) -> Field:
        kernel, add_update = fused(self.kernel, self.update)
        return add_update(v, kernel(self.norm(v)))


@MODELS.register("sfo")
class SFO(LayeredOperator):
    """A neural operator whose kernels are mixtures of Hilbert-matrix eigenvectors.

        u = Q(layer_T(… layer_1(P(a, x))))        layer(v) = v + W₂ σ(W₁ K(N(v)))
        (K v)(xᵢ) = Σₗ Θₗ Σⱼ φₗ(xᵢ − xⱼ) v(xⱼ)

    It maps a field `(batch, in_channels, *grid)` to one `(batch, out_channels, *grid)` on any
    grid of `n_dim` axes. The first grid that it meets in training mode is its training grid (or
    set `train_shape`); on others the modes are adapted by `transfer`.

    The defaults are the paper's. `SFO.from_paper("allen_cahn")` gives its presets,
    `SFO.recommended(…)` our own best settings.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes M.
        n_modes: Modes of the basis along each axis, L.
        hidden_channels: Latent channels d.
        n_layers: Number of layers T.
        mixing: `"dense"`: a d × d matrix Θₗ per mode, as in the paper; `"factored"`:
            Θₗ = A diag(θₗ) B, see `FactoredKernel`.
        rank: Channels r that a factored kernel convolves; None: d.
        basis: Name of the basis: usb, usb_dense, hankel, fourier, chebyshev, random, given.
        index, boundary, support, product, transfer, gain, low_modes: See `KernelOptions`.
        transform: How the kernels transform fields, `"fft"` or `"matmul"`, see `KernelOptions`.
        theta_scale: Θ, or θ, starts at this multiple of its usual size.
        skip: Add a learned pointwise linear path beside the kernel.
        gate: Let the kernel depend on the input: the field that enters the convolution is
            multiplied by 2 σ(G v + b).
        update: `"mlp"`: W₂ σ(W₁ ·), or `"glu"`: σ(W_g ·) ⊙ (W_v ·).
        activation: The activation σ of the update: gelu, relu, silu or sigmoid.
        mlp_ratio: Hidden width of the MLP over d; None: 1 on one axis, 2 on more.
        norm: N, `"layer"` over the channels, or None.
        lift_kernel: Points that the lift sees along each axis; None: 5 on two and three axes,
            else 1.
        lift_norm: `"group"` normalises the lifted field over all points, or None.
        lift_channels: Width of a hidden layer at the end of P, see `Lift`; None: P is linear.
        projection_channels: Width of a hidden layer in Q; None: Q is linear.
        decode: Split the frames of the output into this many shares, each read off a later
            layer, see `Decoder`; 1: all from the last layer.
        output_skip: Add a learned linear path from the input to the output, u = Q(v) + S a.
        coordinates: Append the coordinates to the input.
        standardise: Shift and scale each input channel, and scale each output field, by
            constants that `standardise_by` sets from training data, until then by 0 and 1; and
            the coordinates to mean 0 and deviation 1.
        components: Components of a vector field that share the network, see `Operator`.
        out_fields: Fields of the output, whose frames lie side by side in its channels; `decode`
            splits the frames of each.
        carried: For each output field the input channel that holds its first frame, or None:
            with `output_skip`, u starts as that frame at all times instead of 0.
        train_shape: The training grid, where it is known beforehand.

    Example:
        >>> import torch
        >>> model = SFO(in_channels=1, out_channels=101, n_modes=16)
        >>> model(torch.randn(8, 1, 256)).shape
        torch.Size([8, 101, 256])
        >>> sum(p.numel() for p in model.parameters())
        302821
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        "allen_cahn": dict(n_modes=16),
        "diffusion_sorption": dict(hidden_channels=32),
        "maxwell": dict(hidden_channels=32, components=6),
    }

    RECOMMENDED: ClassVar[dict[str, dict[str, Any]]] = {"maxwell": dict(components=6, linear=True)}
    recommended_revision: ClassVar[dict[str, int]] = {"all": 2, "maxwell": 3}
    must_say_options = True

    RECOMMENDED_0_3: ClassVar[dict[str, dict[str, Any]]] = {
        "all": dict(
            support="two_sided",
            gain="unit",
            theta_scale=0.25,
            skip=True,
            norm=None,
            lift_norm=None,
            lift_channels=128,
            projection_channels=128,
            coordinates=False,
            transfer="restrict",
        ),
        "diffusion_sorption": dict(coordinates=True),
        "shallow_water": dict(coordinates=True),
        "maxwell": dict(
            PAPER["maxwell"], coordinates=True, lift_channels=64, projection_channels=64
        ),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        n_modes: int = 20,
        hidden_channels: int = 64,
        n_layers: int = 4,
        mixing: Mixing = "dense",
        rank: int | None = None,
        basis: str = "usb",
        index: Index = "tied",
        boundary: Boundary = "circular",
        support: Support = "one_sided",
        product: Product = "convolution",
        transfer: Transfer = "rebuild",
        gain: Gain = "paper",
        low_modes: int | None = None,
        transform: Transform = "fft",
        theta_scale: float = 1.0,
        skip: bool = False,
        gate: bool = False,
        update: Update = "mlp",
        activation: Activation = "gelu",
        mlp_ratio: float | None = None,
        norm: Literal["layer"] | None = "layer",
        lift_kernel: int | None = None,
        lift_norm: Literal["group"] | None = "group",
        lift_channels: int | None = None,
        projection_channels: int | None = None,
        decode: int = 1,
        output_skip: bool = False,
        coordinates: bool = True,
        standardise: bool = False,
        components: int = 1,
        out_fields: int = 1,
        carried: Sequence[int | None] | None = None,
        train_shape: Sequence[int] | None = None,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        for name, choices in CHOICES.items():
            check_choice(name, arguments[name], choices)
        check_whole(1, **{name: arguments[name] for name in SIZES})
        check_whole(1, **{k: arguments[k] for k in OPTIONAL_SIZES if arguments[k] is not None})
        check_at_least(0, mlp_ratio=mlp_ratio)
        if rank is not None and mixing == "dense":
            raise ValueError(f'`rank` needs `mixing="factored"`, got rank={rank} with "dense".')
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        if mlp_ratio is None:
            mlp_ratio = 1 if n_dim == 1 else 2
        if lift_kernel is None:
            lift_kernel = 5 if n_dim in (2, 3) else 1
        hidden = max(1, round(mlp_ratio * hidden_channels))
        options = {option.name: arguments[option.name] for option in fields(KernelOptions)}
        modes = KernelModes(KernelOptions(**options), train_shape)

        def make_norm() -> nn.Module:
            return ChannelNorm(hidden_channels) if norm == "layer" else nn.Identity()

        def make_kernel() -> SpectralKernel | FactoredKernel:
            if mixing == "dense":
                return SpectralKernel(hidden_channels, modes, theta_scale, skip=skip, gate=gate)
            # Its A holds W₁ of an MLP that follows.
            width = hidden if update == "mlp" else None
            paths: dict[str, bool] = dict(skip=skip, gate=gate)
            return FactoredKernel(
                hidden_channels, modes, theta_scale, out_channels=width, rank=rank, **paths
            )

        def make_update() -> nn.Module:
            if update == "glu":
                return GLU(hidden_channels, activation)
            return MLP(hidden_channels, hidden, activation, merged=mixing == "factored")

        n_fields, frames = frames_of(out_channels, out_fields, components)

        def make_projection() -> nn.Module:
            if decode == 1:
                return projection(hidden_channels, projection_channels, channels_out)
            return Decoder(
                hidden_channels,
                frames=frames,
                fields=n_fields,
                shares=decode,
                n_layers=n_layers,
                projection_channels=projection_channels,
            )

        super().__init__(
            in_channels,
            out_channels,
            n_dim,
            lift=Lift(
                channels_in,
                hidden_channels,
                n_dim,
                kernel=lift_kernel,
                coordinates=coordinates,
                standard=standardise,
                norm=lift_norm,
                mlp_channels=lift_channels,
            ),
            layers=[SFOLayer(make_norm(), make_kernel(), make_update()) for _ in range(n_layers)],
            project=make_projection(),
            components=components,
        )
        self.modes, self.given = modes, modes.given
        self.skip: OutputSkip | None = None
        if output_skip:
            self.skip = OutputSkip(channels_in, channels_out)
            carry_frames(self.skip.weight, in_channels, carried, n_fields, frames)
        self.fields = n_fields
        self.standardise = Standardise(channels_in, n_fields) if standardise else None
        self.arguments = {**arguments, "train_shape": modes.train_shape}

    def operate(self, a: Field) -> Field:
        v = self.lift(a if self.standardise is None else self.standardise(a))
        if isinstance(self.project, Decoder):
            shares: list[Tensor] = []
            for number, layer in enumerate(self.layers, start=1):
                v = layer(v)
                shares += self.project.read(number, v)
            u = self.project.join(shares)
        else:
            for layer in self.layers:
                v = layer(v)
            u = self.project(v)
        if self.standardise is not None:
            u = self.standardise.scaled(u)
        return u if self.skip is None else u + self.skip(a)

    def standardise_by(
        self,
        mean: Tensor,
        deviation: Tensor,
        scale: Tensor,
        weight: Tensor | None = None,
        offset: Tensor | None = None,
        unit: Tensor | None = None,
    ) -> None:
        """Set, for one of the `components`, sizes of the data and a guess u ≈ offset + weight · a.

        Args:
            mean, deviation: Those of each input channel over training samples and points.
            scale: The size of what the guess leaves of each output field.
            weight: Where `output_skip` starts, `(out, in)`; None: as it is.
            offset: What is added to each output channel, see `Standardise`.
            unit: The size of one unit of `output_skip`'s weights, see `OutputSkip`.
        """
        if self.skip is not None and weight is not None:
            self.skip.set(weight, unit)
        if self.standardise is not None:
            self.standardise.set(mean, deviation, scale, offset)

    @classmethod
    def recommended(
        cls,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        periodic: bool = True,
        shift_invariant: bool = True,
        linear: bool = False,
        **overrides: Any,
    ) -> "SFO":
        """Our own settings: small models that learn fast.

        Factored two-sided kernels that depend on the input unless the equations are linear, with a
        pointwise path beside them; a linear path from the input to the output; inputs and outputs
        brought to the size of 1 (`standardise_by`); on one and two axes, two shares of the frames,
        read off the last two layers. On other grids than the trained one the kernel stays what it
        was. Where the domain has ends, coordinates are appended, and on one and two axes the walls
        reflect by learned weights; without coordinates the model commutes with shifts, as most
        periodic problems do. docs/design.md has the measurements behind each choice.

        Train it with Muon (`optimizer="muon"`, learning rate 1e-2, one cycle, gradients clipped at
        1) and small batches.

        Args:
            in_channels: Channels of the input field a.
            out_channels: Channels of the solution field u.
            n_dim: Number of axes.
            periodic: Whether the domain is periodic along all axes.
            shift_invariant: Whether a periodic problem is the same at every place. With a forcing
                that is not an input it is not: coordinates are appended.
            linear: Whether the equations are linear; the kernels then do not depend on the input.
            overrides: Arguments of the constructor to set otherwise.

        Example:
            >>> import torch
            >>> model = SFO.recommended(in_channels=1, out_channels=20, n_dim=2, n_modes=12)
            >>> model(torch.randn(1, 1, 32, 32)).shape
            torch.Size([1, 20, 32, 32])
        """
        width = overrides.get("hidden_channels", 32)
        settings: dict[str, Any] = dict(
            mixing="factored",
            support="two_sided",
            gain="unit",
            theta_scale=0.25,
            transfer="restrict",
            skip=True,
            gate=not linear,
            norm=None,
            lift_norm=None,
            lift_kernel=1,
            hidden_channels=width,
            mlp_ratio=2,
            output_skip=True,
            standardise=True,
            coordinates=not (periodic and shift_invariant),
        )
        frames = out_channels // overrides.get("out_fields", 1)
        decode = min(2, frames, overrides.get("n_layers", 3))
        walls: dict[str, Any] = {} if periodic else dict(index="separable", boundary="learned")
        if n_dim == 1:
            settings |= dict(lift_channels=2 * width, projection_channels=2 * width)
            settings |= walls or dict(decode=decode)
        elif n_dim == 2:
            settings |= dict(index="separable", rank=2 * width, n_modes=30, n_layers=3)
            settings |= dict(decode=decode, activation="relu") | walls
        else:
            settings |= dict(index="multi", n_modes=8, activation="relu")
        if overrides.get("train_shape") is not None:
            settings = cls.on_grid(settings, overrides["train_shape"])
        return cls(in_channels, out_channels, n_dim, **{**settings, **overrides})

    @classmethod
    def on_grid(cls, settings: dict[str, Any], shape: Sequence[int]) -> dict[str, Any]:
        """No more modes than points, as the paper does on coarse grids."""
        default = inspect.signature(cls).parameters["n_modes"].default
        return {**settings, "n_modes": min(settings.get("n_modes", default), *shape)}

    @property
    def kernels(self) -> list[SpectralKernel | FactoredKernel]:
        """The kernel of each layer."""
        return [cast(SFOLayer, layer).kernel for layer in self.layers]

    def options(self) -> dict[str, Any]:
        options = self.modes.options.fixed_options() | {"activation": self.arguments["activation"]}
        return options | ({"out_fields": self.fields} if isinstance(self.project, Decoder) else {})

    def get_extra_state(self) -> Tensor:
        """The training grid too: on others the modes are scaled from it."""
        return pack(dict(version=1, train_shape=self.modes.train_shape, options=self.options()))

    def set_extra_state(self, state: Tensor) -> None:
        shape = unpack(state).get("train_shape")
        self.modes.train_shape = shape and tuple(shape)
