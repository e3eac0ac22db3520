"""The modes φₗ that a kernel is made of, on every grid that it meets."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod, sqrt
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.axis_mix import SeparableModes, separable_modes
from sfo.bases.product import multi_index, tied_index
from sfo.checks import check_choice, check_whole
from sfo.factored_mix import FactoredSpectrum, factored_spectrum
from sfo.fft import resample
from sfo.fourier_matrices import FourierMatrices, fourier_matrices
from sfo.models.given_modes import GIVEN, GivenModes
from sfo.models.outside_graph import Prepared, build_outside_graph, build_stand_in
from sfo.registry import BASES
from sfo.shapes import Modes
from sfo.spectral_mix import ModeSpectrum, mode_spectrum
from sfo.transforms import fixed

Index = Literal["tied", "multi", "separable"]
Boundary = Literal["circular", "zero", "reflect", "learned"]
Support = Literal["one_sided", "two_sided"]
Product = Literal["convolution", "correlation"]
Transfer = Literal["rebuild", "restrict"]
Gain = Literal["paper", "unit"]
Transform = Literal["fft", "matmul"]

MAX_GRIDS, MAX_SPECTRA = 8, 16
"""Grids, and spectra in all, in the cache of a model; the oldest are dropped first."""


@dataclass(frozen=True)
class KernelOptions:
    """What the modes of a kernel are, apart from the grid.

    Args:
        n_modes: Modes of the basis along each axis, L.
        n_dim: Number of axes, M.
        basis: A name in `sfo.registry.BASES`, or `"given"`: kept with the weights, `GivenModes`.
        index: `"tied"`: the same index for every axis; `"multi"`: one mode per index tuple;
            `"separable"`, for factored kernels: one mode per index tuple as well, with
            coefficients that are products of one number per axis.
        boundary: What lies outside of the domain: `"circular"` its periodic image, `"zero"`
            nothing, `"reflect"` its mirror image, `"learned"`, for separable kernels: a learned
            multiple of its mirror image, per channel and wall.
        support: `"one_sided"`: φₗ covers the offsets x − x' = 0..n−1; with a circular boundary
            they wrap round, otherwise a point sees only its left. `"two_sided"`: even and odd
            extensions φₗ(|t|)/√2 and sign(t) φₗ(|t|)/√2 to both sides alternate, in M tied axes
            through all 2^M parities, so that L modes use the first ⌈L/2^M⌉ of the basis.
        product: `"convolution"` as in the paper, or `"correlation"` as in its public code.
        transfer: On a grid n ≠ n₀, `"rebuild"` takes the basis of n, scaled by √(n₀/n);
            `"restrict"` resamples the modes of n₀.
        gain: `"unit"` scales the modes so that the mean of Σₗ|φ̂ₗ(k)|² θₗ² is at most 1 for
            θₗ from U(±1), and is 1 at one frequency k; along each axis where they are separable.
            `"paper"`: no scale.
        low_modes: K: adds the constant and the K lowest cosines and sines along each axis, made
            orthonormal to the modes of the basis and to each other. None: adds nothing.
        transform: How fields are transformed: `"fft"`, or `"matmul"` by real products with
            matrices of cosines and sines, for devices without FFT or complex numbers.
    """

    n_modes: int
    n_dim: int = 1
    basis: str = "usb"
    index: Index = "tied"
    boundary: Boundary = "circular"
    support: Support = "one_sided"
    product: Product = "convolution"
    transfer: Transfer = "rebuild"
    gain: Gain = "paper"
    low_modes: int | None = None
    transform: Transform = "fft"

    def __post_init__(self) -> None:
        check_whole(1, n_modes=self.n_modes, n_dim=self.n_dim)
        if self.low_modes is not None:
            check_whole(0, low_modes=self.low_modes)
        check_choice("index", self.index, Index)
        check_choice("boundary", self.boundary, Boundary)
        check_choice("support", self.support, Support)
        check_choice("product", self.product, Product)
        check_choice("transfer", self.transfer, Transfer)
        check_choice("gain", self.gain, Gain)
        check_choice("transform", self.transform, Transform)
        if self.basis != GIVEN:
            BASES[self.basis]  # A wrong name is answered with the right ones.
        elif self.support != "one_sided":
            raise ValueError('`basis="given"` needs `support="one_sided"`, got "two_sided".')
        if self.boundary == "learned" and self.index != "separable":
            raise ValueError(
                f'`boundary="learned"` needs `index="separable"`, got index={self.index!r}: a '
                "mirror image has its own weight along each axis."
            )

    def fixed_options(self) -> dict[str, Any]:
        """The options that weights are valid for: all but those that may change after training."""
        return {k: v for k, v in asdict(self).items() if k not in ("transfer", "transform")}

    @property
    def along_axis(self) -> int:
        """Modes along each axis, low ones included."""
        return self.n_modes + (0 if self.low_modes is None else 1 + 2 * self.low_modes)

    def __len__(self) -> int:
        """Number of modes φₗ on the grid."""
        return self.along_axis if self.index == "tied" else self.along_axis**self.n_dim


class KernelModes:
    """The modes of a kernel on any grid, built once per grid and kept.

    One object serves all layers of a model. On the training grid n₀ the modes are the basis'
    own; on other grids they are chosen so that the continuous operator ∫ φₗ(x − x') v(x') dx'
    stays the same. Where no training grid is known, every grid counts as one.

    Args:
        options: What the modes are.
        train_shape: The training grid n₀, if it is known already.

    Example:
        >>> modes = KernelModes(KernelOptions(n_modes=4, low_modes=1))
        >>> modes.modes((32,)).shape
        torch.Size([7, 32])
    """

    __slots__ = (
        "_prepared",
        "given",
        "options",
        "train_shape",
    )  # Setting any other attribute fails.

    def __init__(self, options: KernelOptions, train_shape: Sequence[int] | None = None) -> None:
        self.options = options
        self.train_shape = None if train_shape is None else tuple(train_shape)
        self.given: GivenModes | None = None
        if options.basis == GIVEN:
            if train_shape is None:
                raise ValueError('`basis="given"` needs `train_shape`, the grid of its modes.')
            self.given = GivenModes(options.n_modes, train_shape)
        self._prepared: OrderedDict[tuple, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self.options)

    @property
    def transfer(self) -> Transfer:
        """How the modes are taken to other grids; may be changed at any time."""
        return self.options.transfer

    @transfer.setter
    def transfer(self, transfer: Transfer) -> None:
        self.options = replace(self.options, transfer=transfer)

    @property
    def transform(self) -> Transform:
        """How fields are transformed; may be changed at any time, because it changes no result."""
        return self.options.transform

    @transform.setter
    def transform(self, transform: Transform) -> None:
        self.options = replace(self.options, transform=transform)

    def period(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The periodic grid on which the convolution runs."""
        return tuple(shape) if self.options.boundary == "circular" else tuple(2 * n for n in shape)

    def axes(self, shape: Sequence[int]) -> list[Float[Tensor, "modes period"]]:
        """The modes along each axis of the convolution's grid, offset 0 first, in float64.

        Their products by `index` are the modes on the grid, scales included.
        """
        shape = tuple(shape)
        if len(shape) != self.options.n_dim:
            raise ValueError(f"The grid must have {self.options.n_dim} axes, got shape {shape}.")
        train_shape = self.train_shape or shape
        axes = self._on_grid(shape, train_shape)
        axes[0] = self._scale(shape, train_shape) * axes[0]
        if self.options.gain == "paper":
            return axes
        trained = axes
        if shape != train_shape:
            trained = self._on_grid(train_shape, train_shape)
        powers = [torch.fft.fft(phi).abs().square() for phi in trained]
        if self.options.index == "separable":
            # Each axis has coefficients of its own, which learn alike where scales are alike.
            gains = [sqrt(3 / float(power.sum(0).max())) for power in powers]
            return [gain * phi for gain, phi in zip(gains, axes, strict=True)]
        if self.options.index == "multi":
            largest = prod(float(power.sum(0).max()) for power in powers)
        else:
            largest = float(tied_index(powers).sum(0).max())
        return [sqrt(3 / largest) * axes[0], *axes[1:]]

    def modes(self, shape: Sequence[int]) -> Modes:
        """The modes on the periodic grid of the convolution, offset 0 first, in float64."""
        join = tied_index if self.options.index == "tied" else multi_index
        return join(self.axes(shape))

    def _scale(self, shape: tuple[int, ...], train_shape: tuple[int, ...]) -> float:
        if self.options.transfer == "restrict":
            return 1.0
        return sqrt(prod(train_shape) / prod(shape))

    def _on_grid(self, shape: tuple[int, ...], train_shape: tuple[int, ...]) -> list[Tensor]:
        if self.options.transfer == "restrict":
            axes = [self._along_axis(n, axis) for axis, n in enumerate(train_shape)]
            axes = [resample(phi, n) for phi, n in zip(axes, self.period(shape), strict=True)]
        else:
            axes = [self._along_axis(n, axis) for axis, n in enumerate(shape)]
        if self.options.product == "correlation":
            axes = [phi.flip(-1).roll(1, -1) for phi in axes]
        return axes

    def _along_axis(self, n: int, axis: int) -> Float[Tensor, "modes period"]:
        if self.options.support == "one_sided":
            (period,) = self.period((n,))
            if self.given is not None:
                phi = self.given.along(axis, n)
            else:
                phi = self._basis_modes(n, self.options.n_modes, n)
            phi = torch.nn.functional.pad(phi, (0, period - n))
            offsets = torch.arange(n)
        else:
            phi = self._two_sided(n, axis)
            period = phi.shape[1]
            # With padding, the offset n is never met: there all modes are zero.
            offsets = torch.tensor([t for t in range(period) if t != n or period == n])
        if self.options.low_modes is None:
            return phi
        return torch.cat([phi, _low_modes(phi, offsets, self.options.low_modes, n)])

    def _two_sided(self, n: int, axis: int) -> Float[Tensor, "modes period"]:
        (period,) = self.period((n,))
        # Tied: the parities of the M axes are the binary digits of l, the mode is the rest.
        # Multi: each axis runs through its own pairs.
        tied = self.options.index == "tied"
        digits, digit = (self.options.n_dim, axis) if tied else (1, 0)
        row = torch.arange(self.options.n_modes)
        half = n // 2 + 1 if self.options.boundary == "circular" else n
        half_modes = self._basis_modes(half, int(row[-1] >> digits) + 1, n)
        phi = half_modes[row >> digits] / sqrt(2)
        sign = 1.0 - 2.0 * ((row >> digit) & 1).to(phi)[:, None]
        out = phi.new_zeros(self.options.n_modes, period)
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
                f"{self.options.n_modes} {self.options.support} modes do not fit an axis of {axis} "
                f"points: at most {n} independent ones do, {n_modes} are needed. Use a finer grid, "
                'fewer modes, or transfer="restrict" to evaluate a model trained on a finer one.'
            )
        return BASES[self.options.basis](n, n_modes)

    def spectrum(
        self,
        shape: Sequence[int],
        dtype: torch.dtype,
        device: torch.device,
        *,
        pointwise: bool = False,
    ) -> ModeSpectrum:
        """The modes prepared for `spectral_mix`; with a last mode δ(x − x') if `pointwise`."""
        build = self._dense_and_pointwise if pointwise else self._dense
        return self._cached(build, fixed(shape), dtype, device)

    def factored_spectrum(
        self, shape: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> FactoredSpectrum:
        """The modes prepared for `factored_mix`."""
        return self._cached(self._factored, fixed(shape), dtype, device)

    def separable_modes(
        self, shape: Sequence[int], dtype: torch.dtype, device: torch.device
    ) -> SeparableModes:
        """The modes prepared for `axis_mix`."""
        return self._cached(self._separable, fixed(shape), dtype, device)

    def _dense(self, shape: tuple[int, ...]) -> ModeSpectrum:
        return self._mode_spectrum(shape, self.modes(shape))

    def _dense_and_pointwise(self, shape: tuple[int, ...]) -> ModeSpectrum:
        phi = self.modes(shape)
        delta = torch.zeros_like(phi[:1])
        delta[(0,) * phi.ndim] = 1
        return self._mode_spectrum(shape, torch.cat([phi, delta]))

    def _mode_spectrum(self, shape: tuple[int, ...], phi: Modes) -> ModeSpectrum:
        exchange: list[list[int]] = []
        # Two-sided modes give the axes different parities, multi-index ones different modes:
        # only the plain product is the same when equal axes are exchanged.
        fourier = self._fourier(shape)
        symmetric = self.options.index == "tied" and self.options.support == "one_sided"
        if symmetric and fourier is None and self.given is None:
            kinds = list(zip(shape, self.train_shape or shape, strict=True))
            exchange = [[m for m, k in enumerate(kinds) if k == kind] for kind in {*kinds}]
        return mode_spectrum(phi, exchange, fourier)

    def _factored(self, shape: tuple[int, ...]) -> FactoredSpectrum:
        tied = self.options.index == "tied"
        return factored_spectrum(self.axes(shape), tied=tied, fourier=self._fourier(shape))

    def _separable(self, shape: tuple[int, ...]) -> SeparableModes:
        return separable_modes(self.axes(shape), shape, by_fft=self.transform == "fft")

    def _fourier(self, shape: tuple[int, ...]) -> FourierMatrices | None:
        return None if self.transform == "fft" else fourier_matrices(self.period(shape))

    def _cached(
        self,
        build: Callable[[tuple[int, ...]], Prepared],
        shape: tuple[int, ...],
        dtype: torch.dtype,
        device: torch.device,
    ) -> Prepared:
        """What was built for this grid, or is now."""
        version = 0 if self.given is None else self.given.version
        key = (build.__name__, self.options, shape, self.train_shape, dtype, device, version)
        if key not in self._prepared:
            prepared = build_outside_graph(build, shape, dtype, device)
            if prepared is None:
                return build_stand_in(build, shape, dtype, device)
            self._prepared[key] = prepared
            while (
                len({k[2] for k in self._prepared}) > MAX_GRIDS or len(self._prepared) > MAX_SPECTRA
            ):
                self._prepared.popitem(last=False)
        return self._prepared[key]


def _low_modes(
    phi: Float[Tensor, "modes period"], offsets: Tensor, low_modes: int, axis: int
) -> Float[Tensor, "low period"]:
    """1, cos 2πt/P, sin 2πt/P, …, cos 2πKt/P, sin 2πKt/P on some offsets, orthonormal to `phi`."""
    period, wanted = phi.shape[1], 1 + 2 * low_modes
    if len(phi) + wanted > len(offsets):
        raise ValueError(
            f"`low_modes` = {low_modes} adds {wanted} modes to the {len(phi)} along an axis of "
            f"{axis} points, where at most {len(offsets)} fit. Use a finer grid or fewer modes."
        )
    angle = 2 * torch.pi * offsets.to(phi) / period
    waves = [torch.ones_like(angle)]
    for k in range(1, low_modes + 1):
        waves += [torch.cos(k * angle), torch.sin(k * angle)]
    rows = torch.cat([phi[:, offsets], torch.stack(waves)])
    # The last columns of Q span what the waves add to the modes. Their signs are not Q's to choose.
    q, r = torch.linalg.qr(rows.T)
    q = q * torch.sign(torch.diagonal(r))
    out = phi.new_zeros(wanted, period)
    out[:, offsets] = q[:, len(phi) :].T
    return out
