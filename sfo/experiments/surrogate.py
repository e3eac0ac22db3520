"""A trained model beside the benchmark's own solver: errors on other grids, and speed."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.data.benchmarks import Benchmark, Scale
from sfo.data.pairs import pairs
from sfo.data.trajectories import Trajectories
from sfo.evaluation.errors import evaluate, to_model
from sfo.grid import Grid
from sfo.training.loss import relative_l2

COARSEST = 16
"""Points along an axis below which no solver is tried."""


@dataclass(frozen=True)
class Solver:
    """The benchmark's solver for some samples of a set.

    Args:
        benchmark: The benchmark.
        scale: Scale of the set.
        seed: Seed of the set.
        ids: The samples.
    """

    benchmark: Benchmark
    scale: Scale
    seed: int
    ids: Sequence[int]

    @property
    def points(self) -> int:
        """Points along an axis that a model sees."""
        return self.scale.n // (self.scale.stored * self.scale.stride)

    def solved(self, n: int, points: int | None = None) -> Trajectories:
        """The samples, solved on n points along each axis, at `points` of them, or at all."""
        scale = replace(self.scale, n=n, stored=n // (points or n), stride=1)
        return self.benchmark.simulate(self.seed, self.ids, scale)

    def same_problem(self, n: int) -> bool:
        """Whether n points along each axis cover the same box and times as the set has."""
        other = replace(self.scale, n=n)
        boxes = [
            (grid.lower, grid.upper, self.benchmark.times(scale))
            for scale in (self.scale, other)
            for grid in [self.benchmark.grid(scale)]
        ]
        return boxes[0] == boxes[1]

    def coarse_errors(self) -> dict[int, float]:
        """Relative errors of the same solver on ever coarser grids, against its own finest.

        All are compared at the points that a model sees; coarser solutions are interpolated.
        """
        truth = self.solved(self.scale.n, self.points)
        errors = {}
        n = self.scale.n
        while n % 2 == 0 and n // 2 >= COARSEST and self.same_problem(n // 2):
            n //= 2
            try:
                coarse = self.solved(n)
            except ValueError:  # The solver itself says that the grid is too coarse.
                break
            values = interpolated(coarse.values, coarse.grid, truth.grid)
            error = relative_l2(values.flatten(1, 2), truth.values.flatten(1, 2))
            errors[n] = float(error.mean())
        return errors


def interpolated(
    values: Float[Tensor, "sample time channel *grid"], source: Grid, target: Grid
) -> Float[Tensor, "sample time channel *target"]:
    """A field at the points of another grid on the same box, by cubic splines axis by axis.

    Example:
        >>> from math import pi
        >>> coarse, fine = Grid((32,), (0.0,), (2 * pi,)), Grid((64,), (0.0,), (2 * pi,))
        >>> field = coarse.coordinates()[0].sin().view(1, 1, 1, 32)
        >>> found = interpolated(field, coarse, fine)
        >>> bool((found - fine.coordinates()[0].sin()).abs().max() < 1e-4)
        True
    """
    from scipy.interpolate import CubicSpline

    rows = zip(source.coordinates(), target.coordinates(), source.lower, source.upper, strict=True)
    found = values.numpy()
    for axis, (x, wanted, lower, upper) in enumerate(rows, start=3):
        if source.periodic:
            x = torch.cat([x, x[:1] + (upper - lower)])
            found = np.concatenate([found, found.take([0], axis)], axis)
        ends = "periodic" if source.periodic else "not-a-knot"
        found = CubicSpline(x.numpy(), found, axis, bc_type=ends)(wanted.numpy())
    return torch.from_numpy(found)


def error_on_finer_grid(model: nn.Module, solver: Solver) -> float | None:
    """Error of a model in percent on twice the points; None where that is another problem."""
    points = 2 * solver.points
    n = max(solver.scale.n, points)
    if not solver.same_problem(n):
        return None
    benchmark = solver.benchmark
    fine = pairs(
        solver.solved(n, points),
        inputs=benchmark.inputs,
        n_input=benchmark.n_input,
        benchmark=benchmark.name,
    )
    return evaluate(model, fine).percent


def speed(
    model: nn.Module, solver: Solver, error: float, coarse_errors: Mapping[int, float]
) -> dict[str, Any]:
    """Seconds of a core per sample, of a model and of the coarsest solver that is as accurate.

    Args:
        model: The trained model.
        solver: The solver, for as many samples as are solved or predicted together.
        error: Error of the model, as a fraction.
        coarse_errors: Errors of the solver on coarser grids, see `Solver.coarse_errors`.
    """
    accurate = [n for n, value in coarse_errors.items() if value <= error]
    n = min(accurate, default=solver.scale.n)
    benchmark = solver.benchmark
    made = pairs(
        solver.solved(solver.scale.n, solver.points),
        inputs=benchmark.inputs,
        n_input=benchmark.n_input,
    )
    a = to_model(model, made.a)

    @torch.no_grad()
    def predict() -> None:
        model(a)

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        own, matched, full = _seconds(
            predict, lambda: solver.solved(n), lambda: solver.solved(solver.scale.n)
        )
    finally:
        torch.set_num_threads(threads)
    samples = len(solver.ids)
    return {
        "batch": samples,
        "operator_seconds": own / samples,
        "solver_points": n,
        "solver_error_percent": 100 * coarse_errors[n] if n in coarse_errors else None,
        "solver_seconds": matched / samples,
        "finest_solver_points": solver.scale.n,
        "finest_solver_seconds": full / samples,
        "speed_up": matched / own,
    }


def _seconds(*calls: Callable[[], Any], rounds: int = 5) -> list[float]:
    """Median seconds of a core of calls that take turns, after a round that compiles.

    Not those of the clock, which other work on the machine makes longer.
    """
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds + 1):
        for seconds, call in zip(taken, calls, strict=True):
            start = time.process_time()
            call()
            seconds.append(time.process_time() - start)
    return [statistics.median(seconds[1:]) for seconds in taken]
