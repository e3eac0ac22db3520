"""Gaussian random fields with the covariance σ² (−Δ + τ²)^(−α), in any dimension."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid


def periodic_gaussian(
    rng: np.random.Generator, grid: Grid, *, sigma: float, tau: float, alpha: float
) -> Float[Tensor, "1 *grid"]:
    """One periodic field without a mean,

        u(x) = σ Σₖ (|k|² + τ²)^(−α/2) (aₖ cos(k · x) − bₖ sin(k · x)),

    over all waves k ≠ 0 that the grid resolves, with standard normal aₖ and bₖ. Long waves are
    drawn first: on a finer grid the same random numbers give the same field with shorter waves
    added. x counts from the lower ends of the grid.

    Args:
        rng: Source of the random numbers.
        grid: Where the field is wanted.
        sigma: Factor σ of the standard deviation.
        tau: Wave number τ below which waves are about equally strong.
        alpha: Power α of the decay of shorter waves.

    Example:
        >>> grid = Grid((64, 64), (0.0, 0.0), (1.0, 1.0))
        >>> w = periodic_gaussian(np.random.default_rng(0), grid, sigma=7**1.5, tau=7, alpha=2.5)
        >>> bool(w.mean().abs() < 1e-15)
        True
    """
    half = (min(grid.shape) - 1) // 2
    waves = _nested(range(-half, half + 1), grid.n_dim)
    lengths = [b - a for a, b in zip(grid.lower, grid.upper, strict=True)]
    k = 2 * math.pi * waves / np.asarray(lengths)
    a, b = rng.standard_normal((len(waves), 2)).T
    size = sigma * ((k**2).sum(1) + tau**2) ** (-alpha / 2)
    size[0] = 0.0
    start = grid.offset * np.asarray(grid.spacing)
    coefficients = np.zeros(grid.shape, dtype=np.complex128)
    coefficients[tuple(waves.T)] = size * (a + 1j * b) * np.exp(1j * (k @ start))
    return torch.from_numpy(np.fft.ifftn(coefficients, norm="forward").real.copy())[None]


def neumann_gaussian(
    rng: np.random.Generator, grid: Grid, *, sigma: float, tau: float, alpha: float
) -> Float[Tensor, "1 *grid"]:
    """One field without a mean or a slope across the boundary of its box,

        u(x) = σ Σₖ (|k|² + τ²)^(−α/2) ξₖ Πᵢ cₖ cos(kᵢ xᵢ),    kᵢ = πm / length, m ≥ 0,

    with standard normal ξₖ and products of cosines of norm 1; as many waves along each axis as
    there are points. Long waves are drawn first, see `periodic_gaussian`.

    Args:
        rng: Source of the random numbers.
        grid: Where the field is wanted.
        sigma: Factor σ of the standard deviation.
        tau: Wave number τ below which waves are about equally strong.
        alpha: Power α of the decay of shorter waves.
    """
    n = min(grid.shape)
    waves = _nested(range(n), grid.n_dim)
    lengths = [b - a for a, b in zip(grid.lower, grid.upper, strict=True)]
    k = math.pi * waves / np.asarray(lengths)
    size = sigma * ((k**2).sum(1) + tau**2) ** (-alpha / 2)
    size[0] = 0.0
    field = np.zeros((n,) * grid.n_dim)
    field[tuple(waves.T)] = size * rng.standard_normal(len(waves))
    for x, lower, length in zip(grid.coordinates(), grid.lower, lengths, strict=True):
        cosines = np.cos(math.pi / length * np.outer(np.arange(n), x.numpy() - lower))
        cosines[1:] *= math.sqrt(2)
        # The first axis of waves becomes the last of points; after all axes they are in order.
        field = np.tensordot(field, cosines / math.sqrt(length), axes=(0, 0))
    return torch.from_numpy(field)[None]


def _nested(numbers: Sequence[int], n_dim: int) -> np.ndarray:
    """All rows of `n_dim` numbers, those whose largest is smallest first: (0, …, 0) leads."""
    rows = np.stack(np.meshgrid(*[numbers] * n_dim, indexing="ij"), axis=-1).reshape(-1, n_dim)
    return rows[np.lexsort((*rows.T, np.abs(rows).max(axis=1)))]
