"""Random initial fields of the one-dimensional benchmarks; each call draws one sample."""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid


def sum_of_waves(
    rng: np.random.Generator,
    grid: Grid,
    n_waves: int = 2,
    max_wave: int = 8,
    unit: float = 2 * math.pi,
) -> Float[Tensor, "1 n"]:
    """u(x) = Σᵢ Aᵢ sin(kᵢ x + φᵢ), with kᵢ one of 1, …, `max_wave` times `unit`.

    Aᵢ is uniform on (0, 1) and φᵢ on (0, 2π). The paper's `unit` is 2π; PDEBench counts waves
    to the period instead, on (−1, 1) a unit of π.

    Example:
        >>> grid = Grid((1024,), (-1.0,), (1.0,))
        >>> u = sum_of_waves(np.random.default_rng(0), grid)
        >>> bool(u.abs().max() <= 2)
        True
    """
    x = _axis(grid)
    longest = 2 * math.pi / (grid.upper[0] - grid.lower[0])
    if unit < 0.5 * longest or not math.isclose(unit / longest, round(unit / longest)):
        raise ValueError(
            f"`unit` must be a multiple of {longest:g}, the wave number of one period, got "
            f"unit={unit:g}."
        )
    k = unit * rng.integers(1, max_wave, endpoint=True, size=(n_waves, 1))
    amplitude = rng.uniform(size=(n_waves, 1))
    phase = rng.uniform(0, 2 * math.pi, size=(n_waves, 1))
    return torch.from_numpy((amplitude * np.sin(k * x + phase)).sum(axis=0, keepdims=True))


def normalised_waves(
    rng: np.random.Generator,
    grid: Grid,
    n_waves: int = 2,
    max_wave: int = 4,
    published_window: bool = False,
) -> Float[Tensor, "1 n"]:
    """PDEBench's initial fields of the diffusion–reaction equation, scaled to 0 ≤ u ≤ 1.

        u(x) = Σₖ Aₖ sin(2πk cₖ x / p + φₖ),    k = 1, …, max_wave

    where cₖ counts how often k came up in `n_waves` draws. One field in ten is replaced by its
    absolute value, then half of them change sign, then one in ten is cut off outside a window
    (xL, xR). The period p is the distance of the first from the last point, a step short of
    the equation's: so the benchmark has it, and a small jump of the slope with it.

    Args:
        published_window: False: xL is uniform on (0.1, 0.45) and xR on (0.55, 0.9), as meant.
            True: as in the published file, where the same random number that lets one field
            in ten have a window also places both its ends: xL < 0.135 and xR = xL + 0.45.
    """
    x = _axis(grid)
    x = (x - grid.lower[0]) / (grid.upper[0] - grid.lower[0])
    drawn = rng.integers(1, max_wave, endpoint=True, size=n_waves)
    wave = np.arange(1, max_wave + 1)[:, None]
    k = 2 * math.pi * wave * (drawn == wave).sum(axis=1, keepdims=True) / (x[-1] - x[0])
    amplitude = rng.uniform(size=(max_wave, 1))
    phase = rng.uniform(0, 2 * math.pi, size=(max_wave, 1))
    u = (amplitude * np.sin(k * x + phase)).sum(axis=0, keepdims=True)
    if rng.uniform() < 0.1:
        u = np.abs(u)
    u *= rng.choice([-1, 1])
    chance = rng.uniform()
    if chance < 0.1:
        left, right = (chance, chance) if published_window else rng.uniform(size=2)
        left, right = 0.1 + 0.35 * left, 0.55 + 0.35 * right
        u *= (np.tanh((x - left) / 0.01) - np.tanh((x - right) / 0.01)) / 2
    u -= u.min()
    return torch.from_numpy(u / u.max())


def _axis(grid: Grid) -> np.ndarray:
    if grid.n_dim != 1:
        raise ValueError(f"`grid` must have one axis, got the shape {grid.shape}.")
    return grid.coordinates()[0].numpy()
