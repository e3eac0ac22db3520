"""What the playground is asked about: an initial state, and how it is brought to other grids."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.fft import resample
from sfo.files import sha256
from sfo.grid import Grid


@dataclass(frozen=True)
class Case:
    """An initial state: a sample by its number, or fields that were drawn by hand.

    Args:
        seed: Number of the sample, if `drawn` is None.
        drawn: Input fields `(channel, *grid)` on the grid that the model was trained on.
    """

    seed: int = 0
    drawn: np.ndarray | None = None

    @property
    def key(self) -> str:
        """The same for the same state."""
        if self.drawn is None:
            return f"sample {self.seed}"
        return sha256(np.ascontiguousarray(self.drawn).tobytes())


def refine(
    fields: Float[Tensor, "channel *grid"], grid: Grid, fine: Grid
) -> Float[Tensor, "channel *fine"]:
    """Fields on the points of a finer grid of the same box, in float64.

    Periodic fields on nodes get no new frequencies; all others are interpolated linearly, and
    continued as constants beyond the outermost points.

    Example:
        >>> coarse = Grid((2,), (0.0,), (1.0,), periodic=False)
        >>> fine = Grid((4,), (0.0,), (1.0,), periodic=False)
        >>> refine(torch.tensor([[0.0, 1.0]]), coarse, fine).tolist()
        [[0.0, 0.5, 1.0, 1.0]]
    """
    fields = fields.to(torch.float64)
    waves = grid.periodic and grid.offset == 0 and fine.offset == 0
    points = zip(grid.coordinates(), fine.coordinates(), strict=True)
    for axis, (x, x_fine) in enumerate(points, start=1):
        if len(x) == len(x_fine):
            continue
        rows = fields.transpose(axis, -1)
        if waves:
            # `resample` keeps sums, as kernels want it; fields keep their values.
            rows = resample(rows.contiguous(), len(x_fine)) * (len(x_fine) / len(x))
        else:
            rows = _linear(rows, x, x_fine)
        fields = rows.transpose(axis, -1)
    return fields.contiguous()


def _linear(rows: Tensor, x: Tensor, x_fine: Tensor) -> Tensor:
    above = torch.searchsorted(x, x_fine).clamp(1, len(x) - 1)
    share = ((x_fine - x[above - 1]) / (x[above] - x[above - 1])).clamp(0, 1)
    return rows[..., above - 1] * (1 - share) + rows[..., above] * share


def every_nth(fields: Tensor, stride: int, n_dim: int) -> Tensor:
    """Every `stride`-th point along the last `n_dim` axes."""
    index: tuple[Any, ...] = (..., *[slice(None, None, stride)] * n_dim)
    return fields[index]


def strides(fine: Grid, trained: Grid, channels: int, *, least: int, most: int) -> list[int]:
    """Strides of the fine grid that make the grids to choose from, the coarsest first.

    They are the trained grid's stride, halved and doubled as often as it divides the points, with
    at least `least` points per axis and at most `most` numbers in `channels` of the fields.

    Example:
        >>> fine, trained = Grid((64,), (0.0,), (1.0,)), Grid((16,), (0.0,), (1.0,))
        >>> strides(fine, trained, 1, least=8, most=1000)
        [8, 4, 2, 1]
    """
    home = fine.shape[0] // trained.shape[0]
    found = [home]
    for factor, down in product((2, 4, 8), (True, False)):
        if not down and home % factor:
            continue
        stride = home * factor if down else home // factor
        shape = [n // stride for n in fine.shape]
        divides = all(n % stride == 0 for n in fine.shape)
        if divides and min(shape) >= least and channels * int(np.prod(shape)) <= most:
            found.append(stride)
    return sorted(set(found), reverse=True)
