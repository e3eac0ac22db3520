"""Random lakes for `ShallowWater`: a hilly bed, and a surface with bumps or behind a dam."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid

Range = tuple[float, float]
Point = Sequence[float] | np.ndarray


def random_water(
    rng: np.random.Generator, grid: Grid
) -> tuple[Float[Tensor, "1 X Y"], Float[Tensor, "1 X Y"]]:
    """The depth h of water at rest but not level, and the bathymetry b below, in float64.

    b is a sum of Gaussian hills. The surface h + b is 1, raised by bumps, by a planar or by a
    circular dam, which are equally likely. All ranges are uniform; L is the shorter side of
    the box.

    | part         | number | height    | size               | place                          |
    |--------------|--------|-----------|--------------------|--------------------------------|
    | hills        | 1..3   | 0.05..0.2 | σ = 0.06 L..0.2 L  | anywhere                       |
    | bumps        | 1..4   | 0.1..0.4  | σ = 0.04 L..0.1 L  | middle 70 % of each side       |
    | planar dam   | 1      | 0.2..0.8  | a half-plane       | edge up to L/4 off the middle, |
    |              |        |           |                    | high side in any direction     |
    | circular dam | 1      | 0.2..0.8  | r = 0.08 L..0.25 L | middle 50 % of each side       |

    So 0 ≤ b < 0.6 and 0.4 < h < 2.6: all is wet. The edge of a dam is a ramp as wide as a cell,
    nearly the mean of a sharp edge over each cell, so that dams that differ ever so little
    have different arrays. The draws do not depend on the number of points: a seed stands for
    the same lake on every grid of a box.

    Example:
        >>> grid = Grid((64, 64), (-2.5, -2.5), (2.5, 2.5), offset=0.5, periodic=False)
        >>> h, b = random_water(np.random.default_rng(0), grid)
        >>> h.shape, b.shape
        (torch.Size([1, 64, 64]), torch.Size([1, 64, 64]))
    """
    if grid.n_dim != 2:
        raise ValueError(f"`grid` must have two axes, got the shape {grid.shape}.")
    sides = np.subtract(grid.upper, grid.lower)
    side, middle = sides.min(), np.add(grid.lower, grid.upper) / 2

    def point(part: float) -> np.ndarray:
        return middle + part * sides * rng.uniform(-0.5, 0.5, size=2)

    def gaussians(most: int, height: Range, width: Range, part: float) -> Tensor:
        number = rng.integers(1, most, endpoint=True)
        draws = [
            (rng.uniform(*height), point(part), side * rng.uniform(*width)) for _ in range(number)
        ]
        return torch.stack([gaussian(grid, *draw) for draw in draws]).sum(0)

    b = gaussians(3, height=(0.05, 0.2), width=(0.06, 0.2), part=1.0)
    kind = rng.integers(3)
    if kind == 0:
        rise = gaussians(4, height=(0.1, 0.4), width=(0.04, 0.1), part=0.7)
    elif kind == 1:
        angle, distance = rng.uniform(0, 2 * math.pi), side * rng.uniform(-0.25, 0.25)
        rise = planar_dam(grid, rng.uniform(0.2, 0.8), middle, angle, distance)
    else:
        rise = circular_dam(grid, rng.uniform(0.2, 0.8), point(0.5), side * rng.uniform(0.08, 0.25))
    return (1 + rise - b)[None], b[None]


def gaussian(grid: Grid, height: float, centre: Point, width: float) -> Float[Tensor, "X Y"]:
    """height · exp(−r² / 2 width²), r from the centre."""
    return height * torch.exp(-((_distance(grid, centre) / width) ** 2) / 2)


def circular_dam(grid: Grid, height: float, centre: Point, radius: float) -> Float[Tensor, "X Y"]:
    """`height` within the radius of the centre and 0 outside, with a ramp between."""
    return height * _ramp(grid, radius - _distance(grid, centre))


def planar_dam(
    grid: Grid, height: float, origin: Point, angle: float, distance: float
) -> Float[Tensor, "X Y"]:
    """`height` farther than `distance` from the origin in the direction of the angle, else 0."""
    x, y = grid.mesh()
    along = math.cos(angle) * (x - origin[0]) + math.sin(angle) * (y - origin[1])
    return height * _ramp(grid, along - distance)


def _distance(grid: Grid, point: Point) -> Float[Tensor, "X Y"]:
    x, y = grid.mesh()
    return torch.hypot(x - point[0], y - point[1])


def _ramp(grid: Grid, depth: Float[Tensor, "X Y"]) -> Float[Tensor, "X Y"]:
    """From 0 half a cell before an edge to 1 half a cell behind it."""
    return (0.5 + depth / math.prod(grid.spacing) ** 0.5).clamp(0, 1)
