"""Equally spaced grids on boxes: coordinates, spacing, strides, and the band along the boundary."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class Grid:
    """Points x_j = lower + (j + offset) h along each axis, h = (upper − lower) / n.

    Periodic grids of nodes have offset 0 (the end of the period is not repeated), cell centres
    offset 1/2. Taking every r-th point divides the offset by r and keeps the box.

    Example:
        >>> cells = Grid((4,), (0.0,), (1.0,), offset=0.5, periodic=False)
        >>> cells.coordinates()[0].tolist()
        [0.125, 0.375, 0.625, 0.875]
        >>> cells.subsample(2).coordinates()[0].tolist()
        [0.125, 0.625]
    """

    shape: tuple[int, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    offset: float = 0.0
    periodic: bool = True

    def __post_init__(self) -> None:
        sizes = {len(self.shape), len(self.lower), len(self.upper)}
        if len(sizes) != 1 or not self.shape or min(self.shape) < 1:
            raise ValueError(
                "A grid needs as many points, lower and upper ends as axes, with at least one "
                f"point each, got shape={self.shape}, lower={self.lower}, upper={self.upper}."
            )
        if any(a >= b for a, b in zip(self.lower, self.upper, strict=True)):
            raise ValueError(
                f"`lower` must be below `upper` on every axis, got {self.lower} and {self.upper}."
            )

    @property
    def n_dim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def spacing(self) -> tuple[float, ...]:
        """Distance h of neighbouring points along each axis."""
        ends = zip(self.lower, self.upper, self.shape, strict=True)
        return tuple((b - a) / n for a, b, n in ends)

    def coordinates(self) -> tuple[Tensor, ...]:
        """The points along each axis, in float64."""
        rows = zip(self.shape, self.lower, self.spacing, strict=True)
        return tuple(
            a + (torch.arange(n, dtype=torch.float64) + self.offset) * h for n, a, h in rows
        )

    def mesh(self) -> tuple[Tensor, ...]:
        """One coordinate field an axis, each of the grid's shape."""
        return torch.meshgrid(*self.coordinates(), indexing="ij")

    def subsample(self, stride: int) -> "Grid":
        """Every `stride`-th point along each axis, the first one included.

        A stride that does not divide an axis leaves a gap of another size at its end: the box
        then ends one new spacing after the last point, and the grid is periodic no more.

        Example:
            >>> Grid((10,), (0.0,), (10.0,)).subsample(4)
            Grid(shape=(3,), lower=(0.0,), upper=(12.0,), offset=0.0, periodic=False)
        """
        if not 1 <= stride <= min(self.shape):
            raise ValueError(
                f"`stride` must be between 1 and the points of every axis of {self.shape}, "
                f"got {stride}."
            )
        if stride == 1:
            return self
        shape = tuple(-(-n // stride) for n in self.shape)
        divides = all(n % stride == 0 for n in self.shape)
        ends = zip(self.lower, self.upper, self.shape, shape, self.spacing, strict=True)
        upper = tuple(b if n % stride == 0 else a + kept * stride * h for a, b, n, kept, h in ends)
        return Grid(shape, self.lower, upper, self.offset / stride, self.periodic and divides)

    def boundary_band(self, fraction: float = 0.1) -> Tensor:
        """True on the points within ⌊fraction · n⌋ of an end of any axis.

        Example:
            >>> Grid((10,), (0.0,), (1.0,)).boundary_band(0.2).int().tolist()
            [1, 1, 0, 0, 0, 0, 0, 0, 1, 1]
        """
        if not 0 <= fraction <= 0.5:
            raise ValueError(f"`fraction` must be in 0..0.5, got {fraction}.")
        inside = torch.ones(self.shape, dtype=torch.bool)
        for axis, n in enumerate(self.shape):
            index = torch.arange(n)
            width = math.floor(fraction * n)
            row = (index >= width) & (index < n - width)
            inside &= row.reshape([-1 if i == axis else 1 for i in range(self.n_dim)])
        return ~inside

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return dict(
            shape=list(self.shape),
            lower=list(self.lower),
            upper=list(self.upper),
            offset=self.offset,
            periodic=self.periodic,
        )

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> "Grid":
        """The grid that `to_dict` wrote."""
        rows = {k: tuple(entries[k]) for k in ("shape", "lower", "upper")}
        return cls(**{**entries, **rows})
