"""The kernel of SFO: a convolution whose kernel is a learned mixture of fixed modes."""

from collections.abc import Sequence
from math import prod, sqrt
from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.bases.product import multi_index, tied_index
from sfo.fft import resample
from sfo.registry import BASES
from sfo.shapes import Field, Modes
from sfo.spectral_mix import ModeSpectrum, mode_spectrum, no_autocast, spectral_mix

Index = Literal["tied", "multi"]
Boundary = Literal["circular", "zero", "reflect"]
Support = Literal["one_sided", "two_sided"]
Product = Literal["convolution", "correlation"]
Transfer = Literal["rebuild", "restrict"]
Gain = Literal["paper", "unit"]


def check_choice(name: str, value: object, choices: object) -> None:
    """Refuse a value that is not one of a `Literal`'s."""
    known = get_args(choices)
    if value not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, known))}, got {value!r}.")


class KernelModes:
    """Which modes φₗ a kernel is made of, on every grid it meets.

    One object serves all layers of a model. It builds the modes of a new grid once and keeps
    them, and it remembers the training grid n₀, the first one that was used: there the modes are
    the basis' own, and on other grids they are chosen so that the continuous operator
    ∫ φₗ(x − x') v(x') dx' stays the same.

    Args:
        n_modes: Modes along an axis, L.
        n_dim: Number of axes, M.
        basis: A name in `sfo.registry.BASES`.
        index: `"tied"`: L modes, the same index for every axis; `"multi"`: L^M modes.
        boundary: What lies outside of the domain: `"circular"` its periodic image, `"zero"`
            nothing, `"reflect"` its mirror image.
        support: `"one_sided"`: φₗ covers the offsets x − x' = 0..n−1; with a circular boundary
            they wrap round, otherwise a point sees only its left. `"two_sided"`: even and odd
            extensions φₗ(|t|)/√2 and sign(t) φₗ(|t|)/√2 to both sides alternate, in M axes
            through all 2^M parities, so that L modes use the first ⌈L/2^M⌉ of the basis.
        product: `"convolution"` as in the paper, or `"correlation"` as in its public code.
        transfer: On a grid n ≠ n₀, `"rebuild"` takes the basis of n, scaled by √(n₀/n);
            `"restrict"` resamples the modes of n₀.
        gain: `"unit"` scales the modes so that Θ drawn from U(±1/√d) amplifies no frequency
            in the mean, and one not at all less: E‖K̂(k) v̂‖² ≤ ‖v̂‖². `"paper"`: no scale.
        pointwise: Add a last mode δ(x − x'): its Θ is a pointwise linear map.
    """

    def __init__(
        self,
        n_modes: int,
        n_dim: int = 1,
        *,
        basis: str = "usb",
        index: Index = "tied",
        boundary: Boundary = "circular",
        support: Support = "one_sided",
        product: Product = "convolution",
        transfer: Transfer = "rebuild",
        gain: Gain = "paper",
        pointwise: bool = False,
    ) -> None:
        if n_modes < 1 or n_dim < 1:
            raise ValueError(
                f"`n_modes` and `n_dim` must be at least 1, got n_modes={n_modes}, n_dim={n_dim}."
            )
        check_choice("index", index, Index)
        check_choice("boundary", boundary, Boundary)
        check_choice("support", support, Support)
        check_choice("product", product, Product)
        check_choice("transfer", transfer, Transfer)
        check_choice("gain", gain, Gain)
        self.basis = BASES[basis]
        self.n_modes, self.n_dim = n_modes, n_dim
        self.index, self.boundary, self.support = index, boundary, support
        self.product, self.transfer, self.gain = product, transfer, gain
        self.pointwise = pointwise
        self.train_shape: tuple[int, ...] | None = None
        self._spectra: dict[tuple, ModeSpectrum] = {}

    def __len__(self) -> int:
        """Number of modes φₗ on the grid, without the pointwise one."""
        return self.n_modes if self.index == "tied" else self.n_modes**self.n_dim

    def period(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The periodic grid on which the convolution runs."""
        return tuple(shape) if self.boundary == "circular" else tuple(2 * n for n in shape)

    def modes(self, shape: Sequence[int]) -> Modes:
        """The modes on the periodic grid of the convolution, offset 0 first, in float64."""
        shape = tuple(shape)
        if len(shape) != self.n_dim:
            raise ValueError(f"The grid must have {self.n_dim} axes, got shape {shape}.")
        train_shape = self.train_shape or shape
        phi = self._on_grid(shape, train_shape)
        if self.gain == "unit":
            trained = phi if shape == train_shape else self._on_grid(train_shape, train_shape)
            power = torch.fft.fftn(trained, dim=tuple(range(1, self.n_dim + 1))).abs().square()
            # Var U(±1/√d) = 1/(3d), and a row of K̂ sums d of them for every mode.
            phi = phi * torch.sqrt(3 / power.sum(0).max())
        if self.pointwise:
            delta = torch.zeros_like(phi[:1])
            delta[(0,) * phi.ndim] = 1
            phi = torch.cat([phi, delta])
        return phi

    def _on_grid(self, shape: tuple[int, ...], train_shape: tuple[int, ...]) -> Modes:
        if self.transfer == "restrict":
            axes = [self._along_axis(n, axis) for axis, n in enumerate(train_shape)]
            axes = [resample(phi, n) for phi, n in zip(axes, self.period(shape), strict=True)]
            scale = 1.0
        else:
            axes = [self._along_axis(n, axis) for axis, n in enumerate(shape)]
            scale = sqrt(prod(train_shape) / prod(shape))
        if self.product == "correlation":
            axes = [phi.flip(-1).roll(1, -1) for phi in axes]
        return scale * (tied_index(axes) if self.index == "tied" else multi_index(axes))

    def _along_axis(self, n: int, axis: int) -> Float[Tensor, "modes period"]:
        (period,) = self.period((n,))
        if self.support == "one_sided":
            phi = self._basis_modes(n, self.n_modes, n)
            return torch.nn.functional.pad(phi, (0, period - n))
        # Tied: the parities of the M axes are the binary digits of l, the mode is the rest.
        # Multi: each axis runs through its own pairs.
        digits = self.n_dim if self.index == "tied" else 1
        digit = axis if self.index == "tied" else 0
        row = torch.arange(self.n_modes)
        half = n // 2 + 1 if self.boundary == "circular" else n
        half_modes = self._basis_modes(half, int(row[-1] >> digits) + 1, n)
        phi = half_modes[row >> digits] / sqrt(2)
        sign = 1.0 - 2.0 * ((row >> digit) & 1).to(phi)[:, None]
        out = phi.new_zeros(self.n_modes, period)
        out[:, :half] = phi
        out[:, period - half + 1 :] = sign * phi[:, 1:].flip(-1)
        # An odd function vanishes at the offset 0 and, on a circle, at the one opposite.
        odd = sign[:, 0] < 0
        out[odd, 0] = 0
        if 2 * (half - 1) == period:
            out[odd, half - 1] = 0
        return out

    def _basis_modes(self, n: int, n_modes: int, axis: int) -> Float[Tensor, "modes n"]:
        if n_modes > n:
            raise ValueError(
                f"{self.n_modes} {self.support} modes do not fit an axis of {axis} points: at most "
                f"{n} independent ones do, {n_modes} are needed. Use a finer grid, fewer modes, "
                'or transfer="restrict" to evaluate a model trained on a finer one.'
            )
        return self.basis(n, n_modes)

    def spectrum(
        self, shape: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> ModeSpectrum:
        """The modes prepared for `spectral_mix`, built once for each grid, dtype and device."""
        shape = tuple(shape)
        if self.train_shape is None:
            self.train_shape = shape
        key = (shape, self.train_shape, self.transfer, dtype, device)
        if key not in self._spectra:
            self._spectra[key] = self._build(shape, dtype, device)
        return self._spectra[key]

    def _build(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> ModeSpectrum:
        # Modes are kept: made in inference mode, they could not be trained with later.
        with torch.inference_mode(False), torch.no_grad():
            exchange: list[list[int]] = []
            # Two-sided modes give the axes different parities, multi-index ones different
            # modes: only the plain product is the same when equal axes are exchanged.
            if self.index == "tied" and self.support == "one_sided":
                train = self.train_shape or shape
                kinds = list(zip(shape, train, strict=True))
                exchange = [[m for m, k in enumerate(kinds) if k == kind] for kind in {*kinds}]
            spectrum = mode_spectrum(self.modes(shape), exchange)
            return spectrum.to(dtype, device)


# Not for the compiler. This is the mark that `torch.compiler.disable` leaves; calling that here
# would import all of dynamo, two thirds of the package's import time.
KernelModes._build._torchdynamo_disable = True  # type: ignore[attr-defined]


class SpectralKernel(nn.Module):
    """K v = Σₗ Θₗ (φₗ * v), with learned matrices Θₗ and fixed modes φₗ.

    Args:
        channels: Number of channels d, of input and output.
        modes: The modes; `SpectralKernel(channels, KernelModes(n_modes, n_dim, …))`.
        theta_scale: Θ starts at this multiple of its usual size.

    Attributes:
        theta: The matrices Θₗ, `(L, d, d)`.
        skip: With `modes.pointwise`, the matrix `(d, d)` of the pointwise path, else None.

    Example:
        >>> kernel = SpectralKernel(2, KernelModes(n_modes=4))
        >>> kernel(torch.ones(1, 2, 16)).shape, kernel.spatial((16,)).shape
        (torch.Size([1, 2, 16]), torch.Size([2, 2, 16]))
    """

    def __init__(self, channels: int, modes: KernelModes, theta_scale: float = 1.0) -> None:
        super().__init__()
        self.modes, self.theta_scale = modes, theta_scale
        self.theta = nn.Parameter(torch.empty(len(modes), channels, channels))
        self.skip = nn.Parameter(torch.empty(channels, channels)) if modes.pointwise else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw Θ from U(±1/d) as the paper's code does, or from U(±1/√d) with unit gain."""
        channels = self.theta.shape[-1]
        bound = 1 / channels if self.modes.gain == "paper" else 1 / sqrt(channels)
        nn.init.uniform_(self.theta, -bound * self.theta_scale, bound * self.theta_scale)
        if self.skip is not None:
            nn.init.uniform_(self.skip, -1 / sqrt(channels), 1 / sqrt(channels))

    def extra_repr(self) -> str:
        modes, channels = self.theta.shape[:2]
        return f"{channels} channels, {modes} modes, {self.modes.boundary}, {self.modes.support}"

    def forward(self, v: Field, then: nn.Linear | None = None) -> Field:
        """K v, or W K v + b where a pointwise map `then` follows.

        W K is itself a kernel, with the matrices W Θₗ. Where W does not widen the field, those
        are formed instead of applying W at every point: the same result, one GEMM less.
        """
        shape = v.shape[2:]
        # Fourier transforms have no half precision on most devices: float32 at least.
        dtype = torch.promote_types(v.dtype, torch.float32)
        spectrum = self.modes.spectrum(shape, dtype, v.device)
        fuse = then is not None and then.out_features <= then.in_features
        with no_autocast(v.device.type):
            theta: Tensor = self.theta
            if self.skip is not None:
                theta = torch.cat([theta, self.skip[None]])
            if then is not None and fuse:
                theta = then.weight @ theta
        extended = _extend(v.to(dtype), self.modes.boundary)
        out = spectral_mix(extended, theta.to(dtype), spectrum)
        inside: tuple[Any, ...] = (..., *map(slice, shape))
        out = out[inside].to(v.dtype)
        if then is None:
            return out
        return out + then.bias.view(-1, *[1] * len(shape)).to(v.dtype) if fuse else then(out)

    @torch.no_grad()
    def spatial(self, grid_shape: Sequence[int]) -> Float[Tensor, "out in *period"]:
        """The learned kernel κ(t) = Σₗ Θₗ φₗ(t) at every offset t = x − x', offset 0 first.

        A circular kernel has the grid's own shape. With the other boundaries it has twice the
        points along each axis; the second half holds the offsets t < 0. `torch.fft.fftshift`
        moves the offset 0 to the middle. The pointwise path `skip` is not part of it.
        """
        phi = self.modes.modes(grid_shape)[: len(self.theta)]
        return torch.einsum("lij,l...->ij...", self.theta.to(phi), phi).to(self.theta)


def _extend(v: Field, boundary: Boundary) -> Float[Tensor, "batch channel ..."]:
    """Continue a field beyond the domain, to twice its length along every axis."""
    axes = range(2, v.ndim)
    if boundary == "zero":
        padding = [length for axis in reversed(axes) for length in (0, v.shape[axis])]
        return torch.nn.functional.pad(v, padding)
    if boundary == "reflect":
        for axis in axes:
            v = torch.cat([v, v.flip(axis)], dim=axis)
    return v
