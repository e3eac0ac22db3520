"""The radial dam break of PDEBench: a column of water that collapses, as it was published."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid
from sfo.pdes.problem import check_constants, check_solved, check_times
from sfo.pdes.shallow_water.equation import checked_water


@dataclass(frozen=True)
class RadialDamBreak:
    """Shallow water on flat ground, h = 2 within a radius of the origin and h = 1 outside.

        ∂h/∂t  + ∂(hu)/∂x           + ∂(hv)/∂y           = 0
        ∂hu/∂t + ∂(hu² + g h²/2)/∂x + ∂(huv)/∂y          = 0
        ∂hv/∂t + ∂(huv)/∂x          + ∂(hv² + g h²/2)/∂y = 0

    The scheme of the published set, artefacts included: Roe's waves with an entropy fix and
    limited second-order corrections, in steps of 0.01, each along x and then along y; x and y
    are therefore not quite alike (0.025 in h). The boundary is open; on the published
    128 × 128 cells the waves do not reach it by t = 1. `ShallowWater` is the better solver.

    Args:
        gravity: g.
        lower, upper: Ends of the box along x and y.
        inner_depth, outer_depth: h within the radius and outside.
        time_step: dt, the same throughout.

    Example:
        >>> dam = RadialDamBreak()
        >>> h = dam.initial(dam.published_radius(0), dam.grid((32, 32)))
        >>> frames = dam.solve(h[None], times=[0.0, 0.5, 1.0])
        >>> frames.shape
        torch.Size([1, 3, 1, 32, 32])
    """

    gravity: float = 1.0
    lower: tuple[float, float] = (-2.5, -2.5)
    upper: tuple[float, float] = (2.5, 2.5)
    inner_depth: float = 2.0
    outer_depth: float = 1.0
    time_step: float = 0.01
    names: ClassVar[tuple[str, ...]] = ("h",)

    def __post_init__(self) -> None:
        check_constants(self, "gravity", "inner_depth", "outer_depth", "time_step")

    def grid(self, shape: Sequence[int] = (128, 128)) -> Grid:
        """The centres of the cells, of the published grid unless told otherwise."""
        return Grid(tuple(shape), self.lower, self.upper, offset=0.5, periodic=False)

    @staticmethod
    def published_radius(index: int) -> float:
        """The radius of sample 0, …, 999 of the published set: its index is its seed.

        Only 80 distances of cell centres from the origin lie in 0.3..0.7, so that the 1,000
        samples are 81 different ones, and each of 900, …, 999 occurs among the first 900.

        Example:
            >>> round(RadialDamBreak.published_radius(0), 7)
            0.5195254
        """
        return float(np.random.RandomState(index).uniform(0.3, 0.7))

    def initial(self, radius: float, grid: Grid) -> Float[Tensor, "1 X Y"]:
        """h by whether the centre of a cell is within the radius."""
        x, y = grid.mesh()
        inside = torch.sqrt(x**2 + y**2) <= radius
        return torch.where(inside, self.inner_depth, self.outer_depth).to(torch.float64)[None]

    def solve(
        self,
        initial: Float[Tensor, "sample 1 X Y"],
        times: Sequence[float] | np.ndarray | Tensor,
    ) -> Float[Tensor, "sample time 1 X Y"]:
        """h at the `times`, in float64.

        Args:
            initial: h > 0 of water at rest, the first frame.
            times: Increasing, with whole numbers of time steps between them.
        """
        water = checked_water(initial, channels=(1,))
        if water.min() == 0:
            raise ValueError(
                "`initial` must be wet everywhere, got depths of 0. `ShallowWater` also solves "
                "for water that runs over dry ground."
            )
        steps = [self._n_steps(end - start) for start, end in pairwise(check_times(times).tolist())]
        out = np.empty((len(water), len(steps) + 1, 1, *water.shape[2:]))
        for frames, h in zip(out, water.numpy(force=True), strict=True):
            state = np.concatenate([h, np.zeros((2, *h.shape[1:]))])
            frames[0] = h
            for frame, n_steps in zip(frames[1:], steps, strict=True):
                for _ in range(n_steps):
                    self._step(state)
                frame[0] = state[0]
        return check_solved(torch.from_numpy(out))

    def _n_steps(self, duration: float) -> int:
        n_steps = round(duration / self.time_step)
        # Times come in float32 too, where those near 1 are off by 1e-5 of a step.
        if n_steps < 1 or not math.isclose(n_steps * self.time_step, duration, rel_tol=1e-3):
            raise ValueError(
                f"`times` must be whole numbers of time_step={self.time_step:g} apart, "
                f"got an interval of {duration:g}. Choose `time_step` to divide it."
            )
        return n_steps

    def _step(self, state: np.ndarray) -> None:
        """Step (h, hu, hv) in place: all lines along x, then all lines along y."""
        from sfo.pdes.shallow_water.roe_sweep import sweep

        dx, dy = self.grid(state.shape[1:]).spacing
        h, hu, hv = state
        courant = max(
            sweep(h.T, hu.T, hv.T, self.time_step / dx, self.gravity),
            sweep(h, hv, hu, self.time_step / dy, self.gravity),
        )
        if courant > 1:
            raise ValueError(
                f"`time_step` must not let a wave cross more than a cell, got {self.time_step:g} "
                f"with a Courant number of {courant:.2f}. "
                f"Pass time_step={self.time_step / math.ceil(2 * courant):g} on this grid."
            )
        if not h.min() > 0:
            raise ValueError(
                "`initial` must not have water so shallow beside deep water that Roe's waves "
                "leave a cell dry. `ShallowWater` also solves for water that runs over dry ground."
            )
