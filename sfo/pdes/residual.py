"""What residuals in time share: derivatives over frames, and the cells that know neighbours."""

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid

Frames = Float[Tensor, "sample time field *grid"]


def time_derivative(u: Frames, times: Float[Tensor, " time"]) -> Frames:
    """Of second order at all frames but the first: central, and one-sided at the last.

    Central differences alone have one equation less than unknown frames: they link every other
    frame, and leave the second one free.
    """
    (rate,) = torch.gradient(u, spacing=(times.to(u),), dim=1, edge_order=2)
    return rate[:, 1:]


def spans(times: Float[Tensor, " time"]) -> Float[Tensor, " _"]:
    """τ, from the first to the last of the three frames in a difference."""
    tau = times[2:] - times[:-2]
    return torch.cat([tau, tau[-1:]])


def inside(v: Float[Tensor, "sample time part *all"], grid: Grid, margin: int) -> Tensor:
    """The cells that know all their neighbours: every one on a solver's own grid.

    On a coarser one, whose points are no longer the centres of cells, the values beyond the
    ends are not where `rhs` takes them to be, which concerns `margin` cells.
    """
    if grid.offset == 0.5:
        return v
    every, kept = slice(None), slice(margin, -margin)
    return v[(every, every, every, *[kept] * grid.n_dim)]
