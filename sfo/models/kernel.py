"""The kernels of SFO: convolutions whose kernels are learned mixtures of fixed modes."""

from collections.abc import Sequence
from math import sqrt
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.axis_mix import apply_matrices, axis_matrices, axis_mix
from sfo.checks import check_at_least
from sfo.factored_mix import factored_mix, mix_with_kernel
from sfo.models.kernel_modes import Boundary, KernelModes, KernelOptions
from sfo.models.pointwise import Pointwise, pointwise, pointwise_sum
from sfo.models.tiles import in_tiles
from sfo.models.weight_cache import WeightCache
from sfo.shapes import Field, Modes, Theta
from sfo.spectral_mix import build_matrices, mix_with_matrices, no_autocast, spectral_mix
from sfo.transforms import fixed, is_observed

Mixing = Literal["dense", "factored"]


class Kernel(nn.Module):
    """What both kernels have: modes, a gate, and a cache of what evaluation derives from weights.

    Args:
        channels: Channels d of the input.
        modes: The modes; one object for all layers of a model.
        gate: Multiply the field that enters the convolution by 2 σ(G v + b), so that the kernel
            is κ(x − x') g(v(x')): it depends on the input.

    Attributes:
        theta: The matrices Θₗ of the modes.
    """

    theta: Tensor

    def __init__(self, channels: int, modes: KernelModes, *, gate: bool) -> None:
        super().__init__()
        self.modes = modes
        self.gate = Pointwise(channels, channels) if gate else None
        self.cache = WeightCache()

    @property
    def options(self) -> KernelOptions:
        """What the modes are."""
        return self.modes.options

    def entering(self, v: Field, mix_in: Tensor | None = None) -> Field:
        """The field that enters the convolution: gated, and mixed by B where a kernel has one."""
        gate = self.gate

        def enter(v: Field) -> Field:
            if gate is not None:
                v = v * (2 * torch.sigmoid(gate(v)))
            return v if mix_in is None else pointwise(v, mix_in, None)

        if gate is None and mix_in is None:
            return v
        return in_tiles(enter, v, modules=() if gate is None else (gate,))

    def prepare(self, v: Field) -> tuple[torch.Size, torch.dtype, torch.device]:
        """The grid, the precision and the device of the convolution; note a training grid."""
        shape = v.shape[2:]
        if self.training:
            self.cache.clear()
            if self.modes.train_shape is None:
                self.modes.train_shape = fixed(shape)
        # Fourier transforms have no half precision on most devices: float32 at least.
        return shape, torch.promote_types(v.dtype, torch.float32), v.device

    @torch.no_grad()
    def spatial(self, grid_shape: Sequence[int]) -> Float[Tensor, "out in *period"]:
        """The learned kernel κ(t) = Σₗ Θₗ φₗ(t) at every offset t = x − x', offset 0 first.

        A circular kernel has the grid's own shape. With the other boundaries it has twice the
        points along each axis; the second half holds the offsets t < 0. `torch.fft.fftshift`
        moves the offset 0 to the middle. The pointwise path `skip`, the gate and learned
        reflections are not part of it.
        """
        phi: Modes = self.modes.modes(grid_shape)
        theta = self.theta
        return torch.einsum("lij,l...->ij...", theta.to(phi), phi).to(theta)


class SpectralKernel(Kernel):
    """The paper's kernel: K v = Σₗ Θₗ (φₗ * v), with a learned d × d matrix Θₗ per mode.

    Args:
        channels: Number of channels d, of input and output.
        modes: The modes, `KernelModes(KernelOptions(n_modes, n_dim, …))`.
        theta_scale: Θ starts at this multiple of its usual size.
        skip: Add a learned pointwise linear path beside the convolution.
        gate: Make the kernel depend on the input, see `Kernel`.

    Attributes:
        theta: The matrices Θₗ, `(L, d, d)`.
        skip: The matrix `(d, d)` of the pointwise path, or None.

    Example:
        >>> kernel = SpectralKernel(2, KernelModes(KernelOptions(n_modes=4)))
        >>> kernel(torch.ones(1, 2, 16)).shape, kernel.spatial((16,)).shape
        (torch.Size([1, 2, 16]), torch.Size([2, 2, 16]))
    """

    def __init__(
        self,
        channels: int,
        modes: KernelModes,
        theta_scale: float = 1.0,
        *,
        skip: bool = False,
        gate: bool = False,
    ) -> None:
        super().__init__(channels, modes, gate=gate)
        if modes.options.index == "separable":
            raise ValueError(
                '`index="separable"` needs `mixing="factored"`: matrices Θₗ have no factors per '
                "axis."
            )
        self.theta_scale = theta_scale
        self.theta = nn.Parameter(torch.empty(len(modes), channels, channels))
        self.skip = nn.Parameter(torch.empty(channels, channels)) if skip else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw Θ from U(±1/d) as the paper's code does, or from U(±1/√d) with unit gain."""
        channels = self.theta.shape[-1]
        bound = 1 / channels if self.options.gain == "paper" else 1 / sqrt(channels)
        nn.init.uniform_(self.theta, -bound * self.theta_scale, bound * self.theta_scale)
        if self.skip is not None:
            nn.init.uniform_(self.skip, -1 / sqrt(channels), 1 / sqrt(channels))

    def extra_repr(self) -> str:
        modes, channels = self.theta.shape[:2]
        return (
            f"{channels} channels, {modes} modes, {self.options.boundary}, {self.options.support}"
        )

    def can_absorb(self, inner: nn.Linear) -> bool:
        """Whether W Θₗ replace W after Θₗ at no cost: W may not widen, and a gate, which acts on
        the modes but not on the pointwise path, may not be there."""
        return inner.out_features <= inner.in_features and self.gate is None

    def forward(self, v: Field, inner: nn.Linear | None = None) -> Field:
        """K v, or W K v + b with a pointwise map `inner` that the kernel `can_absorb`.

        W K is itself a kernel, with the matrices W Θₗ. They are formed instead of applying W at
        every point: the same result, one GEMM less.
        """
        shape, dtype, device = self.prepare(v)
        spectrum = self.modes.spectrum(shape, dtype, device, pointwise=self._skip_is_mode)
        extended = _extend(self.entering(v).to(dtype), self.options.boundary)
        prepared = None
        if not self.training:
            prepared = self.cache.get(
                [self.theta, self.skip, None if inner is None else inner.weight],
                spectrum,
                spectrum.matrix_bytes(self.theta.shape[1:]),
                lambda: build_matrices(self._matrices(inner, dtype), spectrum),
            )
        if prepared is None:
            out = spectral_mix(extended, self._matrices(inner, dtype), spectrum)
        else:
            out = mix_with_matrices(extended, prepared, spectrum)
        inside: tuple[Any, ...] = (..., *map(slice, shape))
        out = out[inside].to(v.dtype)
        if self.skip is not None and not self._skip_is_mode:
            out = out + pointwise(v, self.skip, None)
        return out if inner is None else out + inner.bias.view(-1, *[1] * len(shape)).to(v.dtype)

    @property
    def _skip_is_mode(self) -> bool:
        """Whether the pointwise path is one more mode, δ(x − x'): no gate is before the modes."""
        return self.skip is not None and self.gate is None

    def _matrices(self, inner: nn.Linear | None, dtype: torch.dtype) -> Theta:
        """Θₗ, or W Θₗ, with the pointwise path at the end where it is a mode."""
        with no_autocast(self.theta.device.type):
            theta: Tensor = self.theta
            if self.skip is not None and self._skip_is_mode:
                theta = torch.cat([theta, self.skip[None]])
            if inner is not None:
                theta = inner.weight @ theta
            return theta.to(dtype)


class FactoredKernel(Kernel):
    """K v = A (κ * B v) + S v + b: each of r channels is convolved with a scalar kernel of its own.

        κ_r = Σₗ θ_rl φₗ,        Θₗ = A diag(θₗ) B

    It is the dense kernel with matrices Θₗ of rank r that share their factors A and B: L r + 2 d r
    numbers instead of L d². That makes many modes cheap, as the multi-index has them; with
    `index="separable"`, θ itself is a product over the axes.

    Args:
        channels: Channels d of the input.
        modes: The modes, `KernelModes(KernelOptions(n_modes, n_dim, …))`.
        theta_scale: θ starts at this multiple of its usual size.
        out_channels: Channels of the output; None: d. A following pointwise map is part of A, S
            and b.
        rank: Channels r that are convolved; None: d, and then B is the identity.
        skip: Add S, a learned pointwise linear path beside the convolution.
        gate: Make the kernel depend on the input, see `Kernel`.

    Attributes:
        coefficients: θ, `(r, L)`; for separable modes `(axes, r, L)`.
        mix_in: B, `(r, d)`, or None for the identity.
        mix_out: A and b, a pointwise map from r channels.
        skip: S, or None.
        reflections: With `boundary="learned"`, the weights of the mirror images: a sequence of
            axes, walls and channels, all in one vector.

    Example:
        >>> modes = KernelModes(KernelOptions(n_modes=4, n_dim=2, index="multi"))
        >>> kernel = FactoredKernel(2, modes, rank=3)
        >>> kernel(torch.ones(1, 2, 16, 16)).shape, kernel.theta.shape
        (torch.Size([1, 2, 16, 16]), torch.Size([16, 2, 2]))
    """

    def __init__(
        self,
        channels: int,
        modes: KernelModes,
        theta_scale: float = 1.0,
        *,
        out_channels: int | None = None,
        rank: int | None = None,
        skip: bool = False,
        gate: bool = False,
    ) -> None:
        super().__init__(channels, modes, gate=gate)
        check_at_least(1, rank=rank, out_channels=out_channels)
        rank, out_channels = rank or channels, out_channels or channels
        options = modes.options
        self.theta_scale, self.separable = theta_scale, options.index == "separable"
        size = (options.n_dim, rank, options.along_axis) if self.separable else (rank, len(modes))
        self.coefficients = nn.Parameter(torch.empty(size))
        self.mix_in = None if rank == channels else nn.Parameter(torch.empty(rank, channels))
        self.mix_out = Pointwise(rank, out_channels)
        self.skip = nn.Parameter(torch.empty(out_channels, channels)) if skip else None
        self.reflections = (
            nn.Parameter(torch.empty(2 * options.n_dim * rank))
            if options.boundary == "learned"
            else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw θ from U(±1) with unit gain, else from U(±1/√d); A, B, S and b as linear maps'.

        Mirror images start with the weight 0.
        """
        rank, channels = self.mix_out.in_features, self.in_channels
        bound = self.theta_scale / (1 if self.options.gain == "unit" else sqrt(channels))
        nn.init.uniform_(self.coefficients, -bound, bound)
        inputs = rank + (0 if self.skip is None else channels)
        for weight in (self.mix_out.weight, self.mix_out.bias, self.skip):
            if weight is not None:
                nn.init.uniform_(weight, -1 / sqrt(inputs), 1 / sqrt(inputs))
        if self.mix_in is not None:
            nn.init.uniform_(self.mix_in, -1 / sqrt(channels), 1 / sqrt(channels))
        if self.reflections is not None:
            nn.init.zeros_(self.reflections)

    @property
    def in_channels(self) -> int:
        """Channels d of the input."""
        return self.mix_out.in_features if self.mix_in is None else self.mix_in.shape[1]

    def extra_repr(self) -> str:
        return (
            f"{self.in_channels} -> {self.mix_out.out_features} channels, rank "
            f"{self.mix_out.in_features}, {len(self.modes)} modes, {self.options.boundary}, "
            f"{self.options.support}"
        )

    @property
    def theta(self) -> Theta:  # type: ignore[override]
        """The matrices Θₗ = A diag(θₗ) B, `(L, out, d)`; computed, not learned themselves."""
        theta: Tensor = self.coefficients
        if self.separable:
            theta, *factors = theta.unbind()
            for factor in factors:
                theta = torch.einsum("rl,rk->rlk", theta, factor).flatten(1)
        theta = torch.einsum("or,rl->lor", self.mix_out.weight, theta)
        return theta if self.mix_in is None else theta @ self.mix_in

    def forward(self, v: Field) -> Field:
        """A (κ * B v) + S v + b, with the gate at the entry of the convolution."""
        return self.mixed(self.convolved(v), v)

    def convolved(self, v: Field) -> Field:
        """κ * B v, the r channels before they are mixed."""
        _, dtype, _ = self.prepare(v)
        y = self.entering(v, self.mix_in)
        return (self._by_axis if self.separable else self._by_fft)(y.to(dtype)).to(v.dtype)

    def mixed(self, y: Field, v: Field) -> Field:
        """A y + S v + b at every point."""
        if self.skip is None:
            return self.mix_out(y)
        if is_observed(self.mix_out):
            return self.mix_out(y) + pointwise(v, self.skip, None)
        return pointwise_sum(y, self.mix_out.weight, v, self.skip, self.mix_out.bias)

    def _by_fft(self, y: Field) -> Field:
        shape = y.shape[2:]
        spectrum = self.modes.factored_spectrum(shape, y.dtype, y.device)
        y = _extend(y, self.options.boundary, pad=False)
        kernel = None
        if not self.training:
            kernel = self.cache.get(
                [self.coefficients],
                spectrum,
                self.coefficients.shape[0] * spectrum.kernel_bytes,
                lambda: spectrum.kernel(self._theta(y.dtype)),
            )
        if kernel is None:
            out = factored_mix(y, self._theta(y.dtype), spectrum)
        else:
            out = mix_with_kernel(y, kernel, spectrum)
        inside: tuple[Any, ...] = (..., *map(slice, shape))
        return out[inside]

    def _by_axis(self, y: Field) -> Field:
        modes = self.modes.separable_modes(y.shape[2:], y.dtype, y.device)
        reflections = self._reflections(y.dtype)
        matrices = None
        if not self.training and modes.all_matrices:
            matrices = self.cache.get(
                [self.coefficients, self.reflections],
                modes,
                self.coefficients.shape[1] * modes.matrix_bytes,
                lambda: axis_matrices(self._theta(y.dtype), modes, reflections),
            )
        if matrices is None:
            return axis_mix(y, self._theta(y.dtype), modes, reflections)
        return apply_matrices(y, matrices)

    def _theta(self, dtype: torch.dtype) -> Tensor:
        return self.coefficients.to(dtype)

    def _reflections(self, dtype: torch.dtype) -> Float[Tensor, "axes 2 channel"] | None:
        shape = (self.options.n_dim, 2, -1)
        if self.reflections is not None:
            return self.reflections.view(shape).to(dtype)
        if self.options.boundary == "reflect":
            return self.coefficients.new_ones(*shape[:2], self.coefficients.shape[1]).to(dtype)
        return None


def _extend(
    v: Field, boundary: Boundary, *, pad: bool = True
) -> Float[Tensor, "batch channel ..."]:
    """Continue a field beyond the domain, to twice its length along every axis."""
    axes = range(2, v.ndim)
    if boundary == "zero" and pad:
        padding = [length for axis in reversed(axes) for length in (0, v.shape[axis])]
        return torch.nn.functional.pad(v, padding)
    if boundary == "reflect":
        for axis in axes:
            v = torch.cat([v, v.flip(axis)], dim=axis)
    return v
