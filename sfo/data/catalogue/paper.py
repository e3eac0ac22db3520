"""The six benchmarks of the paper as it states them, and three as their files were published."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from sfo.data.benchmarks import Benchmark, Scale, register, sample_rng
from sfo.data.catalogue.random_start import RandomStart
from sfo.data.hdf5 import Layout
from sfo.grid import Grid
from sfo.pdes import (
    AllenCahn,
    CahnHilliard,
    DefaultRK45Sorption,
    DiffusionReaction,
    DiffusionSorption,
    Float32DiffusionReaction,
    Maxwell,
    RadialDamBreak,
    ShallowWater,
)
from sfo.pdes.initial import normalised_waves, sum_of_waves
from sfo.pdes.maxwell.plane_sources import Period, random_sources, simulate_driven_box
from sfo.pdes.shallow_water.initial import random_water
from sfo.pdes.sorption.equation import initial_constant, published_constant

ONE_AXIS = {
    "smoke": Scale(samples=24, n=256, stored=4, frames=11),
    "desk": Scale(samples=625, n=1024, stored=4, frames=101),
    "paper": Scale(samples=10_000, n=1024, stride=4, frames=101),
}


@dataclass(frozen=True)
class OneAxis(RandomStart):
    """One field on one axis."""

    scales: ClassVar[dict[str, Scale]] = ONE_AXIS


@dataclass(frozen=True)
class RandomWaves(OneAxis):
    """Options:
    n_waves, max_wave: Two waves of numbers 1 … 8 times `unit`.
    unit: 2π as the survey's formula has it (default), or π, waves counted to the period.
    """

    layout: ClassVar[Layout] = "tensor"
    n_waves: int = 2
    max_wave: int = 8
    unit: float = 2 * math.pi

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        rng = sample_rng(seed, index)
        return sum_of_waves(rng, grid, self.n_waves, self.max_wave, self.unit)


@register
@dataclass(frozen=True)
class AllenCahnBenchmark(RandomWaves):
    __doc__ = f"The 1D Allen–Cahn equation from sums of waves. {RandomWaves.__doc__}"
    name: ClassVar[str] = "allen_cahn"
    paper_name: ClassVar[str] = "allen_cahn"
    title: ClassVar[str] = "1D Allen–Cahn"
    pde: AllenCahn = field(default_factory=AllenCahn)


@register
@dataclass(frozen=True)
class CahnHilliardBenchmark(RandomWaves):
    __doc__ = f"The 1D Cahn–Hilliard equation from sums of waves. {RandomWaves.__doc__}"
    name: ClassVar[str] = "cahn_hilliard"
    paper_name: ClassVar[str] = "cahn_hilliard"
    title: ClassVar[str] = "1D Cahn–Hilliard"
    pde: CahnHilliard = field(default_factory=CahnHilliard)


@register
@dataclass(frozen=True)
class DiffusionReactionBenchmark(OneAxis):
    """The 1D Diffusion–Reaction equation, solved as it is stated."""

    name: ClassVar[str] = "diffusion_reaction"
    paper_name: ClassVar[str] = "diffusion_reaction"
    title: ClassVar[str] = "1D Diffusion–Reaction"
    layout: ClassVar[Layout] = "tensor"
    pde: DiffusionReaction = field(default_factory=DiffusionReaction)

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        return normalised_waves(sample_rng(seed, index), grid)


@register
@dataclass(frozen=True)
class PublishedDiffusionReaction(DiffusionReactionBenchmark):
    """As published: a float32 solver whose reaction is lost to rounding, and the file's windows."""

    name: ClassVar[str] = "diffusion_reaction_f32"
    title: ClassVar[str] = "1D Diffusion–Reaction, as published"
    chunk: ClassVar[int] = 1
    scales: ClassVar[dict[str, Scale]] = {**ONE_AXIS, "smoke": Scale(24, 64, 11)}
    pde: Float32DiffusionReaction = field(default_factory=Float32DiffusionReaction)

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        return normalised_waves(sample_rng(seed, index), grid, published_window=True)


@register
@dataclass(frozen=True)
class DiffusionSorptionBenchmark(OneAxis):
    """The 1D Diffusion–Sorption equation, solved to 1e-7. Options: `low` and `high`, between
    which the initial constant lies; `outflow`, the sign of the right boundary condition.
    """

    name: ClassVar[str] = "diffusion_sorption"
    paper_name: ClassVar[str] = "diffusion_sorption"
    title: ClassVar[str] = "1D Diffusion–Sorption"
    layout: ClassVar[Layout] = "groups"
    duration: ClassVar[float] = 500.0
    low: float = 0.0
    high: float = 0.2
    pde: DiffusionSorption = field(default_factory=DiffusionSorption)

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        return initial_constant(sample_rng(seed, index), grid, self.low, self.high)


@register
@dataclass(frozen=True)
class PublishedDiffusionSorption(DiffusionSorptionBenchmark):
    """As published: RK45 with default tolerances and its noise; sample i has the seed i."""

    name: ClassVar[str] = "diffusion_sorption_rk45"
    title: ClassVar[str] = "1D Diffusion–Sorption, as published"
    chunk: ClassVar[int] = 1
    scales: ClassVar[dict[str, Scale]] = {**ONE_AXIS, "smoke": Scale(24, 64, 11)}
    pde: DefaultRK45Sorption = field(default_factory=DefaultRK45Sorption)

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        constant = published_constant(seed + index, self.low, self.high)
        return torch.full((1, *grid.shape), constant, dtype=torch.float64)


@register
@dataclass(frozen=True)
class ShallowWaterBenchmark(Benchmark):
    """2D Shallow Water over bathymetry: bumps and dam breaks, (h, b) → (h, u, v). Options:
    `boundary`, "wall" (default) or "open".
    """

    name: ClassVar[str] = "shallow_water"
    paper_name: ClassVar[str] = "shallow_water"
    title: ClassVar[str] = "2D Shallow Water"
    layout: ClassVar[Layout] = "groups"
    names: ClassVar[tuple[str, ...]] = ShallowWater.names
    static_names: ClassVar[tuple[str, ...]] = ("b",)
    inputs: ClassVar[tuple[str, ...]] = ("h", "b")
    chunk: ClassVar[int] = 1
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=32, stored=2, frames=6),
        "desk": Scale(samples=250, n=128, stored=2, frames=21),
        "paper": Scale(samples=1000, n=128, frames=101),
    }
    pde: ShallowWater = field(default_factory=ShallowWater)

    def grid(self, scale: Scale) -> Grid:
        return self.pde.grid((scale.n, scale.n))

    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, Tensor]:
        grid = self.grid(scale)
        inputs = torch.stack([self.draw_inputs(seed, i, grid) for i in ids])
        return self.solve_inputs(inputs, self.times(scale)), inputs[:, 1:]

    def draw_inputs(self, seed: int, index: int, grid: Grid) -> Tensor:
        return torch.cat(random_water(sample_rng(seed, index), grid))

    def solve_inputs(self, inputs: Tensor, times: Sequence[float]) -> Tensor:
        depth, bathymetry = inputs[:, :1], inputs[:, 1:]
        return self.pde.solve(depth, torch.tensor(times, dtype=torch.float64), bathymetry)


@register
@dataclass(frozen=True)
class PublishedShallowWater(Benchmark):
    """As published: the radial dam break, depth only, 81 different runs among 1,000. Sample i
    has the seed i.
    """

    name: ClassVar[str] = "shallow_water_rdb"
    paper_name: ClassVar[str] = "shallow_water"
    title: ClassVar[str] = "2D Shallow Water, radial dam break as published"
    layout: ClassVar[Layout] = "groups"
    names: ClassVar[tuple[str, ...]] = ("h",)
    inputs: ClassVar[tuple[str, ...]] = ("h",)
    chunk: ClassVar[int] = 1
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=32, frames=6),
        "desk": Scale(samples=250, n=128, stored=2, frames=21),
        "paper": Scale(samples=1000, n=128, frames=101),
    }
    pde: RadialDamBreak = field(default_factory=RadialDamBreak)

    def grid(self, scale: Scale) -> Grid:
        return self.pde.grid((scale.n, scale.n))

    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, None]:
        grid = self.grid(scale)
        depth = torch.stack([self.draw_inputs(seed, i, grid) for i in ids])
        return self.solve_inputs(depth, self.times(scale)), None

    def draw_inputs(self, seed: int, index: int, grid: Grid) -> Tensor:
        return self.pde.initial(self.pde.published_radius(seed + index), grid)

    def solve_inputs(self, inputs: Tensor, times: Sequence[float]) -> Tensor:
        return self.pde.solve(inputs, torch.tensor(times, dtype=torch.float64))


@register
@dataclass(frozen=True)
class MaxwellBenchmark(Benchmark):
    """3D Maxwell: the window in the middle of a box driven from its corner. Options: `period` of
    the sources, "random" (default, as the public generator has it) or "fixed", at 1e-5 m.
    """

    name: ClassVar[str] = "maxwell"
    paper_name: ClassVar[str] = "maxwell"
    title: ClassVar[str] = "3D Maxwell"
    layout: ClassVar[Layout] = "groups"
    names: ClassVar[tuple[str, ...]] = Maxwell.names
    inputs: ClassVar[tuple[str, ...]] = Maxwell.names
    n_input: ClassVar[int] = 2
    chunk: ClassVar[int] = 1
    stores_maxima: ClassVar[bool] = True
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=8, frames=4),
        "desk": Scale(samples=125, n=16, frames=8),
        "paper": Scale(samples=1000, n=32, frames=8),
    }
    period: Period = "random"
    pde: Maxwell = field(default_factory=Maxwell)

    def grid(self, scale: Scale) -> Grid:
        return self.pde.grid((scale.n,) * 3, periodic=False)

    def times(self, scale: Scale) -> tuple[float, ...]:
        every = self._steps(scale)[1]
        return tuple((self.pde.time_step * every * np.arange(scale.frames)).tolist())

    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, None]:
        # The box is twice as wide as the window and the sources fill its corner; smaller
        # windows are watched for shorter, as waves have less far to go.
        warm_up, every = self._steps(scale)
        values = []
        for index in ids:
            sources = random_sources(
                sample_rng(seed, index),
                equation=self.pde,
                corner=scale.n // 2,
                period=self.period,
            )
            made, _, _ = simulate_driven_box(
                sources,
                equation=self.pde,
                box=2 * scale.n,
                window=scale.n,
                warm_up=warm_up,
                every=every,
                frames=scale.frames,
            )
            values.append(made)
        return torch.stack(values), None

    def _steps(self, scale: Scale) -> tuple[int, int]:
        return 250 * scale.n // 32, max(1, 25 * scale.n // 32)
