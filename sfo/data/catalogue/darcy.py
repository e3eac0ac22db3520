"""The benchmark `darcy`: steady flow through ground of two kinds, as the FNO paper has it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from sfo.data.benchmarks import Benchmark, Scale, register, sample_rng
from sfo.data.hdf5 import Layout
from sfo.grid import Grid
from sfo.pdes import Darcy
from sfo.pdes.gaussian_fields import neumann_gaussian


@register
@dataclass(frozen=True)
class DarcyBenchmark(Benchmark):
    """2D Darcy flow, a steady problem: the permeability a is the input, the pressure p the only
    frame of the output. Options: `high` where a Gaussian field is positive and `low` elsewhere;
    `tau` and `alpha` of its covariance (−Δ + τ²)^(−α).
    """

    name: ClassVar[str] = "darcy"
    title: ClassVar[str] = "2D Darcy flow"
    layout: ClassVar[Layout] = "groups"
    names: ClassVar[tuple[str, ...]] = Darcy.names
    static_names: ClassVar[tuple[str, ...]] = ("a",)
    inputs: ClassVar[tuple[str, ...]] = ("a",)
    duration: ClassVar[float] = 0.0
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=32, stored=2, frames=1),
        "desk": Scale(samples=625, n=128, stored=2, frames=1),
        "paper": Scale(samples=1200, n=420, stored=5, frames=1),
    }
    pde: Darcy = field(default_factory=Darcy)
    high: float = 12.0
    low: float = 3.0
    tau: float = 3.0
    alpha: float = 2.0

    def grid(self, scale: Scale) -> Grid:
        return self.pde.grid((scale.n, scale.n))

    def times(self, scale: Scale) -> tuple[float, ...]:
        return (0.0,)

    def coefficient(self, seed: int, index: int, grid: Grid) -> Tensor:
        """The permeability `(1, *grid)` of one sample."""
        rng = sample_rng(seed, index)
        g = neumann_gaussian(rng, grid, sigma=1.0, tau=self.tau, alpha=self.alpha)
        return torch.where(g >= 0, self.high, self.low).to(torch.float64)

    def draw_inputs(self, seed: int, index: int, grid: Grid) -> Tensor:
        return self.coefficient(seed, index, grid)

    def solve_inputs(self, inputs: Tensor, times: Sequence[float]) -> Tensor:
        return self.pde.solve(inputs)[:, None]

    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, Tensor]:
        grid = self.grid(scale)
        a = torch.stack([self.coefficient(seed, i, grid) for i in ids])
        return self.solve_inputs(a, self.times(scale)), a
