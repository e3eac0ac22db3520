"""Trajectories: what a solver makes and a data file holds."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid


@dataclass(frozen=True)
class Trajectories:
    """Solutions u(x, t) of many samples.

    Args:
        values: One solution a sample.
        times: Times of the frames.
        grid: Grid of the values.
        names: Names of the channels, such as ("h", "u", "v").
        ids: Where each sample stands in its file or sequence of seeds.
        static: Fields that do not change in time, such as the bathymetry.
        static_names: Names of the channels of `static`.

    Example:
        >>> grid = Grid((8,), (0.0,), (1.0,))
        >>> times = torch.linspace(0, 1, 5)
        >>> u = Trajectories(torch.rand(2, 5, 1, 8), times, grid, ("u",), ids=(0, 1))
        >>> u.subsample(2).values.shape
        torch.Size([2, 5, 1, 4])
    """

    values: Float[Tensor, "sample time channel *grid"]
    times: Float[Tensor, " time"]
    grid: Grid
    names: tuple[str, ...]
    ids: tuple[int, ...]
    static: Float[Tensor, "sample fixed *grid"] | None = None
    static_names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        samples, frames, channels, *shape = self.values.shape
        expected = (len(self.ids), len(self.times), len(self.names), *self.grid.shape)
        if (samples, frames, channels, *shape) != expected:
            raise ValueError(
                "`values` must be (sample, time, channel, *grid) = "
                f"{expected} by ids, times, names and grid, got {tuple(self.values.shape)}."
            )

    def __len__(self) -> int:
        return len(self.ids)

    def subsample(self, stride: int = 1, time_stride: int = 1) -> "Trajectories":
        """Every `stride`-th point along each axis and every `time_stride`-th frame."""
        grid = self.grid.subsample(stride)
        if not 1 <= time_stride <= len(self.times):
            raise ValueError(
                f"`time_stride` must be in 1..{len(self.times)}, the number of frames, "
                f"got {time_stride}."
            )
        every, frames = slice(None), slice(None, None, time_stride)
        space = (slice(None, None, stride),) * grid.n_dim
        static = None if self.static is None else self.static[(every, every, *space)]
        return Trajectories(
            self.values[(every, frames, every, *space)],
            self.times[::time_stride],
            grid,
            self.names,
            self.ids,
            static,
            self.static_names,
        )


def concatenate(parts: list[Trajectories]) -> Trajectories:
    """The samples of several trajectories, one after the other."""
    first = parts[0]
    static = None if first.static is None else torch.cat([p.static for p in parts])  # type: ignore[misc]
    ids = tuple(i for part in parts for i in part.ids)
    values = torch.cat([part.values for part in parts])
    return Trajectories(
        values, first.times, first.grid, first.names, ids, static, first.static_names
    )
