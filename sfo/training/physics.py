"""How far a prediction is from solving its equation: the terms that PINO adds to the loss."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.data.benchmarks import Benchmark
from sfo.data.pairs import Pairs
from sfo.grid import Grid
from sfo.pdes.residual import Frames, time_derivative
from sfo.registry import BENCHMARKS
from sfo.shapes import Field

__all__ = [
    "PhysicsLoss",
    "check_frames",
    "check_physics",
    "initial_loss",
    "pde_residual",
    "time_derivative",
]


class PhysicsLoss:
    """The relative size of an equation's residual; it needs no true solution.

        f(û) = ‖(1/τ + |L|)⁻¹ (∂û/∂t − rhs(û))‖ / ‖u‖

    `rhs` is the one that the solver steps, L its stiff linear part, and ∂û/∂t the difference of
    the frames before and after, which are τ apart. The norms are means over frames and points;
    ‖u‖ is that of training solutions.

    The factor (1/τ + |L|)⁻¹ turns a rate into what it adds to u in the time τ, wave by wave. So
    f is a relative error like that of the data, without units: white noise of 1 % costs 1 to
    4 % on every benchmark, and one weight serves them all. The published choice is the mean
    square of the bare residual, for which the same noise costs 0.007 on Diffusion–Sorption and
    800,000 on Diffusion–Reaction, nearly all of it for the shortest waves.

    A perfect prediction costs, because frames and points lie apart,

    | benchmark          | points, frames | f     | from                                       |
    |--------------------|----------------|-------|--------------------------------------------|
    | allen_cahn         | 256, 101       | 0.1 % | walls thinner than a cell                  |
    | cahn_hilliard      | 256, 101       | 0.2 % | the first frames, with waves that are gone |
    | diffusion_reaction | 256, 101       | 0.4 % | the same                                   |
    | diffusion_sorption | 256, 101       | 0.2 % | the first frames, after a jump             |
    | shallow_water      | 64 × 64, 21    | 1.4 % | bores                                      |
    | maxwell            | 16³, 8         | 1e-7  | rounding                                   |
    | burgers            | 256, 101       | 0.1 % | the first frames, with waves that are gone |
    | kuramoto_siv…      | 256, 101       | 0.0 % | time between frames                        |
    | navier_stokes      | 64 × 64, 21    | 0.3 % | the same                                   |

    and more at the smoke scale, whose few points and frames show neither walls nor waves (20 %
    on Cahn–Hilliard).

    All is computed in float32, or in the dtype of û if that is longer.

    Args:
        benchmark: With the options of the data.
        train: Training pairs: their grid, times and fields, and solutions for ‖u‖.
        samples: How many of these solutions are measured.

    Example:
        >>> from sfo.data.pairs import pairs
        >>> benchmark = BENCHMARKS["diffusion_reaction"]
        >>> made = benchmark.simulate(seed=0, ids=[0, 1], scale=benchmark.scale("smoke"))
        >>> data = pairs(made)
        >>> physics = PhysicsLoss(benchmark, data)
        >>> still = data.a.expand_as(data.u)
        >>> bool((physics(data.a, still) > 10 * physics(data.a, data.u)).all())
        True
    """

    def __init__(self, benchmark: Benchmark, train: Pairs, samples: int = 16) -> None:
        check_physics(benchmark, train.names)
        check_frames(train.n_times)
        self.pde: Any = benchmark.pde  # type: ignore[attr-defined]
        self.pairs = train
        self.size = self._measure(train[:samples])

    def __call__(self, a: Field, prediction: Field) -> Float[Tensor, " sample"]:
        """f of each sample."""
        left, _ = self._residual(a, prediction)
        # A norm: unlike a root of squares it has a gradient, 0, where û solves the equation.
        return left.flatten(1).norm(dim=1) / (self.size * math.sqrt(left[0].numel()))

    @torch.no_grad()
    def _measure(self, train: Pairs) -> float:
        # One at a time: many solutions of a 2D benchmark would not fit in memory.
        rows = (train[row] for row in range(len(train)))
        squares = [self._residual(one.a, one.u)[1].square().mean() for one in rows]
        return float(torch.stack(squares).mean().sqrt()) or 1.0

    def _residual(self, a: Field, u: Field) -> tuple[Tensor, Tensor]:
        frames = self.pairs.trajectory(u.to(torch.promote_types(u.dtype, torch.float32)))
        return pde_residual(
            self.pde,
            frames,
            given=self.pairs.fields(a.to(frames)),
            grid=self.pairs.grid,
            times=torch.tensor(self.pairs.times, dtype=torch.float64),
        )


def initial_loss(pairs: Pairs, a: Field, prediction: Field) -> Float[Tensor, " sample"]:
    """‖û − a‖ over the input's frames, of all fields that change in time, by the usual ‖a‖.

    That is the norm of the first pairs, not the sample's own: the constants with which
    Diffusion–Sorption begins may be next to nothing.

    Args:
        pairs: Whose fields and times these are.
        a: Inputs.
        prediction: û, in which the input's frames come first.
    """
    truth, usual = initial_frames(pairs, a), initial_frames(pairs, pairs.a[:16])
    error = pairs.trajectory(prediction)[:, : truth.shape[1]] - truth
    size = float(usual.square().mean().sqrt()) or 1.0
    return error.flatten(1).norm(dim=1) / (size * math.sqrt(error[0].numel()))


def initial_frames(pairs: Pairs, a: Field) -> Frames:
    """The first frames, by the input; fields that it leaves out begin at 0, as water at rest."""
    given = pairs.fields(a)
    zero = torch.zeros_like(next(given[name] for name in pairs.names if name in given))
    return torch.stack([given.get(name, zero) for name in pairs.names], dim=2)


def check_physics(benchmark: Benchmark, names: tuple[str, ...] | None = None) -> None:
    """Refuse a benchmark whose equation has no residual, or without all of its fields.

    Args:
        benchmark: Benchmark to train on.
        names: Names of the fields of its data; None: as the benchmark has them.
    """
    names = benchmark.names if names is None else names
    # A variant as it was published may hold fewer fields than its equation has.
    stated = BENCHMARKS[benchmark.paper_name] if benchmark.paper_name else benchmark
    pde = getattr(stated, "pde", None)
    if pde is None:
        raise ValueError(
            f"The benchmark {benchmark.name} has no equation `pde` whose residual could be in the "
            "loss; train with physics=0."
        )
    _check_residual(pde)
    needed = pde.names
    if names != needed:
        missing = ", ".join(name for name in needed if name not in names)
        raise ValueError(
            f"The residual of {stated.name} needs the fields {', '.join(needed)}, got "
            f"{', '.join(names)}: {missing} are not among the outputs of {benchmark.name}. Train "
            f"with physics=0, or on {stated.name} as the equation states it."
        )


def check_initial(data: Any) -> None:
    """Refuse a loss of the first frames for data whose input has none of the solution's fields.

    Args:
        data: Anything with `names` and `inputs`, such as a benchmark.
    """
    if not set(data.names) & set(data.inputs):
        raise ValueError(
            "`initial` needs an input field that is also a field of the solution, got the inputs "
            f"{', '.join(data.inputs)} and the solution {', '.join(data.names)}; use initial=0."
        )


def check_frames(n_times: int) -> None:
    """Refuse data with too few frames for a difference in time."""
    if n_times < 3:
        raise ValueError(
            f"The residual needs at least 3 frames, got {n_times}; take a smaller `time_stride`, "
            "or train with physics=0."
        )


def pde_residual(
    pde: Any, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Float[Tensor, " time"]
) -> tuple[Tensor, Tensor]:
    """What an equation leaves of frames that solve it, zero but for their distance.

    Args:
        pde: Equation, whose method `residual` computes this.
        u: Solutions, or predictions.
        given: Fields of the input by name.
        grid: Grid of u, maybe a part of the solver's points.
        times: Times of the frames.

    Returns:
        The residual in the units of u, and what to compare it with, a sample per row.
    """
    _check_residual(pde)
    return pde.residual(u, given=given, grid=grid, times=times)


def _check_residual(pde: Any) -> None:
    if not hasattr(pde, "residual"):
        raise ValueError(
            f"No residual is known for the equation {type(pde).__name__}; give it a method "
            "`residual`, or train with physics=0."
        )
