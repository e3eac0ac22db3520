"""The Fourier layer's convolution: one matrix for each of the lowest frequencies.

    (K v)(x) = Σ_k W(k) v̂(k) exp(2πi k·x/n),        v̂(k) = (1/N) Σ_x v(x) exp(−2πi k·x/n)

Along the last axis k = 0..m−1 (real fields have v̂(−k) = conj v̂(k)), along every other axis
k = 0..m−1 and −m..−1. With the factor 1/N the coefficients v̂ of a smooth field do not depend on
the grid, so K is the same operator on every grid, and may read one grid and write another.

A few frequencies are cheaper as matrix products than as a fast Fourier transform of all of them:
see `sfo.fourier_matrices`.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn
from torch.nn import functional as F

from sfo import fft
from sfo.fourier_matrices import analysis_matrix, left_multiply, synthesis_matrix, waves
from sfo.shapes import Field
from sfo.spectral_mix import no_autocast
from sfo.transforms import needs_plain_operators

if TYPE_CHECKING:
    from typing_extensions import Self

Coefficients = Float[Tensor, "batch channel 2 freq"]
"""v̂(k) at the kept frequencies: real and imaginary part."""

Frequencies = tuple[tuple[int, ...], ...]
"""The kept frequencies along each axis."""

# With more modes than this along an axis, fast Fourier transforms are the faster ones.
MAX_MATRICES = 64
"""Matrices in the cache, those of four grids in 3D or more; the oldest are dropped first."""
MATRIX_MODES = 64


class FourierModes:
    """Which frequencies are kept, and the transform to and from them on every grid.

    One object serves all layers of the same modes; it builds the matrices of a new grid once.

    Args:
        n_modes: The number m for each axis. A grid that has fewer frequencies keeps all it has:
            on n points those with −n/2 ≤ k < n/2, along the last axis 0 ≤ k ≤ n/2.

    Example:
        >>> FourierModes((2, 3)).kept((8, 8))
        ((0, 1, -2, -1), (0, 1, 2))
        >>> FourierModes((2, 3)).kept((3, 3))
        ((0, 1, -1), (0, 1))
    """

    def __init__(self, n_modes: Sequence[int]) -> None:
        if not n_modes or min(n_modes) < 1:
            raise ValueError(f"`n_modes` must be at least 1 along each axis, got {n_modes}.")
        self.n_modes = tuple(n_modes)
        self._matrices: dict[tuple, Tensor] = {}

    def kept(self, shape: Sequence[int]) -> Frequencies:
        """The frequencies that are kept on a grid, in the order of their weights."""
        *others, (m_last, n_last) = zip(self.n_modes, shape, strict=True)
        both_signs = [(*range(min(m, (n + 1) // 2)), *range(-min(m, n // 2), 0)) for m, n in others]
        return (*both_signs, tuple(range(min(m_last, n_last // 2 + 1))))

    def analyse(self, v: Field, kept: Frequencies) -> Coefficients:
        """v̂(k) at the kept frequencies."""
        batch, channels, *shape = v.shape
        if self._by_fft:
            return _analyse_by_fft(v, kept)
        x = v @ self._matrix(_analysis, shape[-1], kept[-1], v, last=True).T
        for axis in reversed(range(len(shape) - 1)):
            matrix = self._matrix(_analysis, shape[axis], kept[axis], v)
            x = left_multiply(matrix, x, _count(kept[axis + 1 :]))
        return x.view(batch, channels, 2, _count(kept))

    def synthesise(self, v_hat: Coefficients, kept: Frequencies, shape: Sequence[int]) -> Field:
        """The real field on a grid that has these coefficients, and no others."""
        if self._by_fft:
            return _synthesise_by_fft(v_hat, kept, shape)
        x = v_hat
        for axis, n in enumerate(shape[:-1]):
            matrix = self._matrix(_synthesis, n, kept[axis], v_hat)
            x = left_multiply(matrix, x, _count(kept[axis + 1 :]))
        x = x.reshape(*v_hat.shape[:2], *shape[:-1], 2 * len(kept[-1]))
        return x @ self._matrix(_synthesis, shape[-1], kept[-1], v_hat, last=True).T

    @property
    def _by_fft(self) -> bool:
        # What is exported must run where there is no FFT.
        return max(self.n_modes) > MATRIX_MODES and not torch.compiler.is_exporting()

    def _matrix(
        self,
        build: Callable[..., Tensor],
        n: int,
        k: tuple[int, ...],
        like: Tensor,
        last: bool = False,
    ) -> Float[Tensor, "rows columns"]:
        # A graph that is being traced gets matrices of its own; its tensors must not stay here.
        if needs_plain_operators(like):
            return build(n, k, last).to(like)
        key = (build, n, k, last, like.dtype, like.device)
        if key not in self._matrices:
            with torch.inference_mode(False):
                self._matrices[key] = build(n, k, last).to(like.device, like.dtype)
            while len(self._matrices) > MAX_MATRICES:
                del self._matrices[next(iter(self._matrices))]
        return self._matrices[key]


class SpectralConv(nn.Module):
    """(K v)(x) = Σ_k W(k) v̂(k) exp(2πi k·x/n) over the kept frequencies k.

    Args:
        in_channels: Channels of v.
        out_channels: Channels of K v.
        modes: The frequencies; `SpectralConv(in_channels, out_channels, FourierModes((12, 12)))`.

    Attributes:
        weight: The matrices W(k), transposed, `(*frequencies, in_channels, out_channels)`. It is
            complex in every precision that the model is converted to, single at least.

    Example:
        >>> conv = SpectralConv(2, 3, FourierModes([4]))
        >>> conv(torch.ones(1, 2, 16)).shape, conv(torch.ones(1, 2, 16), shape=[8]).shape
        (torch.Size([1, 3, 16]), torch.Size([1, 3, 8]))
    """

    def __init__(self, in_channels: int, out_channels: int, modes: FourierModes) -> None:
        super().__init__()
        self.modes = modes
        *others, last = modes.n_modes
        frequencies = (*(2 * m for m in others), last)
        self.weight = nn.Parameter(
            torch.empty(*frequencies, in_channels, out_channels, dtype=torch.complex64)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw real and imaginary parts from U(0, 1) / (in_channels · out_channels)."""
        bound = 1 / prod(self.weight.shape[-2:])
        nn.init.uniform_(torch.view_as_real(self.weight.detach()), 0, bound)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[-2]} -> {self.weight.shape[-1]}, n_modes={self.modes.n_modes}"

    def forward(self, v: Field, shape: Sequence[int] | None = None) -> Field:
        """K v on the grid of v or, band-limited, on one of another shape."""
        grid = v.shape[2:]
        shape = grid if shape is None else shape
        kept = self.modes.kept([min(n) for n in zip(grid, shape, strict=True)])
        # Cosines in half precision would spoil the frequencies: float32 at least.
        dtype = torch.promote_types(v.dtype, torch.float32)
        with no_autocast(v.device.type):
            weight = torch.view_as_real(self._at(kept)).to(dtype)
            v_hat = self.modes.analyse(v.to(dtype), kept)
            return self.modes.synthesise(_mix(v_hat, weight), kept, shape).to(v.dtype)

    def _at(self, kept: Frequencies) -> Complex[Tensor, "freq in out"]:
        """The weights of the kept frequencies only."""
        weight = self.weight.flatten(0, -3)
        if weight.shape[0] == _count(kept):
            return weight
        rows = torch.zeros(1, dtype=torch.int64, device=weight.device)
        for k, n in zip(kept, self.weight.shape[:-2], strict=True):
            rows = (rows[:, None] * n + torch.tensor(k, device=weight.device) % n).flatten()
        return weight.index_select(0, rows)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Self":
        return super()._apply(keep_complex(fn), recurse)


def keep_complex(fn: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Let a conversion such as `.to(torch.float64)` act on real and imaginary parts.

    On its own, torch drops the imaginary part in `.to` and skips complex tensors in `.double()`.
    """

    def convert(t: Tensor) -> Tensor:
        if not t.is_complex():
            return fn(t)
        parts = fn(torch.view_as_real(t))
        return torch.view_as_complex(parts.to(torch.promote_types(parts.dtype, torch.float32)))

    return convert


def pad(v: Field, amounts: Sequence[int]) -> Field:
    """Append so many zeros at the far end of each axis, or cut off as many where negative.

    They keep the field from its periodic image, which every Fourier transform sees beside it.

    Example:
        >>> pad(torch.ones(1, 1, 2), [1])
        tensor([[[1., 1., 0.]]])
    """
    if not any(amounts):
        return v
    return F.pad(v, [amount for n in reversed(amounts) for amount in (0, n)])


def low_pass(v: Field, n_modes: Sequence[int]) -> Field:
    """The part of a field in the lowest frequencies, those of `FourierModes(n_modes)`.

    Example:
        >>> low_pass(torch.tensor([[[3.0, -1.0, 3.0, -1.0]]]), [1])
        tensor([[[1., 1., 1., 1.]]])
    """
    shape = v.shape[2:]
    modes = FourierModes([max(1, m) for m in n_modes])
    kept = modes.kept(shape)
    if [len(k) for k in kept] == list(fft.frequency_shape(shape)):
        return v
    dtype = torch.promote_types(v.dtype, torch.float32)
    with no_autocast(v.device.type):
        return modes.synthesise(modes.analyse(v.to(dtype), kept), kept, shape).to(v.dtype)


def _mix(
    v_hat: Coefficients, weight: Float[Tensor, "freq in out 2"]
) -> Float[Tensor, "batch out 2 freq"]:
    """W(k) v̂(k): real and imaginary part of v̂ times those of W, one batched GEMM."""
    batch, _, _, frequencies = v_hat.shape
    # Contiguous: torch multiplies a batch of oddly strided matrices one by one.
    rows = v_hat.permute(3, 2, 0, 1).contiguous()
    products = torch.bmm(rows.flatten(1, 2), weight.flatten(2)).view(frequencies, 2, batch, -1, 2)
    by_real, by_imag = products.unbind(1)
    turned = torch.stack([-by_imag[..., 1], by_imag[..., 0]], dim=-1)
    return (by_real + turned).permute(1, 2, 3, 0)


def _count(kept: Frequencies) -> int:
    return prod([len(k) for k in kept])


def _analysis(n: int, k: tuple[int, ...], last: bool) -> Float[Tensor, "rows columns"]:
    return analysis_matrix(waves(n, k).conj() / n, last=last)


def _synthesis(n: int, k: tuple[int, ...], last: bool) -> Float[Tensor, "rows columns"]:
    matrix = waves(n, k).T
    # The frequencies −k, which are not kept along the last axis, contribute the conjugate.
    return synthesis_matrix(matrix * fft.half_weights((n,))[list(k)] if last else matrix, last=last)


def _analyse_by_fft(v: Field, kept: Frequencies) -> Coefficients:
    shape = v.shape[2:]
    v_hat = fft.rfftn(v, len(shape)) / prod(shape)
    for axis, k in enumerate(kept):
        v_hat = v_hat.index_select(2 + axis, torch.tensor(k, device=v.device) % shape[axis])
    return torch.view_as_real(v_hat.flatten(2)).transpose(2, 3)


def _synthesise_by_fft(v_hat: Coefficients, kept: Frequencies, shape: Sequence[int]) -> Field:
    out_hat = torch.view_as_complex(v_hat.transpose(2, 3).contiguous())
    out_hat = out_hat.unflatten(2, [len(k) for k in kept])
    for axis, (k, n) in enumerate(zip(kept, fft.frequency_shape(shape), strict=True)):
        wider = out_hat.new_zeros(*out_hat.shape[: 2 + axis], n, *out_hat.shape[3 + axis :])
        rows = torch.tensor(k, device=v_hat.device) % shape[axis]
        out_hat = wider.index_copy(2 + axis, rows, out_hat)
    return fft.irfftn(out_hat * prod(shape), shape)
