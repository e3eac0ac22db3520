"""The benchmarks: an equation, its random initial states, its grids, and its file's layout.

A benchmark is a frozen dataclass; its fields are the options, among them what the sources leave
open, with the default marked. Each has three scales: smoke (seconds, for tests), desk (minutes on
two cores) and paper (the published sizes).
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor

from sfo.checks import check_choice
from sfo.data.hdf5 import Layout
from sfo.data.trajectories import Trajectories
from sfo.grid import Grid
from sfo.registry import BENCHMARKS

ScaleName = Literal["smoke", "desk", "paper"]
"""Seconds, minutes to hours, and the published size."""


@dataclass(frozen=True)
class Scale:
    """The size of a data set.

    Args:
        samples: How many.
        n: Points along an axis that the solver uses.
        stored: Every `stored`-th of them is written to the file.
        stride: Every `stride`-th point of the file is what a model sees.
        frames: Stored times, both ends included; 1 in a steady problem.
    """

    samples: int
    n: int
    frames: int
    stored: int = 1
    stride: int = 1

    def to_dict(self) -> dict[str, int]:
        """All that the numbers in a file depend on."""
        return {k: v for k, v in asdict(self).items() if k not in ("samples", "stride")}


@dataclass(frozen=True)
class Benchmark(ABC):
    """What to simulate, and how the file looks; the fields of a subclass are its options."""

    name: ClassVar[str]
    title: ClassVar[str]
    paper_name: ClassVar[str | None] = None
    """The benchmark of the paper whose settings models take, for variants another than `name`;
    None where the paper has no such benchmark."""
    layout: ClassVar[Layout]
    scales: ClassVar[dict[str, Scale]]
    names: ClassVar[tuple[str, ...]] = ("u",)
    static_names: ClassVar[tuple[str, ...]] = ()
    inputs: ClassVar[tuple[str, ...]] = ("u",)
    n_input: ClassVar[int] = 1
    duration: ClassVar[float] = 1.0
    chunk: ClassVar[int] = 8
    """Samples that are solved together, a fixed number: they may differ in the last bit with
    the number of their neighbours."""
    stores_maxima: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = True
    """Whether a periodic problem is the same at every place; not so with a forcing that is fixed
    in place and no part of the input."""

    @abstractmethod
    def grid(self, scale: Scale) -> Grid:
        """The solver's grid."""

    @abstractmethod
    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, Tensor | None]:
        """Trajectories `(sample, time, channel, *grid)` on the solver's grid, and static fields."""

    def simulate(self, seed: int, ids: Sequence[int], scale: Scale) -> Trajectories:
        """Samples `ids` of the sequence with this seed, at the points that are stored."""
        values, static = self.solve(seed, ids, scale)
        times = torch.tensor(self.times(scale), dtype=torch.float64)
        made = Trajectories(
            values, times, self.grid(scale), self.names, tuple(ids), static, self.static_names
        )
        return made.subsample(scale.stored)

    @property
    def equation(self) -> str:
        """The equation in a line, which is the first paragraph of its docstring.

        Example:
            >>> BENCHMARKS["burgers"].equation
            '∂u/∂t + u ∂u/∂x = ν ∂²u/∂x², periodic on (lower, upper).'
        """
        words = type(getattr(self, "pde", None)).__doc__ if hasattr(self, "pde") else None
        return " ".join((words or "").partition("\n\n")[0].split())

    @property
    def solves_inputs(self) -> bool:
        """Whether any input, also one that was drawn by hand, can be solved: `solve_inputs`."""
        return type(self).solve_inputs is not Benchmark.solve_inputs

    def draw_inputs(self, seed: int, index: int, grid: Grid) -> Tensor:
        """The fields `inputs` of one sample, `(input, *grid)`, without solving anything."""
        raise ValueError(f"{self.title} draws its inputs only by solving: use `simulate`.")

    def solve_inputs(self, inputs: Tensor, times: Sequence[float]) -> Tensor:
        """Trajectories `(sample, time, channel, *grid)` from fields `(sample, input, *grid)`."""
        raise ValueError(f"{self.title} cannot be solved from a given input: use `simulate`.")

    def times(self, scale: Scale) -> tuple[float, ...]:
        """Of the stored frames."""
        return tuple(np.linspace(0, self.duration, scale.frames).tolist())

    def stored(self, scale: Scale) -> tuple[Grid, tuple[float, ...]]:
        """Grid and times of the file."""
        return self.grid(scale).subsample(scale.stored), self.times(scale)

    def scale(self, name: str) -> Scale:
        """Smoke, desk or paper."""
        check_choice("scale", name, self.scales)
        return self.scales[name]

    def options(self) -> dict[str, Any]:
        """Every option and constant of the equation, as JSON gives them back: lists, no tuples."""
        return json.loads(json.dumps(asdict(self)))

    def with_options(self, **values: Any) -> "Benchmark":
        """The same benchmark with some options, or constants of its equation, changed.

        Example:
            >>> from sfo.data.catalogue import CahnHilliardBenchmark
            >>> CahnHilliardBenchmark().with_options(gamma=1e-5).pde.gamma
            1e-05
        """
        known = option_names(self)
        for key in values:
            if key not in known:
                raise ValueError(
                    f"Unknown option {key!r} of {self.name}; known: {', '.join(known) or 'none'}."
                )
        values = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        for key, value in values.items():
            _check_kind(
                key, value, getattr(self, key, getattr(getattr(self, "pde", None), key, None))
            )
        own = {f.name for f in fields(self)}
        pde = {k: v for k, v in values.items() if k not in own}
        changed: dict[str, Any] = {k: v for k, v in values.items() if k in own}
        if pde:
            changed["pde"] = replace(self.pde, **pde)  # type: ignore[attr-defined]
        return replace(self, **changed)


def _check_kind(name: str, value: Any, present: Any) -> None:
    """Refuse text, a list or infinity where an option is a number now."""
    if isinstance(present, bool) or not isinstance(present, (int, float)):
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value):
        raise ValueError(f"`{name}` must be a finite number, such as {present}, got {value!r}.")


Kind = TypeVar("Kind", bound=type[Benchmark])


def register(kind: Kind) -> Kind:
    """Decorator of a benchmark's class: file it, with its default options, under its name."""
    BENCHMARKS.register(kind.name)(kind())
    return kind


def option_names(benchmark: Benchmark) -> list[str]:
    """Options of a benchmark and constants of its equation that may be set by name."""
    names = []
    for entry in fields(benchmark):
        value = getattr(benchmark, entry.name)
        names += [f.name for f in fields(value)] if is_dataclass(value) else [entry.name]
    return names


def sample_rng(seed: int, index: int) -> np.random.Generator:
    """The random numbers of one sample: they depend on the seed and its index alone."""
    return np.random.default_rng([seed, index])
