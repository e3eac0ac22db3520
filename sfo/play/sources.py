"""Where initial states and truths come from: a benchmark's solver, stored samples, or nowhere."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from sfo.data.arrays import Arrays
from sfo.data.benchmarks import Benchmark, Scale
from sfo.data.pairs import pairs
from sfo.grid import Grid
from sfo.play.cases import Case, refine
from sfo.training.prepare import DataShape

FIRST_UNSEEN_SEED = 1_000_000
"""Seed of sample 0: no training data are made with seeds from here on."""
RANGE_SAMPLES = 4
"""Number of samples whose values give the range of a drawing."""
CHUNK = 64
"""Stored samples that are compared at once with a drawn one."""


@dataclass(frozen=True)
class Truth:
    """What a prediction is compared with.

    Args:
        values: Solution `(field, time, *grid)` on the source's grid; None: there is none.
        milliseconds: How long the solver took; None: nothing was solved.
        words: What it is, for the page.
    """

    values: Tensor | None
    milliseconds: float | None
    words: str


class Source(ABC):
    """Initial states and truths on one grid, `fine`, of which models see every n-th point.

    Attributes:
        fine: The points.
        samples: How many numbered samples there are; None: as many as there are seeds.
        kind: "solver", "stored" or "none".
        quick: Whether inputs come without solving anything.
        why_not: Why a state cannot be drawn by hand; None if it can.
        equation: What is solved, in a line; empty if nothing is.
        identity: Sources with the same one give the same states and truths; None: no other does.
    """

    kind: str
    fine: Grid
    samples: int | None = None
    quick: bool = True
    why_not: str | None = None
    equation: str = ""
    identity: str | None = None

    def __init__(self, shape: DataShape) -> None:
        self.shape = shape
        self.fine = shape.grid

    def inputs(self, case: Case) -> Tensor:
        """Input fields `(channel, *fine)`."""
        if case.drawn is None:
            return self.sample(case.seed)
        if self.why_not is not None:
            raise ValueError(self.why_not)
        return refine(torch.from_numpy(case.drawn), self.shape.grid, self.fine)

    def ranges(self) -> list[tuple[float, float]]:
        """The least and the greatest value of each input channel in a few samples."""
        rows = torch.stack([self.sample(seed) for seed in range(self._n_range_samples())])
        rows = rows.transpose(0, 1).flatten(1)
        return list(zip(rows.amin(1).tolist(), rows.amax(1).tolist(), strict=True))

    def _n_range_samples(self) -> int:
        few = RANGE_SAMPLES if self.quick else 1
        return few if self.samples is None else min(few, self.samples)

    @abstractmethod
    def sample(self, seed: int) -> Tensor:
        """Input fields of a numbered sample."""

    @abstractmethod
    def truth(self, case: Case) -> Truth:
        """What a prediction for this state is compared with."""


class Solver(Source):
    """A benchmark: every seed is a sample that no model was trained on, and is solved again.

    Args:
        benchmark: The benchmark with its options.
        scale: Its sizes; `n` is the solver's grid.
        shape: Shape of the data that the model was trained on.
    """

    kind = "solver"

    def __init__(self, benchmark: Benchmark, scale: Scale, shape: DataShape) -> None:
        super().__init__(shape)
        self.benchmark, self.scale = benchmark, scale
        self.fine = fine = benchmark.grid(scale)
        ends = f"({fine.lower[0]:g}, {fine.upper[0]:g})".replace("-", "−")
        self.equation = benchmark.equation.replace("(lower, upper)", ends)
        names, inputs = shape.names, shape.inputs
        # A steady problem, all of whose inputs are static, has one frame like any other.
        self._n_input = max(shape.widths.values())
        same = inputs == benchmark.inputs and names == benchmark.names and self._n_input == 1
        self.quick = benchmark.solves_inputs and same
        self._is_warm = False
        self.identity = repr((benchmark, scale.n, shape.times, shape.inputs, self._n_input))
        if not self.quick:
            self.why_not = (
                f"A state of {benchmark.title} cannot be drawn: the model's inputs are "
                f"{self._n_input} frames of {', '.join(inputs)}. Choose a sample."
            )

    @staticmethod
    def fits(benchmark: Benchmark, scale: Scale, shape: DataShape) -> bool:
        """Whether the solver's points contain those that a model was trained on."""
        fine, trained = benchmark.grid(scale), shape.grid
        pairs_of_ends = ((fine.lower, trained.lower), (fine.upper, trained.upper))
        if fine.n_dim != trained.n_dim or any(not np.allclose(a, b) for a, b in pairs_of_ends):
            return False
        ratios = {
            n // m if n % m == 0 else 0 for n, m in zip(fine.shape, trained.shape, strict=True)
        }
        return len(ratios) == 1 and 0 not in ratios

    def sample(self, seed: int) -> Tensor:
        if self.quick:
            return self.benchmark.draw_inputs(FIRST_UNSEEN_SEED + seed, 0, self.fine)
        return self._simulated(seed)[0]

    def truth(self, case: Case) -> Truth:
        inputs = self.inputs(case) if self.quick else None
        try:
            self._warm_up(inputs)
            start = time.perf_counter()
            values = self._solved(case, inputs)
        except ValueError as error:
            # What the solver advises is for who calls it, not for who draws.
            reason = str(error).partition(" Pass ")[0]
            raise ValueError(
                f"The solver of {self.benchmark.title} cannot solve this state; draw a smaller or "
                f"a smoother one, or choose a sample. It says: {reason}"
            ) from error
        milliseconds = 1000 * (time.perf_counter() - start)
        if not values.isfinite().all():
            raise ValueError(f"The solver of {self.benchmark.title} found no finite solution.")
        return Truth(values, milliseconds, f"solver on {points(self.fine)}")

    def _solved(self, case: Case, inputs: Tensor | None) -> Tensor:
        if inputs is None:
            return self._simulated(case.seed)[1]
        values = self.benchmark.solve_inputs(inputs[None], self.shape.times)[0]
        return values.transpose(0, 1).float()

    def _warm_up(self, inputs: Tensor | None) -> None:
        """Solve a little once: loops are compiled by the first call, which is not to be timed."""
        if self._is_warm:
            return
        if inputs is None:
            self._simulated(0)
        else:
            self.benchmark.solve_inputs(inputs[None], self.shape.times[:2])
        self._is_warm = True

    def _simulated(self, seed: int) -> tuple[Tensor, Tensor]:
        """Inputs and solution of a benchmark that makes its inputs as it solves."""
        trajectories = self.benchmark.simulate(
            FIRST_UNSEEN_SEED + seed, [0], replace(self.scale, stored=1)
        )
        known = [float(t) for t in trajectories.times]
        kept = [int(np.argmin([abs(t - known_t) for known_t in known])) for t in self.shape.times]
        trajectories = replace(
            trajectories, values=trajectories.values[:, kept], times=trajectories.times[kept]
        )
        made = pairs(trajectories, inputs=self.shape.inputs, n_input=self._n_input)
        self._is_warm = True
        return made.a[0], made.trajectory()[0].transpose(0, 1)


class Stored(Source):
    """Data of the user's own: the truth is a stored sample, the nearest one to a drawn state.

    Args:
        arrays: All samples.
        ids: Those to choose from, which the training has not seen.
        shape: Shape of the data that the model was trained on.
    """

    kind = "stored"

    def __init__(self, arrays: Arrays, ids: tuple[int, ...], shape: DataShape) -> None:
        super().__init__(shape)
        self.arrays, self.ids, self.samples = arrays, ids, len(ids)

    def sample(self, seed: int) -> Tensor:
        return self.arrays.a[self.ids[seed]].to(torch.float64)

    def truth(self, case: Case) -> Truth:
        row, words = self.ids[case.seed], f"stored sample {self.ids[case.seed]}"
        if case.drawn is not None:
            row, distance = self.nearest(self.inputs(case))
            words = f"stored sample {row}, the nearest one; its input is {distance:.0%} away"
        u = self.arrays.u[row]
        return Truth(self.shape.by_field(u), None, words)

    def nearest(self, inputs: Tensor) -> tuple[int, float]:
        """The stored sample whose input differs least, and by how much, relative to its size."""
        best, least = 0, float("inf")
        for start in range(0, len(self.arrays), CHUNK):
            known = self.arrays.a[start : start + CHUNK].to(torch.float64)
            apart = (known - inputs).flatten(1).norm(dim=1) / known.flatten(1).norm(dim=1)
            apart = apart.nan_to_num(float("inf"))
            if float(apart.min()) < least:
                best, least = start + int(apart.argmin()), float(apart.min())
        return best, least


class NoSource(Source):
    """No solver and no data: the one sample is zero, others are drawn, and there is no truth.

    Args:
        shape: Shape of the data that the model was trained on.
        why: Why there is no truth, in a sentence, and what would give one.
    """

    kind = "none"
    samples = 1

    def __init__(self, shape: DataShape, why: str) -> None:
        super().__init__(shape)
        self.why = why

    def sample(self, seed: int) -> Tensor:
        return torch.zeros(self.shape.in_channels, *self.fine.shape, dtype=torch.float64)

    def ranges(self) -> list[tuple[float, float]]:
        return [(-1.0, 1.0)] * self.shape.in_channels

    def truth(self, case: Case) -> Truth:
        return Truth(None, None, self.why)


def points(grid: Grid) -> str:
    """In words, such as "128 × 128 points".

    Example:
        >>> points(Grid((1024,), (0.0,), (1.0,)))
        '1,024 points'
    """
    return " × ".join(f"{n:,}" for n in grid.shape) + " points"
