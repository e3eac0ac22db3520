"""Which points of a grid exchange messages: neighbours within a radius, by index arithmetic."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

Neighbours = Literal["box", "cross"]
Region = tuple[slice, ...]
"""Some of the points of a grid."""
Points = Float[Tensor, "*grid batch _"]
"""Points first: an edge connects two rows, and the linear maps are one GEMM each."""


class Neighbourhood:
    """Who is a neighbour of whom on a grid, by index arithmetic.

    The neighbours of point i are i + o for all offsets o within `radius` points along each axis
    ("box"), or along one axis only ("cross").
    """

    def __init__(self, n_dim: int, radius: int, neighbours: Neighbours, periodic: bool) -> None:
        self.radius, self.periodic = radius, periodic
        steps = range(-radius, radius + 1)
        box = [o for o in product(steps, repeat=n_dim) if any(o)]
        cross = [o for o in box if sum(map(bool, o)) == 1]
        self.offsets = box if neighbours == "box" else cross

    @property
    def reach(self) -> int:
        """Images of an axis' points before its first and after its last one."""
        return self.radius if self.periodic else 0

    def surround(self, v: Points) -> Points:
        """The field and, if it is periodic, as many of its images as neighbours can reach."""
        if not self.periodic:
            return v
        padding = [self.radius] * (2 * (v.ndim - 2))
        v = F.pad(v.movedim((-2, -1), (0, 1)), padding, mode="circular")
        return v.movedim((0, 1), (-2, -1))

    def surrounding_coordinates(self, r: Points) -> Points:
        """The coordinates of the surrounded grid: they continue past 0 and 1."""
        lines = [
            torch.arange(-self.reach, n + self.reach, dtype=r.dtype, device=r.device) / (n - 1)
            for n in r.shape[:-2]
        ]
        x = torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1).unsqueeze(-2)
        return x.expand(*x.shape[:-2], r.shape[-2], -1)

    def edges(self, shape: Sequence[int]) -> "Edges":
        """All pairs of a point and a neighbour."""
        regions = []
        for o in self.offsets:
            steps = list(zip(o, shape, strict=True))
            if self.periodic:
                here = tuple(slice(0, n) for n in shape)
                there = tuple(slice(self.reach + k, self.reach + k + n) for k, n in steps)
            else:
                here = tuple(slice(max(0, -k), n - max(0, k)) for k, n in steps)
                there = tuple(slice(max(0, k), n - max(0, -k)) for k, n in steps)
            regions.append((here, there))
        return Edges(regions, tuple(shape), tuple(n + 2 * self.reach for n in shape))


@dataclass(frozen=True)
class Edges:
    """The edges of a grid, in two forms.

    Args:
        regions: For each offset the points that have such a neighbour, and where it lies if the
            grid is surrounded.
        shape: Shape of the grid.
        surrounded: Points of the grid and its images.

    Example:
        >>> edges = Neighbourhood(n_dim=1, radius=1, neighbours="box", periodic=False).edges((4,))
        >>> edges.regions[1]
        ((slice(0, 3, None),), (slice(1, 4, None),))
        >>> edges.pairs
        (array([0, 1, 1, 2, 2, 3]), array([1, 0, 2, 1, 3, 2]))
    """

    regions: list[tuple[Region, Region]]
    shape: tuple[int, ...]
    surrounded: tuple[int, ...]

    @cached_property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and their neighbours, row by row of the grids, those of a point side by side."""
        point = np.arange(prod(self.shape)).reshape(self.shape)
        neighbour = np.arange(prod(self.surrounded)).reshape(self.surrounded)
        table = np.full((*self.shape, len(self.regions)), -1)
        for k, (here, there) in enumerate(self.regions):
            table[..., k][here] = neighbour[there]
        exists = table >= 0
        return np.broadcast_to(point[..., None], table.shape)[exists], table[exists]

    def degrees(self, f: Points) -> Points:
        """The number of neighbours of each point."""
        degrees = f.new_zeros(*self.shape, 1, 1)
        for here, _ in self.regions:
            degrees[here] += 1
        return degrees
