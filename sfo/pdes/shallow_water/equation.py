"""The 2D shallow water equations over bathymetry: waves, bores, and shores that fall dry."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sfo.grid import Grid
from sfo.pdes.problem import (
    MOST_STEPS,
    Array,
    NotSolved,
    check_constants,
    check_fields,
    check_solved,
    check_times,
)
from sfo.pdes.residual import Frames, inside, spans, time_derivative
from sfo.pdes.shallow_water.riemann import half_slope, hll_flux


@dataclass(frozen=True)
class ShallowWater:
    """Depth h and velocity (u, v) of water over the ground b.

        ∂h/∂t  + ∂(hu)/∂x           + ∂(hv)/∂y           = 0
        ∂hu/∂t + ∂(hu² + g h²/2)/∂x + ∂(huv)/∂y          = −g h ∂b/∂x
        ∂hv/∂t + ∂(huv)/∂x          + ∂(hv² + g h²/2)/∂y = −g h ∂b/∂y

    Finite volumes of second order: limited slopes of h + b, h, u and v in every cell, a Riemann
    problem over the higher of the two grounds at every face (Audusse et al., "A fast and stable
    well-balanced scheme with hydrostatic reconstruction for shallow water flows", 2004), and
    Heun's method in time. To round-off, a lake at rest stays at rest whatever its bed and its
    shores, and walls keep the volume of water. No depth is ever negative.

    Args:
        gravity: g.
        lower, upper: Ends of the box along x and y.
        boundary: `"wall"` reflects; `"open"` continues the outermost cells, with zero gradient.
        courant: Largest step, times the rate at which the fastest wave crosses cells, added up
            over the axes. Waves are stable up to 1.
        dry_depth: In water shallower than this, u = hu / h is brought to 0 together with h.

    Example:
        >>> water = ShallowWater()
        >>> x, y = water.grid((32, 32)).mesh()
        >>> h = 1 + 0.5 * torch.exp(-4 * (x**2 + y**2))
        >>> frames = water.solve(h[None, None], times=[0.0, 0.5, 1.0])
        >>> frames.shape
        torch.Size([1, 3, 3, 32, 32])
        >>> bool((frames[0, :, 0].mean((1, 2)) - h.mean()).abs().max() < 1e-14)
        True
    """

    gravity: float = 1.0
    lower: tuple[float, float] = (-2.5, -2.5)
    upper: tuple[float, float] = (2.5, 2.5)
    boundary: Literal["wall", "open"] = "wall"
    courant: float = 0.9
    dry_depth: float = 1e-6
    names: ClassVar[tuple[str, ...]] = ("h", "u", "v")

    def __post_init__(self) -> None:
        if self.boundary not in ("wall", "open"):
            raise ValueError(f"`boundary` must be 'wall' or 'open', got {self.boundary!r}.")
        check_constants(self, "gravity", "dry_depth")
        if not 0 < self.courant <= 1:
            raise ValueError(f"`courant` must be above 0 and at most 1, got {self.courant}.")

    def grid(self, shape: Sequence[int]) -> Grid:
        """The centres of the cells."""
        return Grid(tuple(shape), self.lower, self.upper, offset=0.5, periodic=False)

    def velocity(self, state: Float[Tensor, "*batch 3 X Y"]) -> Float[Tensor, "*batch 2 X Y"]:
        """(u, v) = (hu, hv) / h, brought to 0 with h below `dry_depth`."""
        h = state[..., :1, :, :]
        return 2 * h * state[..., 1:, :, :] / (h**2 + h.clamp(min=self.dry_depth) ** 2)

    def rhs(
        self, state: Float[Tensor, "*batch 3 X Y"], bathymetry: Float[Tensor, "*batch 1 X Y"]
    ) -> Float[Tensor, "*batch 3 X Y"]:
        """∂/∂t of the means of (h, hu, hv) over the cells; differentiable."""
        h = state[..., :1, :, :]
        cells = torch.cat([h + bathymetry, h, self.velocity(state)], dim=-3)
        dx, dy = self.grid(state.shape[-2:]).spacing
        return self._gain(cells, axis=0) / dx + self._gain(cells, axis=1) / dy

    def _gain(
        self, cells: Float[Tensor, "*batch 4 X Y"], axis: int
    ) -> Float[Tensor, "*batch 3 X Y"]:
        """What cells of (h + b, h, u, v) with edges of length 1 gain along one axis."""
        dim, n = axis - 2, cells.shape[axis - 2]
        padded = self._with_ghosts(cells, axis)
        half = half_slope(padded, dim)
        centre = padded.narrow(dim, 1, n + 2)
        # A face has one cell's upper end on its left and the next one's lower end on its right.
        level_l, h_l, *velocity_l = (centre + half).narrow(dim, 0, n + 1).unbind(-3)
        level_r, h_r, *velocity_r = (centre - half).narrow(dim, 1, n + 1).unbind(-3)
        ground = torch.maximum(level_l - h_l, level_r - h_r)
        mass, normal_l, normal_r, transverse = hll_flux(
            ((level_l - ground).clamp(min=0), velocity_l[axis], velocity_l[1 - axis]),
            ((level_r - ground).clamp(min=0), velocity_r[axis], velocity_r[1 - axis]),
            self.gravity,
        )

        def net(inflow: Tensor, outflow: Tensor) -> Tensor:
            return inflow.narrow(dim, 0, n) - outflow.narrow(dim, 1, n)

        # The pressures that the fluxes leave out, the ground's steps at the faces and its slope
        # inside add up to −g h ∂(h + b): nothing is left to cancel when the level is flat.
        level_rise = 2 * half.select(-3, 0).narrow(dim, 1, n)
        h = cells.select(-3, 1)
        momentum = [net(normal_r, normal_l) - self.gravity * h * level_rise]
        momentum.insert(1 - axis, net(transverse, transverse))
        return torch.stack([net(mass, mass), *momentum], dim=-3)

    def _with_ghosts(self, cells: Tensor, axis: int) -> Tensor:
        """The cells between two more at either end of the axis, as the boundary has them."""
        dim, n = axis - 2, cells.shape[axis - 2]
        sign = cells.new_ones(4, 1, 1)
        if self.boundary == "wall":
            sign[2 + axis] = -1
            ends = [1, 0], [n - 1, n - 2]
        else:
            ends = [0, 0], [n - 1, n - 1]
        low, high = (
            sign * cells.index_select(dim, torch.tensor(index, device=cells.device))
            for index in ends
        )
        return torch.cat([low, cells, high], dim=dim)

    @torch.no_grad()
    def solve(
        self,
        initial: Float[Tensor, "sample channel X Y"],
        times: Sequence[float] | np.ndarray | Tensor,
        bathymetry: Float[Tensor, "sample 1 X Y"] | None = None,
    ) -> Float[Tensor, "sample time 3 X Y"]:
        """(h, u, v) at the `times`, in float64.

        Every sample has steps of its own, so that none depends on its company. They are as
        long as `courant` allows and the next frame asks for, and shorter where a longer one
        would take more water from a cell than there is.

        Args:
            initial: The first frame: h of water at rest, or (h, u, v).
            times: Increasing.
            bathymetry: b; None stands for flat ground.
        """
        water = checked_water(initial, channels=(1, 3))
        instants = check_times(times).tolist()
        if bathymetry is None:
            bathymetry = torch.zeros_like(water[:, :1])
        b = check_fields(bathymetry, "bathymetry", n_dim=2).to(water)
        if b.shape != water[:, :1].shape:
            raise ValueError(
                f"`bathymetry` must be of the shape {tuple(water[:, :1].shape)}, as `initial` "
                f"has it, got {tuple(bathymetry.shape)}."
            )
        samples, channels, *shape = water.shape
        out = water.new_zeros(samples, len(instants), 3, *shape)
        out[:, 0, :channels] = water
        for frames, ground in zip(out, b, strict=True):
            state = torch.cat([frames[0, :1], frames[0, :1] * frames[0, 1:]])
            for frame, (start, end) in zip(frames[1:], pairwise(instants), strict=True):
                state = self._advance(state, ground, end - start)
                frame[:1], frame[1:] = state[:1], self.velocity(state)
        return check_solved(out)

    def residual(
        self, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Float[Tensor, " time"]
    ) -> tuple[Tensor, Tensor]:
        """τ (∂/∂t − rhs) of (h, hu, hv) at all frames but the first, and these states.

        No part is stiff: waves cross about a cell from one frame to the next.

        Args:
            u: (h, u, v) of solutions, or predictions.
            given: Fields of the input by name, of which the ground `b` is used.
            grid: Grid of u, maybe a part of the solver's cells.
            times: Times of the frames.
        """
        h, velocity = u[:, :, :1], u[:, :, 1:]
        state = torch.cat([h, h * velocity], dim=2)
        ground, later = given["b"][:, None], state[:, 1:]
        # Riemann problems leave some fifty fields to differentiate through. They are computed
        # again on the way back, a few frames at a time: all frames would take gigabytes.
        rhs = torch.cat(
            [
                checkpoint(self.rhs, part, ground, use_reentrant=False)
                for part in later.split(8, dim=1)
            ],
            dim=1,
        )
        tau = spans(times).to(u).view(-1, 1, 1, 1)
        return inside(tau * (time_derivative(state, times) - rhs), grid, margin=2), later

    def _advance(self, state: Tensor, bathymetry: Tensor, duration: float) -> Tensor:
        """The state after `duration`."""
        n_steps = 0
        while n_steps != 1:
            crossed = duration * self._rate(state) / self.courant
            if not crossed < MOST_STEPS:
                raise NotSolved(f"A time of {duration:g} would take {crossed:.3g} steps.")
            n_steps = max(1, math.ceil(crossed))
            while (after := self._heun(state, bathymetry, duration / n_steps)) is None:
                n_steps *= 2
            state = after
            duration -= duration / n_steps
        return state

    def _rate(self, state: Tensor) -> float:
        """Cells that the fastest wave crosses in a unit of time, added up over the axes."""
        h, (u, v) = state[0], self.velocity(state)
        dx, dy = self.grid(h.shape).spacing
        c = (self.gravity * h).sqrt()
        return float(((u.abs() + c) / dx + (v.abs() + c) / dy).max())

    def _heun(self, state: Tensor, bathymetry: Tensor, step: float) -> Tensor | None:
        """The state one step later; None if some depth would be negative on the way.

        A shorter step always helps: through a face flows at most the depth on its upwind side
        times the fastest wave there, and the depths at the faces of a cell have the mean h.
        So each stage keeps h ≥ 0 where that wave's Courant number is at most ½.
        """
        first = state + step * self.rhs(state, bathymetry)
        if first[0].min() < 0:
            return None
        second = first + step * self.rhs(first, bathymetry)
        after = (state + second) / 2
        return None if after[0].min() < 0 else after


def checked_water(initial: Array, channels: Sequence[int]) -> Float[Tensor, "sample _ X Y"]:
    """Initial states in float64, found to be of the right shape, finite, and not below ground."""
    water = check_fields(initial, "initial", channels, n_dim=2, least_points=2)
    if (lowest := float(water[:, 0].min())) < 0:
        raise ValueError(
            f"`initial` must have depths h ≥ 0, got {lowest:g}. Where the ground b lies above "
            "the surface, the depth is (surface − b).clamp(min=0)."
        )
    return water
