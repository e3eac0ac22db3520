"""The published Maxwell set: random plane sources in a corner of a box, seen in its centre."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.checks import check_choice
from sfo.grid import Grid
from sfo.pdes.maxwell.equation import Maxwell, PlaneSource

MEDIUM = Maxwell()
"""The published medium and grid spacing."""

Period = Literal["random", "fixed"]


def random_sources(
    rng: np.random.Generator,
    *,
    equation: Maxwell = MEDIUM,
    corner: int = 16,
    per_plane: int = 6,
    wavelength: float = 1e-5,
    period: Period = "random",
) -> list[PlaneSource]:
    """Sources in the cells [0, corner)³: `per_plane` each in xy, xz and yz planes.

    Edges are 2 to 5 cells, amplitudes U(0, 1), phases U(0, 2π), and E lies along either axis of
    the plane. The draws come in the order of the public code: length and first cell, or
    position, of axes x, y and z, then amplitude, phase, polarisation, period.

    Args:
        rng: Source of the draws.
        equation: Its time step turns periods into steps.
        corner: Cells along an edge of the corner; patches are at most corner − 1 long.
        per_plane: Sources of each orientation.
        wavelength: λ of light in vacuum, in metres.
        period: `"random"`: λ/c times U(0.001, 1000), as in the public code, so that most sources
            hardly change during a run. `"fixed"`: λ/c, as the published text has it.

    Example:
        >>> sources = random_sources(np.random.default_rng(0), period="fixed")
        >>> len(sources), sources[0].period
        (18, 35)
    """
    if corner < 3:
        raise ValueError(f"`corner` must be at least 3, to hold a patch of 2 cells, got {corner}.")
    check_choice("period", period, Period)
    wave_steps = wavelength / equation.light_speed / equation.time_step
    if wave_steps * (1 if period == "fixed" else 1e3) < 1:
        raise ValueError(
            f"`wavelength` must be longer: at {wavelength} m no period is as long as a time step "
            f"of {equation.time_step:.3e} s."
        )
    return [
        _random_source(rng, normal, corner, wave_steps, period)
        for normal in ("z", "y", "x")
        for _ in range(per_plane)
    ]


def _random_source(
    rng: np.random.Generator, normal: str, corner: int, wave_steps: float, period: Period
) -> PlaneSource:
    lower, upper = [], []
    for axis in "xyz":
        edge = 1 if axis == normal else int(rng.integers(2, min(6, corner)))
        last = corner if axis == normal else corner - edge
        lower.append(int(rng.integers(0, last)))
        upper.append(lower[-1] + edge)
    amplitude, phase = rng.uniform(0, 1), rng.uniform(0, 2 * np.pi)
    polarization = "xyz".replace(normal, "")[rng.integers(0, 2)]
    steps = int(wave_steps + 0.5) if period == "fixed" else 0
    while steps == 0:
        steps = int(wave_steps * rng.uniform(1e-3, 1e3) + 0.5)
    return PlaneSource(
        lower=tuple(lower),
        upper=tuple(upper),
        polarization=polarization,
        amplitude=amplitude,
        period=steps,
        phase=phase,
    )


def simulate_driven_box(
    sources: Sequence[PlaneSource],
    *,
    equation: Maxwell = MEDIUM,
    box: int = 64,
    window: int = 32,
    warm_up: int = 250,
    every: int = 25,
    frames: int = 8,
) -> tuple[Float[Tensor, "time 6 window window window"], Float[Tensor, " time"], Grid]:
    """Drive a box of box³ cells from rest, and watch the window³ cells at its centre.

    Frames are kept after warm_up + every, warm_up + 2 every, … steps. The box repeats after
    box − 1 cells (`boundary="copy"`). Waves come into the window from outside, so that frames do
    not determine later ones: from one frame to the next they travel 4.5 cells.

    Args:
        sources: Best outside of the window, in a corner of (box − window) / 2 cells.
        equation: Medium, spacing and time step.
        box: Cells along an axis.
        window: Cells along an axis that are kept.
        warm_up: Steps before the first frame is awaited.
        every: Steps from frame to frame.
        frames: Number of frames.

    Returns:
        The fields in float64; the times of the frames, from 0 on; the grid of the window, from
        the origin on.

    Example:
        >>> sources = random_sources(np.random.default_rng(0), corner=6)
        >>> u, times, grid = simulate_driven_box(sources, box=24, window=12, frames=3)
        >>> u.shape, grid.shape
        (torch.Size([3, 6, 12, 12, 12]), (12, 12, 12))
    """
    if not 0 < window <= box or (box - window) % 2:
        raise ValueError(
            "`window` must be at most `box` and leave as many cells on either side, "
            f"got window={window}, box={box}."
        )
    times = equation.time_step * every * torch.arange(frames, dtype=torch.float64)
    u = equation.solve(
        torch.zeros(1, 6, box, box, box),
        equation.time_step * (warm_up + every) + times,
        sources,
        boundary="copy",
        crop=(box - window) // 2,
    )
    return u[0], times, equation.grid((window,) * 3, periodic=False)
