"""Benchmarks whose samples are the solutions of an equation from random initial fields."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from sfo.data.benchmarks import Benchmark, Scale, sample_rng
from sfo.grid import Grid
from sfo.pdes.gaussian_fields import periodic_gaussian


@dataclass(frozen=True)
class RandomStart(Benchmark):
    """An equation `pde` with `grid(n)` and `solve(initial, times)`, from `initial` fields."""

    pde: Any = None

    def grid(self, scale: Scale) -> Grid:
        return self.pde.grid(scale.n)

    @abstractmethod
    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        """The initial field `(channel, *grid)` of one sample."""

    def draw_inputs(self, seed: int, index: int, grid: Grid) -> Tensor:
        return self.initial(seed, index, grid)

    def solve_inputs(self, inputs: Tensor, times: Sequence[float]) -> Tensor:
        return self.pde.solve(inputs, torch.tensor(times, dtype=torch.float64))

    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, None]:
        grid = self.grid(scale)
        initial = torch.stack([self.initial(seed, i, grid) for i in ids])
        return self.solve_inputs(initial, self.times(scale)), None


@dataclass(frozen=True)
class GaussianStart(RandomStart):
    """Options:
    sigma, tau, alpha: The covariance σ² (−Δ + τ²)^(−α) of the initial fields, without a mean.
    """

    sigma: float = 1.0
    tau: float = 1.0
    alpha: float = 2.0

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        rng = sample_rng(seed, index)
        return periodic_gaussian(rng, grid, sigma=self.sigma, tau=self.tau, alpha=self.alpha)
