"""The Spectral Filtering Operator (SFO)."""

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from sfo.models.blocks import GLU, MLP, ChannelNorm, Lift, Pointwise, Update, two_layers
from sfo.models.kernel import (
    Boundary,
    Gain,
    Index,
    KernelModes,
    Product,
    SpectralKernel,
    Support,
    Transfer,
    check_choice,
)
from sfo.models.operator import LayeredOperator, split_components
from sfo.registry import MODELS
from sfo.shapes import Field


class SFOLayer(nn.Module):
    """v + update(K(N(v))): norm, kernel, pointwise update, residual."""

    def __init__(self, norm: nn.Module, kernel: SpectralKernel, update: nn.Module) -> None:
        super().__init__()
        self.norm, self.kernel, self.update = norm, kernel, update

    def forward(self, v: Field) -> Field:
        return v + self.update(self.norm(v), self.kernel)


@MODELS.register("sfo")
class SFO(LayeredOperator):
    """A neural operator whose kernels are mixtures of Hilbert-matrix eigenvectors.

        u = Q(layer_T(… layer_1(P(a, x))))        layer(v) = v + W₂ σ(W₁ K(N(v)))
        (K v)(xᵢ) = Σₗ Θₗ Σⱼ φₗ(xᵢ − xⱼ) v(xⱼ)

    It maps a field `(batch, in_channels, *grid)` to one `(batch, out_channels, *grid)` on any
    grid of `n_dim` axes. The first grid that it meets is taken for its training grid (or set
    `train_shape`); on others the modes are adapted by `transfer`.

    The defaults are the paper's. `SFO.from_paper("allen_cahn")` gives its presets,
    `SFO.recommended(…)` our own best settings.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes M.
        n_modes: Modes along an axis, L.
        hidden_channels: Latent channels d.
        n_layers: Number of layers T.
        basis: Name of the basis: usb, usb_dense, hankel, fourier, chebyshev, random.
        index, boundary, support, product, transfer, gain: See `KernelModes`.
        theta_scale: Θ starts at this multiple of its usual size.
        skip: Add a learned pointwise linear path beside the kernel.
        update: `"mlp"`: W₂ σ(W₁ ·), or `"glu"`: σ(W_g ·) ⊙ (W_v ·).
        mlp_ratio: Hidden width of the MLP over d; None: 1 on one axis, 2 on more.
        norm: N, `"layer"` over the channels, or None.
        lift_kernel: Points that the lift sees along an axis; None: 5 on two and three axes,
            else 1.
        lift_norm: `"group"` normalises the lifted field over all points, or None.
        lift_channels: Width of a hidden layer at the end of P, see `Lift`; None: P is linear.
        projection_channels: Width of a hidden layer in Q; None: Q is linear.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.
        train_shape: The training grid, where it is known beforehand.

    Example:
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

    RECOMMENDED: ClassVar[dict[str, dict[str, Any]]] = {
        # Walls and inlets make places differ.
        "diffusion_sorption": dict(coordinates=True),
        "shallow_water": dict(coordinates=True),
        "maxwell": dict(coordinates=True, hidden_channels=32, components=6),
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
        basis: str = "usb",
        index: Index = "tied",
        boundary: Boundary = "circular",
        support: Support = "one_sided",
        product: Product = "convolution",
        transfer: Transfer = "rebuild",
        gain: Gain = "paper",
        theta_scale: float = 1.0,
        skip: bool = False,
        update: Update = "mlp",
        mlp_ratio: float | None = None,
        norm: Literal["layer"] | None = "layer",
        lift_kernel: int | None = None,
        lift_norm: Literal["group"] | None = "group",
        lift_channels: int | None = None,
        projection_channels: int | None = None,
        coordinates: bool = True,
        components: int = 1,
        train_shape: Sequence[int] | None = None,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("update", update, Update)
        check_choice("norm", norm, Literal["layer", None])
        check_choice("lift_norm", lift_norm, Literal["group", None])
        if hidden_channels < 1 or n_layers < 1:
            raise ValueError(
                "`hidden_channels` and `n_layers` must be at least 1, got "
                f"hidden_channels={hidden_channels}, n_layers={n_layers}."
            )
        for name in ("lift_channels", "projection_channels"):
            if arguments[name] is not None and arguments[name] < 1:
                raise ValueError(f"`{name}` must be at least 1 or None, got {arguments[name]}.")
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        if mlp_ratio is None:
            mlp_ratio = 1 if n_dim == 1 else 2
        if lift_kernel is None:
            lift_kernel = 5 if n_dim in (2, 3) else 1
        modes = KernelModes(
            n_modes,
            n_dim,
            basis=basis,
            index=index,
            boundary=boundary,
            support=support,
            product=product,
            transfer=transfer,
            gain=gain,
            pointwise=skip,
        )

        def layer() -> SFOLayer:
            return SFOLayer(
                norm=ChannelNorm(hidden_channels) if norm == "layer" else nn.Identity(),
                kernel=SpectralKernel(hidden_channels, modes, theta_scale),
                update=GLU(hidden_channels)
                if update == "glu"
                else MLP(hidden_channels, max(1, round(mlp_ratio * hidden_channels))),
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
                norm=lift_norm,
                bend=lift_channels,
            ),
            layers=[layer() for _ in range(n_layers)],
            project=Pointwise(hidden_channels, channels_out)
            if projection_channels is None
            else two_layers(hidden_channels, projection_channels, channels_out),
            components=components,
        )
        self.modes = modes
        self.arguments = arguments
        if train_shape is not None:
            self.arguments["train_shape"] = modes.train_shape = tuple(train_shape)

    @classmethod
    def recommended(
        cls, in_channels: int, out_channels: int, n_dim: int = 1, **overrides: Any
    ) -> "SFO":
        """Our own settings: they learn faster than the paper's, and bear a higher learning rate.

        Kernels that reach to both sides, a pointwise path beside them, a gain of 1/4 at the
        start whatever the grid, a hidden layer in the lift and in the projection, for equations
        bend the field at every point too, and no normalisation, neither of the lifted field,
        whose amplitude the equations depend on, nor in the layers. On other grids than the
        trained one the kernel stays what it was. Without coordinates the model
        commutes with shifts, as periodic problems do; pass `coordinates=True` and a fitting
        `boundary` for others, and `norm="layer"` for solutions with sharp fronts. Adam at
        4e-3 to 6e-3 with a one-cycle schedule and gradients clipped at 1 is a good start.

        Example:
            >>> model = SFO.recommended(in_channels=1, out_channels=20, n_dim=2, n_modes=12)
            >>> model(torch.randn(1, 1, 32, 32)).shape
            torch.Size([1, 20, 32, 32])
        """
        width = overrides.get("hidden_channels", cls._default("hidden_channels"))
        settings: dict[str, Any] = dict(
            support="two_sided",
            gain="unit",
            theta_scale=0.25,
            skip=True,
            norm=None,
            lift_norm=None,
            lift_channels=2 * width,
            projection_channels=2 * width,
            coordinates=False,
            transfer="restrict",
        )
        return cls(in_channels, out_channels, n_dim, **{**settings, **overrides})

    @classmethod
    def on_grid(cls, settings: dict[str, Any], shape: Sequence[int]) -> dict[str, Any]:
        """No more modes than points, as the paper does on coarse grids."""
        n_modes = settings.get("n_modes", cls._default("n_modes"))
        return {**settings, "n_modes": min(n_modes, *shape)}

    @classmethod
    def _default(cls, argument: str) -> Any:
        return inspect.signature(cls).parameters[argument].default

    @property
    def kernels(self) -> list[SpectralKernel]:
        """The kernel of each layer."""
        return [cast(SFOLayer, layer).kernel for layer in self.layers]

    def get_extra_state(self) -> Tensor:
        """The training grid belongs to the weights: without it another grid means another map."""
        return torch.tensor(self.modes.train_shape or (), dtype=torch.int64)

    def set_extra_state(self, state: Tensor) -> None:
        self.modes.train_shape = tuple(state.tolist()) or None
