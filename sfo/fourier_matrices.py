"""Fourier transforms of real fields as real matrix products, for a few frequencies or without FFT.

Axis after axis, v̂ is v times a matrix of cosines and sines. No number is complex: the real and
imaginary part are an index of their own, which the matrices put where the next axis needs it:

    (…, n₁, n₂) → (…, n₁, 2, k₂) = (…, n₁ · 2, k₂) → (…, 2 · k₁, k₂)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import pi, prod

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from sfo import fft
from sfo.shapes import Field

Planar = Float[Tensor, "batch channel 2 freq"]
"""v̂(k) with the frequencies flattened: real and imaginary part."""


@dataclass(frozen=True, eq=False)
class FourierMatrices:
    """What `sfo.fft` computes, with its conventions, as products with these matrices.

    Attributes:
        shape: The periodic grid.
        analysis: For each axis, the matrix from points to frequencies.
        synthesis: For each axis, the matrix from frequencies to points.
    """

    shape: tuple[int, ...]
    analysis: tuple[Float[Tensor, "_ _"], ...]
    synthesis: tuple[Float[Tensor, "_ _"], ...]

    def map(self, change: Callable[[Tensor], Tensor]) -> "FourierMatrices":
        """The same with every tensor changed."""
        analysis, synthesis = (tuple(map(change, m)) for m in (self.analysis, self.synthesis))
        return FourierMatrices(self.shape, analysis, synthesis)

    def rfftn(self, v: Field) -> Planar:
        """Transform a field, which zeros continue to the periodic grid where it is shorter."""
        batch, channels, *points = v.shape
        frequencies = fft.frequency_shape(self.shape)
        x = v @ self.analysis[-1][:, : points[-1]].T
        for axis in reversed(range(len(points) - 1)):
            matrix = self.analysis[axis][:, : 2 * points[axis]]
            x = left_multiply(matrix, x, prod(frequencies[axis + 1 :]))
        return x.reshape(batch, channels, 2, prod(frequencies))

    def irfftn(self, v_hat: Planar, points: Sequence[int] | None = None) -> Field:
        """Transform back to a real field, or to its first points along each axis."""
        points = self.shape if points is None else points
        frequencies = fft.frequency_shape(self.shape)
        x = v_hat
        for axis, n in enumerate(points[:-1]):
            matrix = self.synthesis[axis][: 2 * n]
            x = left_multiply(matrix, x, prod(frequencies[axis + 1 :]))
        x = x.reshape(*v_hat.shape[:2], *points[:-1], 2 * frequencies[-1])
        return x @ self.synthesis[-1][: points[-1]].T


def fourier_matrices(shape: Sequence[int]) -> FourierMatrices:
    """The matrices of a periodic grid, in float64.

    Example:
        >>> line = fourier_matrices([4])
        >>> v = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]], dtype=torch.float64)
        >>> line.rfftn(v)[0, 0, 0].round(decimals=9)
        tensor([10., -2., -2.], dtype=torch.float64)
        >>> torch.dist(line.irfftn(line.rfftn(v)), v) < 1e-12
        tensor(True)
    """
    *others, n_last = shape
    half = waves(n_last, range(n_last // 2 + 1))
    weights = fft.half_weights(shape) / n_last
    analysis = [analysis_matrix(waves(n, range(n)).conj(), last=False) for n in others]
    synthesis = [synthesis_matrix(waves(n, range(n)).T / n, last=False) for n in others]
    return FourierMatrices(
        tuple(shape),
        (*analysis, analysis_matrix(half.conj(), last=True)),
        (*synthesis, synthesis_matrix(half.T * weights, last=True)),
    )


def waves(n: int, k: Sequence[int]) -> Complex[Tensor, "freq n"]:
    """exp(2πi k x/n), in double precision."""
    # Whole turns are dropped as integers, which costs no digits.
    turns = torch.tensor(k)[:, None] * torch.arange(n) % n
    angle = turns * torch.tensor(2 * pi / n, dtype=torch.float64)
    return torch.polar(torch.ones_like(angle), angle)


def analysis_matrix(
    matrix: Complex[Tensor, "freq n"], *, last: bool
) -> Float[Tensor, "rows columns"]:
    """From n points to frequencies, real: (n, 2) → (2, K), or (n) → (2, K) along the last axis."""
    frequencies, n = matrix.shape
    real = _as_real(matrix)
    if last:
        return real[:, :, 0].reshape(2 * frequencies, n)
    return real.transpose(2, 3).reshape(2 * frequencies, 2 * n)


def synthesis_matrix(
    matrix: Complex[Tensor, "n freq"], *, last: bool
) -> Float[Tensor, "rows columns"]:
    """From frequencies to n points, real: (2, K) → (n, 2), or (2, K) → (n) along the last axis."""
    n, frequencies = matrix.shape
    real = _as_real(matrix)
    if last:
        return real[0].reshape(n, 2 * frequencies)
    return real.transpose(0, 1).reshape(2 * n, 2 * frequencies)


def left_multiply(
    matrix: Float[Tensor, "rows columns"], x: Float[Tensor, "..."], rest: int
) -> Float[Tensor, "batch rows rest"]:
    """The matrix times x, which is taken for `(batch, columns, rest)`."""
    x = x.reshape(-1, matrix.shape[1], rest)
    return torch.bmm(matrix.expand(x.shape[0], -1, -1), x)


def _as_real(matrix: Complex[Tensor, "rows columns"]) -> Float[Tensor, "2 rows 2 columns"]:
    """The real matrix that acts on (Re z, Im z) as this one acts on z."""
    re, im = matrix.real, matrix.imag
    return torch.stack([torch.stack([re, -im], dim=1), torch.stack([im, re], dim=1)])
