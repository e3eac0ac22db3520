"""The fast kernel: (K v)(x) = Σₗ Θₗ (φₗ * v)(x), forward and backward as real GEMMs.

In the frequency domain the L modes collapse to one matrix per frequency, shared by the whole batch:

    K̂(k) = Σₗ Θₗ φ̂ₗ(k),        ŝ(k) = K̂(k) v̂(k).

Three ideas make this fast on any device and bound its memory by the field's:

1. Complex products become real ones. With the stacked rows
       z = [ Re v̂   −Im v̂ ]                [ Re K̂ᵀ ]
           [ Im v̂    Re v̂ ]    and    K =  [ Im K̂ᵀ ] ,
   z K is (Re ŝ, Im ŝ); the same rows made of dŝ give dv̂, and times (Re v̂, Im v̂) the gradient
   of K̂: one real batched GEMM each. K itself is one GEMM, (φ̂ as real rows) · Θ.
2. Frequencies are treated in chunks that stay in cache. The backward builds K̂ again instead of
   keeping it: dv̂ = K̂ᴴ dŝ, dΘₗ = Re Σ_k conj(φ̂ₗ) dŝ v̂ᴴ.
3. Modes that are products of the same function along equal axes have K̂(k₁, k₂) = K̂(k₂, k₁),
   and always K̂(−k) = conj K̂(k). Frequencies of one such orbit share a K̂, built once, and their
   vectors go through it together: up to 6 times fewer matrices in 3D.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sfo import fft
from sfo.fourier_matrices import FourierMatrices
from sfo.shapes import Field, Modes, Theta
from sfo.transforms import needs_plain_operators

# The K̂ of a chunk of frequencies holds this many numbers: 8 MB in float32, within the last
# level of cache. Twice or half of it costs some 10 %, a single chunk up to 50 %.
CHUNK = 2**21


@dataclass(frozen=True)
class Orbits:
    """A range of distinct K̂, each shared by `size` frequencies."""

    start: int
    stop: int
    size: int


@dataclass(frozen=True, eq=False)
class ModeSpectrum:
    """The modes' spectrum φ̂ₗ(k), arranged for `spectral_mix`; made by `mode_spectrum`.

    Attributes:
        shape: The periodic grid of the convolution.
        phi_hat: φ̂ at one frequency of each orbit, real and imaginary part a row.
        weighted: The same times the frequency's weight in the inverse transform.
        orbits: Which rows of `phi_hat` serve how many frequencies.
        order: The frequencies (as flat indices), orbit by orbit; None: each is its own orbit.
        orbit: The row of `phi_hat` that serves each frequency in `order`.
        sign: −1 where the frequency's K̂ is the conjugate of its orbit's.
        fourier: The matrices by which fields are transformed; None: by FFT.
    """

    shape: tuple[int, ...]
    phi_hat: Float[Tensor, "orbits 2 modes"]
    weighted: Float[Tensor, "orbits 2 modes"]
    orbits: tuple[Orbits, ...]
    order: Int[Tensor, "freq"] | None
    orbit: Int[Tensor, "freq"] | None
    sign: Float[Tensor, "freq 1 1"] | None
    fourier: FourierMatrices | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "ModeSpectrum":
        """The same with every tensor changed."""
        order, orbit, sign = (
            None if tensor is None else change(tensor)
            for tensor in (self.order, self.orbit, self.sign)
        )
        rows = change(self.phi_hat), change(self.weighted)
        fourier = None if self.fourier is None else self.fourier.map(change)
        return ModeSpectrum(self.shape, *rows, self.orbits, order, orbit, sign, fourier)

    def to(self, dtype: torch.dtype, device: torch.device) -> "ModeSpectrum":
        """The same in another precision or on another device."""
        return self.map(lambda t: t.to(device, dtype if t.is_floating_point() else t.dtype))

    def full(self) -> tuple[Tensor, Tensor]:
        """Re φ̂ and Im φ̂ at every frequency, `(modes, *frequencies)`."""
        re, im = self.phi_hat.unbind(1)
        if self.order is not None and self.orbit is not None and self.sign is not None:
            back = torch.argsort(self.order)
            re, im = re[self.orbit][back], (im[self.orbit] * self.sign.view(-1, 1))[back]
        frequencies = fft.frequency_shape(self.shape)
        return re.T.reshape(-1, *frequencies), im.T.reshape(-1, *frequencies)

    def matrix_bytes(self, size: Sequence[int]) -> int:
        """Bytes of all K̂, for matrices of this size."""
        return self.phi_hat.shape[0] * 2 * prod(size) * self.phi_hat.element_size()

    def chunks(self, matrix_size: int) -> Iterator[tuple[slice, slice, int]]:
        """Ranges of K̂, of the frequencies they serve, and the number of frequencies for each."""
        step = max(1, CHUNK // matrix_size)
        first = 0
        for orbit in self.orbits:
            for start in range(orbit.start, orbit.stop, step):
                stop = min(start + step, orbit.stop)
                last = first + (stop - start) * orbit.size
                yield slice(start, stop), slice(first, last), orbit.size
                first = last


def mode_spectrum(
    phi: Modes,
    exchange: Sequence[Sequence[int]] = (),
    fourier: FourierMatrices | None = None,
) -> ModeSpectrum:
    """Transform modes `(L, *grid)` for `spectral_mix`, in the modes' own precision.

    Args:
        phi: The modes on the periodic grid of the convolution, the offset 0 first.
        exchange: Groups of axes that `phi` is symmetric in, as in `[(0, 1)]` for
            φ(x, y) = φ(y, x). The axes of a group must have the same length.
        fourier: Transform fields by these matrices instead of by FFT; without `exchange`.
    """
    shape = tuple(phi.shape[1:])
    phi_hat = fft.flat_frequencies(fft.rfftn(phi, len(shape)), len(shape)).T
    rows = torch.stack([phi_hat.real, phi_hat.imag], dim=1)
    frequencies = fft.frequency_shape(shape)
    weights = (fft.half_weights(shape) / prod(shape)).expand(frequencies).flatten()
    weights = weights.to(rows)
    groups = [group for group in exchange if len(group) > 1]
    if not groups:
        rest = ((Orbits(0, len(rows), 1),), None, None, None, fourier)
        return ModeSpectrum(shape, rows, rows * weights[:, None, None], *rest)
    first, order, orbit, sign, orbits = _find_orbits(shape, groups)
    rows, weights = rows[first], weights[first]
    return ModeSpectrum(
        shape,
        rows,
        rows * weights[:, None, None],
        orbits,
        torch.from_numpy(order).to(rows.device),
        torch.from_numpy(orbit).to(rows.device),
        torch.from_numpy(sign).to(rows)[:, None, None],
    )


def _find_orbits(
    shape: Sequence[int], groups: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, tuple[Orbits, ...]]:
    """Sort the kept frequencies into orbits under exchange of axes and conjugation.

    Only frequencies of equal weight are joined, so that an orbit has one weight.
    """
    k = fft.wave_numbers(shape)
    # −(n/2) is the frequency n/2 itself on an even grid.
    minus_k = np.where(2 * k == np.array(shape), k, -k)
    for group in groups:
        axes = list(group)
        k[:, axes] = np.sort(k[:, axes], axis=1)
        minus_k[:, axes] = np.sort(minus_k[:, axes], axis=1)
    base = max(shape) + 1
    digits = base ** np.arange(len(shape), dtype=np.int64)
    key, minus_key = k @ digits, minus_k @ digits
    weight = np.broadcast_to(fft.half_weights(shape).numpy(), fft.frequency_shape(shape)).ravel()
    sign = np.where(key >= minus_key, 1.0, -1.0)
    name = 2 * np.maximum(key, minus_key) + (weight == 2)
    _, orbit, counts = np.unique(name, return_inverse=True, return_counts=True)
    # Orbits of one size lie side by side; within an orbit a frequency with sign +1 leads.
    order = np.lexsort((-sign, orbit, counts[orbit]))
    sizes = counts[orbit[order]]
    starts = np.flatnonzero(np.r_[True, orbit[order][1:] != orbit[order][:-1]])
    lead_sizes = sizes[starts]
    ranges = []
    for size in np.unique(lead_sizes):
        members = np.flatnonzero(lead_sizes == size)
        ranges.append(Orbits(int(members[0]), int(members[-1]) + 1, int(size)))
    # An orbit none of whose members has sign +1 is led by a conjugate: flip it whole.
    lead_sign = np.repeat(sign[order][starts], lead_sizes)
    rows = np.repeat(np.arange(len(starts)), lead_sizes)
    return order[starts], order, rows, sign[order] * lead_sign, tuple(ranges)


def spectral_mix(v: Field, theta: Theta, spectrum: ModeSpectrum) -> Field:
    """Σₗ Θₗ (φₗ * v) on the periodic grid of `spectrum`.

    Equal to the direct sum Σₗ Σⱼ Θₗ φₗ(xᵢ − xⱼ) v(xⱼ), in O(n log n), differentiable twice.

    Args:
        v: The field, on the grid `spectrum.shape`, in the dtype of `spectrum`.
        theta: The mixing matrices.
        spectrum: The modes, from `mode_spectrum`.

    Example:
        >>> phi = torch.eye(4)[1:2]                       # a shift by one point
        >>> v = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
        >>> spectral_mix(v, torch.ones(1, 1, 1), mode_spectrum(phi)).round(decimals=5)
        tensor([[[4., 1., 2., 3.]]])
    """
    with no_autocast(v.device.type):
        if needs_plain_operators(v, theta):
            return mix_by_definition(v, theta, spectrum)
        return _SpectralMix.apply(v, theta, spectrum)


def no_autocast(device_type: str) -> AbstractContextManager:
    """Switch autocast off where it is on; otherwise leave no trace in an exported graph."""
    if device_type != "meta" and torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()


def mix_by_definition(v: Field, theta: Theta, spectrum: ModeSpectrum) -> Field:
    """The same from plain differentiable operators: for `torch.export` and second derivatives."""
    if spectrum.fourier is not None:
        return _by_matrices(v, theta, spectrum)
    re, im = spectrum.full()
    v_hat = fft.rfftn(v, len(spectrum.shape))
    k_re = torch.einsum("lij,l...->ij...", theta, re)
    k_im = torch.einsum("lij,l...->ij...", theta, im)
    s_re = torch.einsum("ij...,bj...->bi...", k_re, v_hat.real)
    s_re = s_re - torch.einsum("ij...,bj...->bi...", k_im, v_hat.imag)
    s_im = torch.einsum("ij...,bj...->bi...", k_re, v_hat.imag)
    s_im = s_im + torch.einsum("ij...,bj...->bi...", k_im, v_hat.real)
    return fft.irfftn(torch.complex(s_re, s_im), spectrum.shape)


def _by_matrices(v: Field, theta: Theta, spectrum: ModeSpectrum) -> Field:
    """The same without complex numbers, where each frequency is its own orbit."""
    assert spectrum.fourier is not None
    k = spectrum.phi_hat.flatten(0, 1) @ theta.transpose(1, 2).flatten(1)
    re, im = spectrum.fourier.rfftn(v).permute(3, 2, 0, 1).unbind(1)
    z = torch.cat([torch.cat([re, -im], dim=2), torch.cat([im, re], dim=2)], dim=1)
    s = torch.bmm(z, k.view(-1, 2 * theta.shape[2], theta.shape[1])).unflatten(1, (2, -1))
    return spectrum.fourier.irfftn(s.permute(2, 3, 1, 0))


Matrices = list[Float[Tensor, "_ _ _"]]
"""K̂ as the stacked rows need it, `(orbits, columns, channel)` for each chunk."""


@torch.no_grad()
def build_matrices(theta: Theta, spectrum: ModeSpectrum) -> Matrices:
    """All K̂ at once, to keep where Θ does not change."""
    with no_autocast(theta.device.type):
        return list(_matrices(theta, spectrum))


@torch.no_grad()
def mix_with_matrices(v: Field, matrices: Matrices, spectrum: ModeSpectrum) -> Field:
    """What `spectral_mix` computes, with K̂ already built; without gradients."""
    with no_autocast(v.device.type):
        return _multiply(_to_planar(v, spectrum), matrices, matrices[0].shape[-1], spectrum)


def _matrices(theta: Theta, spectrum: ModeSpectrum) -> Iterator[Tensor]:
    n_out, n_in = theta.shape[1:]
    matrices = theta.transpose(1, 2).reshape(len(theta), n_in * n_out)
    for rows, _, _ in spectrum.chunks(2 * n_in * n_out):
        yield (spectrum.phi_hat[rows].flatten(0, 1) @ matrices).view(-1, 2 * n_in, n_out)


def _multiply(
    v_planar: Float[Tensor, "freq 2 batch channel"],
    matrices: Iterable[Tensor],
    n_out: int,
    spectrum: ModeSpectrum,
) -> Field:
    """K̂ v̂, transformed back."""
    batch, n_in = v_planar.shape[2:]
    s_planar = v_planar.new_empty(*v_planar.shape[:3], n_out)
    chunks = spectrum.chunks(2 * n_in * n_out)
    for (_, frequencies, size), k in zip(chunks, matrices, strict=True):
        z = _stack(_gather(v_planar, spectrum, frequencies), spectrum, frequencies, size)
        _scatter(s_planar, spectrum, frequencies, z, k)
    return _from_planar(s_planar, batch, spectrum)


class _SpectralMix(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, v: Tensor, theta: Tensor, spectrum: ModeSpectrum) -> Tensor:
        v_planar = _to_planar(v, spectrum)
        ctx.save_for_backward(v, theta, v_planar)
        ctx.spectrum = spectrum
        return _multiply(v_planar, _matrices(theta, spectrum), theta.shape[1], spectrum)

    @staticmethod
    def backward(ctx: Any, ds: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        v, theta, v_planar = ctx.saved_tensors
        with no_autocast(v.device.type):
            if torch.is_grad_enabled():
                return (*_gradient_by_definition(ctx, v, theta, ds), None)
            return (*_gradient(ctx, v, theta, v_planar, ds), None)


def _gradient_by_definition(
    ctx: Any, v: Tensor, theta: Tensor, ds: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """The gradient as a graph of its own, for second derivatives."""
    out = mix_by_definition(v, theta, ctx.spectrum)
    wanted = [x for x, needed in zip((v, theta), ctx.needs_input_grad, strict=False) if needed]
    grads = iter(torch.autograd.grad(out, wanted, ds, create_graph=True))
    dv, dtheta = (next(grads) if needed else None for needed in ctx.needs_input_grad[:2])
    return dv, dtheta


def _gradient(
    ctx: Any, v: Tensor, theta: Tensor, v_planar: Tensor, ds: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """dv̂ = K̂ᴴ dŝ and dΘₗ = Re Σ_k conj(φ̂ₗ) dŝ v̂ᴴ, chunk by chunk."""
    spectrum = ctx.spectrum
    wants_dv, wants_dtheta = ctx.needs_input_grad[:2]
    n_out, n_in = theta.shape[1:]
    ds_planar = _to_planar(ds, spectrum)
    dv_planar = v.new_empty(v_planar.shape)
    matrices = theta.reshape(len(theta), n_out * n_in)
    dmatrices = torch.zeros_like(matrices)
    for rows, frequencies, size in spectrum.chunks(2 * n_in * n_out):
        # The adjoint K̂ᴴ: the transposed matrices, the conjugate product.
        ds_part = _gather(ds_planar, spectrum, frequencies)
        z = _stack(ds_part, spectrum, frequencies, size, conjugate=True)
        if wants_dv:
            k = (spectrum.phi_hat[rows].flatten(0, 1) @ matrices).view(-1, 2 * n_out, n_in)
            _scatter(dv_planar, spectrum, frequencies, z, k)
        if wants_dtheta:
            v_part = _gather(v_planar, spectrum, frequencies).view(len(z), -1, n_in)
            dk = torch.bmm(z.transpose(1, 2), v_part).view(-1, n_out * n_in)
            dmatrices.addmm_(spectrum.weighted[rows].flatten(0, 1).T, dk)
    dv = _from_planar(dv_planar, v.shape[0], spectrum) if wants_dv else None
    return dv, dmatrices.view_as(theta) if wants_dtheta else None


def _to_planar(v: Field, spectrum: ModeSpectrum) -> Float[Tensor, "freq 2 batch channel"]:
    """The spectrum of a field, frequency first, real and imaginary parts apart, channels last."""
    if spectrum.fourier is not None:
        return spectrum.fourier.rfftn(v).permute(3, 2, 0, 1).contiguous()
    n_dim = v.ndim - 2
    v_hat = fft.flat_frequencies(fft.rfftn(v, n_dim), n_dim)
    return torch.view_as_real(v_hat).permute(2, 3, 0, 1).contiguous()


def _gather(
    planar: Float[Tensor, "freq 2 batch channel"], spectrum: ModeSpectrum, frequencies: slice
) -> Float[Tensor, "part 2 batch channel"]:
    """The rows of some orbits."""
    if spectrum.order is None:
        return planar[frequencies]
    return planar.index_select(0, spectrum.order[frequencies])


def _from_planar(
    planar: Float[Tensor, "freq 2 batch channel"], batch: int, spectrum: ModeSpectrum
) -> Field:
    """The field of such a spectrum."""
    if spectrum.fourier is not None:
        return spectrum.fourier.irfftn(planar.permute(2, 3, 1, 0).contiguous())
    out = planar.new_empty(batch, planar.shape[-1], len(planar), 2)
    # In strips, so that each stays in cache while it is transposed.
    strip = max(1, CHUNK // (4 * planar[0].numel()))
    for start in range(0, len(planar), strip):
        part = slice(start, start + strip)
        out[:, :, part] = planar[part].permute(2, 3, 0, 1)
    v_hat = torch.view_as_complex(out).unflatten(2, fft.frequency_shape(spectrum.shape))
    return fft.irfftn(v_hat, spectrum.shape)


def _stack(
    part: Float[Tensor, "part 2 batch channel"],
    spectrum: ModeSpectrum,
    frequencies: slice,
    size: int,
    conjugate: bool = False,
) -> Float[Tensor, "orbits rows columns"]:
    """The rows (Re v̂, ∓Im v̂) and (Im v̂, ±Re v̂) of some orbits, ready to multiply K."""
    n, _, batch, channels = part.shape
    z = part.new_empty(n, 2, batch, 2, channels)
    z[:, :, :, 0] = part
    sign: Tensor | float = -1.0 if conjugate else 1.0
    if spectrum.sign is not None:
        sign = sign * spectrum.sign[frequencies]
    torch.mul(part[:, 1], -sign, out=z[:, 0, :, 1])
    torch.mul(part[:, 0], sign, out=z[:, 1, :, 1])
    return z.view(n // size, size * 2 * batch, 2 * channels)


def _scatter(
    planar: Float[Tensor, "freq 2 batch channel"],
    spectrum: ModeSpectrum,
    frequencies: slice,
    z: Float[Tensor, "orbits rows columns"],
    k: Float[Tensor, "orbits columns channel"],
) -> None:
    """Write z K to the frequencies it belongs to."""
    if spectrum.order is None:
        torch.bmm(z, k, out=planar[frequencies].flatten(1, 2))
        return
    part = torch.bmm(z, k).view(-1, *planar.shape[1:])
    planar.index_copy_(0, spectrum.order[frequencies], part)
