"""Random lakes: wet, within the documented ranges, all different, the same on every grid."""

import numpy as np
import pytest
import torch

from sfo.grid import Grid
from sfo.pdes.shallow_water.initial import circular_dam, planar_dam, random_water


def box(*shape):
    return Grid(shape, (-2.5, -2.5), (2.5, 2.5), offset=0.5, periodic=False)


def lake(seed, grid):
    return random_water(np.random.default_rng(seed), grid)


@pytest.fixture(scope="module")
def lakes():
    """h and b of 300 seeds."""
    pairs = [lake(seed, box(32, 32)) for seed in range(300)]
    return tuple(torch.cat(fields) for fields in zip(*pairs, strict=True))


def test_ranges_are_as_documented(lakes):
    """0 ≤ b < 0.6, 0.4 < h < 2.6, and the surface is never below 1."""
    h, b = lakes
    assert b.min() >= 0
    assert 0.3 < b.max() < 0.6
    assert h.min() > 0.4
    assert 1.7 < h.max() < 2.6
    assert (h + b).min() > 1 - 1e-12


def test_all_lakes_differ(lakes):
    """Neither two depths nor two beds come close to each other."""
    for field in lakes:
        rows = field.flatten(1)
        distance = torch.cdist(rows, rows, p=float("inf"))
        assert (distance + torch.eye(len(rows))).min() > 1e-3


@pytest.mark.parametrize("shift", [1e-9, 1e-3])
def test_the_closest_dams_differ(shift):
    """However little a dam moves, its array moves along: at least one cell is on the ramp."""
    grid = box(128, 128)
    for radius in np.linspace(0.3, 0.7, 21):
        here, there = (circular_dam(grid, 1.0, (0, 0), r) for r in (radius, radius + shift))
        assert (there - here).max() > 0.99 * min(shift / grid.spacing[0], 0.01)
    for angle in np.linspace(0, 6, 21):
        here, there = (planar_dam(grid, 1.0, (0, 0), angle, d) for d in (0.3, 0.3 + shift))
        assert (here - there).max() > 0.99 * min(shift / grid.spacing[0], 0.01)


def test_dams_hold_what_sharp_ones_hold():
    """The ramp of a circular dam keeps its volume, that of a dam along y each cell's mean."""
    grid = box(64, 64)
    area = grid.spacing[0] * grid.spacing[1]
    for centre in ((0.0, 0.0), (0.3, -0.21)):
        volume = float(circular_dam(grid, 0.5, centre, radius=1.0).sum()) * area
        assert volume == pytest.approx(0.5 * np.pi, rel=1e-3)
    dam = planar_dam(grid, 1.0, (0.0, 0.0), angle=0.0, distance=0.7)
    edges = torch.linspace(-2.5, 2.5, 65, dtype=torch.float64)
    mean = (edges[1:, None] - 0.7).clamp(min=0) - (edges[:-1, None] - 0.7).clamp(min=0)
    torch.testing.assert_close(dam, (mean / grid.spacing[0]).expand(64, 64))


def test_a_seed_is_a_lake_on_every_grid():
    """With three times the points, the common ones are the same but for the dams' edges."""
    for seed in range(20):
        coarse, fine = lake(seed, box(48, 48)), lake(seed, box(144, 144))
        assert (coarse[1] - fine[1][:, 1::3, 1::3]).abs().max() < 1e-12
        moved = (coarse[0] - fine[0][:, 1::3, 1::3]).abs() > 1e-12
        assert moved.double().mean() < 0.06


def test_one_axis_is_refused():
    """Lakes have two axes."""
    with pytest.raises(ValueError, match="two axes"):
        random_water(np.random.default_rng(0), Grid((8,), (0.0,), (1.0,)))
