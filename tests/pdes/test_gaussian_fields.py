"""Gaussian random fields: their sums, their variance, and their independence of the grid."""

import itertools
import math

import numpy as np
import pytest
import torch

from sfo.grid import Grid
from sfo.pdes.gaussian_fields import neumann_gaussian, periodic_gaussian


def rng():
    return np.random.default_rng(3)


@pytest.mark.parametrize("n_dim", [1, 2, 3])
@pytest.mark.parametrize("offset", [0.0, 0.5])
def test_a_periodic_field_is_its_sum_of_waves(n_dim, offset):
    """Wave by wave, with the numbers that the generator gives to each, long waves first."""
    grid = Grid((5,) * n_dim, (0.0,) * n_dim, (2.0, 3.0, 1.0)[:n_dim], offset=offset)
    field = periodic_gaussian(rng(), grid, sigma=2.0, tau=3.0, alpha=2.5)[0]
    waves = sorted(
        itertools.product(range(-2, 3), repeat=n_dim), key=lambda m: (max(map(abs, m)), m[::-1])
    )
    draws = rng().standard_normal((len(waves), 2))
    slow = torch.zeros(grid.shape, dtype=torch.float64)
    for m, (a, b) in zip(waves, draws, strict=True):
        k = [2 * math.pi * i / length for i, length in zip(m, grid.upper, strict=True)]
        phase = sum(ki * x for ki, x in zip(k, grid.mesh(), strict=True))
        size = 2.0 * (sum(ki**2 for ki in k) + 9) ** -1.25 if any(m) else 0.0
        slow += size * (a * torch.cos(phase) - b * torch.sin(phase))
    torch.testing.assert_close(field, slow, rtol=0, atol=1e-14)


def test_a_field_without_slope_at_the_walls_is_its_sum_of_cosines():
    grid = Grid((4, 4), (0.0, 0.0), (1.0, 2.0), offset=0.5, periodic=False)
    field = neumann_gaussian(rng(), grid, sigma=2.0, tau=3.0, alpha=2.0)[0]
    waves = sorted(itertools.product(range(4), repeat=2), key=lambda m: (max(m), m[::-1]))
    slow = torch.zeros(4, 4, dtype=torch.float64)
    (x, y), numbers = grid.mesh(), rng().standard_normal(16)
    for (i, j), xi in zip(waves, numbers, strict=True):
        kx, ky = math.pi * i, math.pi * j / 2
        norm = math.sqrt((1 + (i > 0)) * (1 + (j > 0)) / 2)
        size = 2.0 / (kx**2 + ky**2 + 9) if i or j else 0.0
        slow += size * xi * norm * torch.cos(kx * x) * torch.cos(ky * y)
    torch.testing.assert_close(field, slow, rtol=0, atol=1e-14)


@pytest.mark.parametrize("draw", [periodic_gaussian, neumann_gaussian])
def test_a_finer_grid_has_the_same_field_with_shorter_waves(draw):
    """They agree but for waves that the coarse grid lacks, which are 2 % of the field."""
    offset = 0.0 if draw is periodic_gaussian else 0.5
    fields = []
    for n in (27, 81):  # odd numbers: every third cell centre of 81 is one of 27
        grid = Grid((n, n), (0.0, 0.0), (1.0, 1.0), offset=offset)
        fields.append(draw(rng(), grid, sigma=1.0, tau=3.0, alpha=3.0)[0])
    coarse, fine = fields[0], fields[1][offset > 0 :: 3, offset > 0 :: 3]
    assert 1e-6 < (coarse - fine).norm() / fine.norm() < 0.03


@pytest.mark.parametrize("draw", [periodic_gaussian, neumann_gaussian])
def test_the_variance_is_the_sum_of_the_eigenvalues(draw):
    """Mean over points and 400 fields of u² = Σₖ σ² (|k|² + τ²)^(−α), on a unit square."""
    grid = Grid((16, 16), (0.0, 0.0), (1.0, 1.0), offset=0.5)
    source = np.random.default_rng(0)
    fields = [draw(source, grid, sigma=2.0, tau=4.0, alpha=2.0) for _ in range(400)]
    waves = 2 * np.arange(-7, 8) if draw is periodic_gaussian else np.arange(16)
    k = math.pi * waves
    eigenvalues = 4 * (k[:, None] ** 2 + k**2 + 16.0) ** -2
    eigenvalues[k == 0, k == 0] = 0
    assert torch.stack(fields).square().mean().item() == pytest.approx(eigenvalues.sum(), rel=0.05)
