"""The separable kernel: every channel is convolved along one axis after the other.

    κ_r(x) = Πₘ κ_rm(xₘ),        κ_rm = Σₗ θ_mrl φₗ

Along an axis of n points such a convolution is an n × n matrix per channel, of which the modes'
matrices are a basis: with some hundred points at most, a GEMM to form it and one to apply it are
faster than Fourier transforms, and take any boundary. In the domain 0..n−1,

    K(i, j) = κ(i − j) + w₀ κ(i − j₀) + w₁ κ(i − j₁),        j₀ = −1 − j,  j₁ = 2n − 1 − j,

where j₀ and j₁ are the mirror images of the point j in the two walls: w = 0 continues the field
by zeros, w = 1 by its mirror image, w = −1 by the negative of it, as a normal velocity needs. So
w is learned, one per channel, axis and wall. On a circle there are no images, and the matrix of an
even number of points is made of two blocks, which sums and differences of the two halves x, x' of
the field meet one at a time, with a half of the products:

    | A B | | x  |         y + y' = (A + B) (x + x')
    | B A | | x' |         y − y' = (A − B) (x − x')

Longer axes use Fourier transforms: on the period 2n the mirror image of a real field is the
conjugate of its spectrum, up to a phase.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, prod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.fourier_matrices import FourierMatrices, fourier_matrices
from sfo.shapes import Field
from sfo.spectral_mix import no_autocast
from sfo.transforms import needs_plain_operators

MATRIX_POINTS = 128
"""Axes of at most so many points are multiplied by matrices, if the grid has other axes too."""

Reflections = Float[Tensor, "axes 2 channel"]
"""The weights w of the mirror images in the lower and the upper wall of each axis."""

AxisMatrix = Float[Tensor, "channel n n"] | Float[Tensor, "channel 2 half half"]
"""The matrix of each channel's convolution along an axis, or the two blocks that make it."""


@dataclass(frozen=True, eq=False)
class AxisModes:
    """The modes along one axis, arranged for `axis_mix`; made by `axis_modes`.

    Attributes:
        points: Points n of the axis.
        period: Points of the convolution's periodic grid: n on a circle, else 2n.
        matrices: The n × n matrix of each mode, and those of its two images, as rows; (A + B) / 2
            and (A − B) / 2 alone where the axis `is_halved`; None where it is too long.
        phi_hat: Spectra of the modes, real and imaginary parts in turn.
        images_hat: Spectra of what the modes have at positive offsets, by which the lower image
            is seen, and at negative ones.
        fourier: The matrices by which a long axis is transformed; None: by FFT.
    """

    points: int
    period: int
    matrices: Float[Tensor, "images modes entries"] | None
    phi_hat: Float[Tensor, "modes reals"]
    images_hat: Float[Tensor, "2 modes reals"]
    fourier: FourierMatrices | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "AxisModes":
        """The same with every tensor changed."""
        return AxisModes(
            self.points,
            self.period,
            None if self.matrices is None else change(self.matrices),
            change(self.phi_hat),
            change(self.images_hat),
            None if self.fourier is None else self.fourier.map(change),
        )

    @property
    def circular(self) -> bool:
        """Whether the axis is a circle."""
        return self.period == self.points

    @property
    def is_halved(self) -> bool:
        """Whether its matrices are applied to sums and differences of the field's halves."""
        return self.circular and self.points % 2 == 0 and self.matrices is not None


@dataclass(frozen=True, eq=False)
class SeparableModes:
    """The modes along every axis of a grid."""

    axes: tuple[AxisModes, ...]

    def map(self, change: Callable[[Tensor], Tensor]) -> "SeparableModes":
        """The same with every tensor changed."""
        return SeparableModes(tuple(axis.map(change) for axis in self.axes))

    @property
    def all_matrices(self) -> bool:
        """Whether no axis is too long for matrices."""
        return all(axis.matrices is not None for axis in self.axes)

    @property
    def matrix_bytes(self) -> int:
        """Bytes of one channel's matrices."""
        return sum(
            axis.points**2 // (2 if axis.is_halved else 1) * axis.phi_hat.element_size()
            for axis in self.axes
        )

    def to(self, dtype: torch.dtype, device: torch.device) -> "SeparableModes":
        """The same in another precision or on another device."""
        return self.map(lambda tensor: tensor.to(device, dtype))


def separable_modes(
    axes: Sequence[Float[Tensor, "modes _"]], shape: Sequence[int], *, by_fft: bool = True
) -> SeparableModes:
    """Prepare modes for `axis_mix`, in their own precision.

    Args:
        axes: The modes along each axis on the period of the convolution, the offset 0 first.
        shape: The grid of the field.
        by_fft: Whether long axes are transformed by FFT, or else by `FourierMatrices`.
    """
    longest = MATRIX_POINTS if len(shape) > 1 else 0
    pairs = zip(axes, shape, strict=True)
    return SeparableModes(tuple(axis_modes(phi, n, longest, by_fft) for phi, n in pairs))


def axis_modes(
    phi: Float[Tensor, "modes period"], n: int, longest: int, by_fft: bool = True
) -> AxisModes:
    """Prepare the modes along one axis; as matrices if it has at most `longest` points."""
    period = phi.shape[1]
    positive, negative = phi.clone(), phi.clone()
    positive[:, n:], negative[:, :n] = 0, 0
    halves = torch.stack([positive, negative])
    matrices = None
    if n <= longest:
        i = torch.arange(n)
        direct = phi[:, (i[:, None] - i) % period]
        if period == n and n % 2 == 0:
            a, b = direct[:, : n // 2, : n // 2], direct[:, : n // 2, n // 2 :]
            direct = torch.stack([a + b, a - b], dim=1) / 2
        direct = direct.flatten(1)
        matrices = direct[None]
        if period > n:
            # The offset i + 1 + j is positive and below 2n, i + 1 + j − 2n negative.
            offset = (i[:, None] + 1 + i) % period
            matrices = torch.stack([direct, *(part[:, offset].flatten(1) for part in halves)])
    phi_hat, images_hat = (
        torch.view_as_real(torch.fft.rfft(rows)).flatten(-2) for rows in (phi, halves)
    )
    fourier = None if by_fft or matrices is not None else fourier_matrices([period])
    return AxisModes(n, period, matrices, phi_hat, images_hat, fourier)


def axis_mix(
    v: Field,
    theta: Float[Tensor, "axes channel modes"],
    modes: SeparableModes,
    reflections: Reflections | None = None,
) -> Field:
    """Convolve every channel with its own kernel along one axis after the other.

    Args:
        v: The field, in the dtype of `modes`.
        theta: The coefficients of each channel's kernel along each axis.
        modes: The modes, from `separable_modes`.
        reflections: The weights of the images in the walls; None: no images.

    Example:
        >>> shift = torch.eye(6)[1:2]                     # by one point; zeros enter
        >>> v = torch.tensor([[[1.0, 2.0, 3.0]]])
        >>> axis_mix(v, torch.ones(1, 1, 1), separable_modes([shift], [3])).round().int()
        tensor([[[0, 1, 2]]], dtype=torch.int32)
    """
    with no_autocast(v.device.type):
        for axis, along in enumerate(modes.axes):
            weights = None if reflections is None else reflections[axis]
            if along.matrices is None:
                by_transform = _by_fft if along.fourier is None else _by_fourier_matrices
                v = by_transform(v, axis, theta[axis], along, weights)
            else:
                v = _apply(v, axis, _matrix(theta[axis], along, weights))
        return v


def axis_matrices(
    theta: Float[Tensor, "axes channel modes"],
    modes: SeparableModes,
    reflections: Reflections | None = None,
) -> list[AxisMatrix]:
    """The matrices by which `axis_mix` multiplies, where no axis is too long for them."""
    with no_autocast(theta.device.type):
        return [
            _matrix(theta[axis], along, None if reflections is None else reflections[axis])
            for axis, along in enumerate(modes.axes)
        ]


def apply_matrices(v: Field, matrices: Sequence[AxisMatrix]) -> Field:
    """What `axis_mix` does, with the matrices already formed."""
    with no_autocast(v.device.type):
        for axis, matrix in enumerate(matrices):
            v = _apply(v, axis, matrix)
        return v


def _matrix(
    theta: Float[Tensor, "channel modes"],
    along: AxisModes,
    weights: Float[Tensor, "2 channel"] | None,
) -> AxisMatrix:
    """The matrix of each channel's convolution along an axis."""
    assert along.matrices is not None
    if weights is None or along.circular:
        matrix = theta @ along.matrices[0]
    else:
        images = (weights[:, :, None] * theta).transpose(0, 1).flatten(1)
        matrix = torch.cat([theta, images], dim=1) @ along.matrices.flatten(0, 1)
    if along.is_halved:
        return matrix.view(-1, 2, along.points // 2, along.points // 2)
    return matrix.view(-1, along.points, along.points)


def _apply(v: Field, axis: int, matrix: AxisMatrix) -> Field:
    """Multiply a field by one matrix per channel along an axis."""
    n_dim = v.ndim - 2
    middle = 0 < axis < n_dim - 1
    if middle or needs_plain_operators(v, matrix):
        columns = v.reshape(*v.shape[:2], prod(v.shape[2 : axis + 2]), v.shape[axis + 2], -1)
        if matrix.ndim == 4:
            before = columns.shape[2]
            halves = _halves(columns.transpose(1, 2).flatten(0, 1))
            out = _joined(torch.matmul(matrix.flatten(0, 1), halves))
            return out.unflatten(0, (-1, before)).transpose(1, 2).reshape(v.shape)
        return torch.matmul(matrix[:, None], columns).view(v.shape)
    if axis == 0:
        return _Multiply.apply(matrix, v.flatten(3) if n_dim > 1 else v[..., None]).view(v.shape)
    # The last axis: the transposed product, of transposed views.
    return _Multiply.apply(matrix, v.flatten(2, -2).mT).mT.reshape(v.shape)


class _Multiply(torch.autograd.Function):
    """M_r x_br for all samples b and channels r: no matrix is copied for every sample."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, x: Tensor) -> Tensor:
        ctx.save_for_backward(matrix, x)
        if matrix.ndim == 4:
            return _joined(_each(matrix.flatten(0, 1), _halves(x)))
        return _each(matrix, x)

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, Tensor | None]:
        matrix, x = ctx.saved_tensors
        is_halved = matrix.ndim == 4
        blocks = matrix.flatten(0, 1) if is_halved else matrix
        if is_halved:
            # Sums and differences are their own transpose.
            x, dout = _halves(x), _halves(dout)
        dmatrix = dx = None
        # Who calls backward() within autocast would have the first product rounded.
        with no_autocast(dout.device.type):
            if torch.is_grad_enabled():
                dmatrix, dx = (dout @ x.mT).sum(0), blocks.mT @ dout
            else:
                dmatrix = _summed(dout, x.mT) if ctx.needs_input_grad[0] else None
                dx = _each(blocks.mT, dout) if ctx.needs_input_grad[1] else None
        if is_halved:
            dmatrix = None if dmatrix is None else dmatrix.view(matrix.shape)
            dx = None if dx is None else _joined(dx)
        return dmatrix, dx


def _halves(
    x: Float[Tensor, "batch channel n columns"],
) -> Float[Tensor, "batch two_channels half columns"]:
    """The sum and the difference of the two halves of every column, as channels of their own."""
    first, second = x.chunk(2, dim=2)
    if torch.is_grad_enabled() or needs_plain_operators(x):
        return torch.stack([first + second, first - second], dim=2).flatten(1, 2)
    half, columns = first.shape[2:]
    out = _empty((*x.shape[:2], 2), half, columns, x)
    torch.add(first, second, out=out[:, :, 0])
    torch.sub(first, second, out=out[:, :, 1])
    return out.flatten(1, 2)


def _joined(
    halves: Float[Tensor, "batch two_channels half columns"],
) -> Float[Tensor, "batch channel n columns"]:
    """The columns of which these are the sums and the differences, times 2."""
    plus, minus = halves.unflatten(1, (-1, 2)).unbind(2)
    if torch.is_grad_enabled() or needs_plain_operators(halves):
        return torch.cat([plus + minus, plus - minus], dim=2)
    half, columns = halves.shape[2:]
    out = _empty(plus.shape[:2], 2 * half, columns, halves)
    torch.add(plus, minus, out=out[:, :, :half])
    torch.sub(plus, minus, out=out[:, :, half:])
    return out


def _empty(batch: Sequence[int], n: int, columns: int, like: Tensor) -> Tensor:
    """Room for `(*batch, n, columns)` in which rows or columns are contiguous as they are there."""
    if like.stride(-1) == 1 or like.shape[-1] == 1:
        return like.new_empty(*batch, n, columns)
    return like.new_empty(*batch, columns, n).mT


def _summed(
    x: Float[Tensor, "batch channel n columns"], y: Float[Tensor, "batch channel columns n"]
) -> Float[Tensor, "channel n n"]:
    """Σ_b x_br y_br, added up in place."""
    out = torch.bmm(x[0], y[0])
    for first, second in zip(x[1:], y[1:], strict=True):
        out.baddbmm_(first, second)
    return out


def _each(
    matrix: Float[Tensor, "channel n n"], x: Float[Tensor, "batch channel n columns"]
) -> Float[Tensor, "batch channel n columns"]:
    """M_r x_br, laid out in memory as x is."""
    out = torch.empty_like(x)
    for sample, result in zip(x, out, strict=True):
        if sample.is_contiguous():
            torch.bmm(matrix, sample, out=result)
        else:
            torch.bmm(sample.mT, matrix.mT, out=result.mT)
    return out


def _by_fft(
    v: Field,
    axis: int,
    theta: Float[Tensor, "channel modes"],
    along: AxisModes,
    weights: Float[Tensor, "2 channel"] | None,
) -> Field:
    n, period = along.points, along.period
    v = v.movedim(axis + 2, -1)
    v_hat = torch.fft.rfft(v, n=period)
    spread = (-1, *[1] * (v.ndim - 3), period // 2 + 1)
    out_hat = _spectrum(theta @ along.phi_hat).view(spread) * v_hat
    if weights is not None and not along.circular:
        images = sum(
            w[:, None] * (theta @ rows) for w, rows in zip(weights, along.images_hat, strict=True)
        )
        # j → −1 − j: the conjugate spectrum, moved back by one point.
        angle = 2 * pi / period * torch.arange(period // 2 + 1, dtype=v.dtype, device=v.device)
        mirrored = v_hat.conj() * torch.polar(torch.ones_like(angle), angle)
        out_hat = out_hat + _spectrum(images).view(spread) * mirrored
    return torch.fft.irfft(out_hat, n=period)[..., :n].movedim(-1, axis + 2)


def _by_fourier_matrices(
    v: Field,
    axis: int,
    theta: Float[Tensor, "channel modes"],
    along: AxisModes,
    weights: Float[Tensor, "2 channel"] | None,
) -> Field:
    """The same without complex numbers."""
    assert along.fourier is not None
    n, period = along.points, along.period
    v = v.movedim(axis + 2, -1)
    spread = (-1, *[1] * (v.ndim - 3), period // 2 + 1)

    def times(reals: Float[Tensor, "channel reals"], re: Tensor, im: Tensor) -> Tensor:
        by_re, by_im = (part.view(spread) for part in reals.unflatten(-1, (-1, 2)).unbind(-1))
        return torch.cat([by_re * re - by_im * im, by_re * im + by_im * re], dim=-1)

    re, im = (v @ along.fourier.analysis[0][:, :n].T).chunk(2, dim=-1)
    out = times(theta @ along.phi_hat, re, im)
    if weights is not None and not along.circular:
        lower, upper = along.images_hat
        w_lower, w_upper = weights[:, :, None]
        images = w_lower * (theta @ lower) + w_upper * (theta @ upper)
        angle = 2 * pi / period * torch.arange(period // 2 + 1, dtype=v.dtype, device=v.device)
        cosine, sine = torch.cos(angle), torch.sin(angle)
        out = out + times(images, re * cosine + im * sine, re * sine - im * cosine)
    return (out @ along.fourier.synthesis[0][:n].T).movedim(-1, axis + 2)


def _spectrum(reals: Float[Tensor, "channel reals"]) -> Tensor:
    return torch.view_as_complex(reals.unflatten(-1, (-1, 2)))
