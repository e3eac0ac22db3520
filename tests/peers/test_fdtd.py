"""Yee's scheme against the package fdtd, which made the published set."""

import numpy as np
import pytest
import torch

from sfo.pdes.maxwell import Maxwell, PlaneSource
from sfo.pdes.maxwell.plane_sources import random_sources, simulate_driven_box

pytestmark = pytest.mark.peers


def fdtd_frames(sources, box, steps):
    """The fields of fdtd after each number of steps, (frame, 6, box, box, box)."""
    fdtd = pytest.importorskip("fdtd")
    fdtd.set_backend("numpy")
    grid = fdtd.Grid((box,) * 3, grid_spacing=5e-7, permittivity=10, permeability=1)
    grid[0, :, :] = fdtd.PeriodicBoundary()
    grid[:, 0, :] = fdtd.PeriodicBoundary()
    grid[:, :, 0] = fdtd.PeriodicBoundary()
    for source in sources:
        cells = tuple(slice(a, b) for a, b in zip(source.lower, source.upper, strict=True))
        grid[cells] = fdtd.PlaneSource(
            period=source.period,
            amplitude=source.amplitude,
            phase_shift=source.phase,
            polarization=source.polarization,
        )
    frames = []
    for start, stop in zip([0, *steps], steps, strict=False):
        grid.run(stop - start, progress_bar=False)
        frames.append(np.concatenate([grid.E, grid.H], axis=-1))
    return torch.from_numpy(np.moveaxis(np.stack(frames), -1, 1))


def test_time_step_equals_fdtds():
    fdtd = pytest.importorskip("fdtd")
    grid = fdtd.Grid((4, 4, 4), grid_spacing=5e-7, permittivity=10, permeability=1)
    assert Maxwell().time_step == grid.time_step


def test_every_source_equals_fdtds():
    """All orientations and polarisations at once, overlapping, some touching the faces."""
    patches = [
        ((0, 3, 2), (4, 6, 3), "x"),
        ((2, 2, 0), (5, 7, 1), "y"),
        ((1, 4, 3), (4, 5, 6), "x"),
        ((0, 0, 2), (3, 1, 4), "z"),
        ((0, 0, 0), (1, 4, 5), "y"),
        ((19, 15, 16), (20, 20, 19), "z"),
    ]
    sources = [
        PlaneSource(lower, upper, polarization, amplitude=1 - 0.1 * i, period=9 + i, phase=0.5 * i)
        for i, (lower, upper, polarization) in enumerate(patches)
    ]
    steps = [1, 2, 25, 60]
    theirs = fdtd_frames(sources, 20, steps)
    times = Maxwell().time_step * torch.tensor(steps, dtype=torch.float64)
    ours = Maxwell().solve(torch.zeros(1, 6, 20, 20, 20), times, sources, boundary="copy")[0]
    assert theirs[-1].abs().amax(dim=(1, 2, 3)).min() > 0.1
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("period", ["random", "fixed"])
def test_published_set_up_equals_fdtds(period):
    """18 random sources, 64³ cells, 450 steps, 8 frames of the centre."""
    sources = random_sources(np.random.default_rng(0), period=period)
    theirs = fdtd_frames(sources, 64, range(275, 451, 25))[..., 16:48, 16:48, 16:48]
    ours, _, _ = simulate_driven_box(sources)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)
