"""How far a prediction is from solving its equation: the terms that PINO adds to the loss."""

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from sfo.data.benchmarks import Benchmark
from sfo.data.pairs import Pairs
from sfo.grid import Grid
from sfo.pdes import DiffusionSorption, Maxwell, ShallowWater
from sfo.pdes.base import Semilinear
from sfo.registry import BENCHMARKS
from sfo.shapes import Field

Frames = Float[Tensor, "sample time field *grid"]
Defect = tuple[Float[Tensor, "sample _ part *inside"], Float[Tensor, "sample _ part *inside"]]
"""What should be zero, and a term of the equation to compare it with."""


class PhysicsLoss:
    """The mean square of an equation's residual, without units and without the true solution.

        f(û) = mean over frames i of  ⟨(∂û/∂t − rhs(û))²⟩ᵢ / (⟨(∂u/∂t)²⟩ + ρᵢ)

    ⟨⟩ is the mean over the points, `rhs` the one that the solver steps, ∂/∂t the central
    difference over three frames, in the dtype of û. The scale is measured once, on training
    solutions u: ⟨(∂u/∂t)²⟩ over all frames, and ρᵢ, the residual that the solutions
    themselves leave at frame i because frames and points lie apart. So a field that stands
    still costs about 1, a perfect one little, and frames of which the differences cannot tell,
    such as the first after a jump, count little. The costs of perfect fields:

    | benchmark (points, frames)     | cost  | from                                           |
    |--------------------------------|-------|------------------------------------------------|
    | allen_cahn (256, 101)          | 0.004 | walls thinner than a cell                      |
    | cahn_hilliard (256, 101)       | 0.010 | the same                                       |
    | diffusion_reaction (256, 101)  | 0.011 | the first two frames, in which most is over    |
    | diffusion_sorption (256, 101)  | 0.010 | the first frame, after a jump                  |
    | shallow_water (64 × 64, 21)    | 0.09  | bores                                          |
    | maxwell                        | 1e-14 | rounding                                       |

    Systems have one such term for every equation, and f is their mean.

    Args:
        benchmark: With the options of the data.
        train: Training pairs: their grid, times and fields, and solutions for the scale.
        samples: How many of these are measured.

    Example:
        >>> from sfo.data.pairs import pairs
        >>> from sfo.registry import BENCHMARKS
        >>> benchmark = BENCHMARKS["allen_cahn"]
        >>> scale = benchmark.scale("smoke")
        >>> data = pairs(benchmark.simulate(seed=0, ids=[0, 1], scale=scale))
        >>> physics = PhysicsLoss(benchmark, data)
        >>> still = data.a.expand_as(data.u)
        >>> bool((physics(data.a, still) > 3 * physics(data.a, data.u)).all())
        True
    """

    def __init__(self, benchmark: Benchmark, train: Pairs, samples: int = 32) -> None:
        check_physics(benchmark, train.names)
        if train.n_times < 3:
            raise ValueError(
                f"The residual needs at least 3 frames, got {train.n_times}; take a smaller "
                "`time_stride`, or train with physics=0."
            )
        self.pde: Any = benchmark.pde  # type: ignore[attr-defined]
        self.pairs = train
        self.scale = self._measure(train[:samples])

    def __call__(self, a: Field, prediction: Field) -> Float[Tensor, " sample"]:
        """f of each sample."""
        residual, _ = self._defect(a, prediction)
        return (mean_square(residual) / self.scale.to(residual)).mean((1, 2))

    @torch.no_grad()
    def _measure(self, train: Pairs) -> Float[Tensor, "_ part"]:
        # One sample at a time: a whole set of a 2D benchmark would not fit in memory.
        sizes = []
        for row in range(len(train)):
            one = train[row]
            sizes.append(torch.cat([mean_square(v) for v in self._defect(one.a, one.u)]))
        residual, term = torch.stack(sizes).double().mean(0)
        # Frozen data, or a field that is zero throughout, are compared with 1.
        scale = term.mean(0) + residual
        return torch.where(scale > 0, scale, 1.0)

    def _defect(self, a: Field, u: Field) -> Defect:
        frames = self.pairs.trajectory(u.to(torch.promote_types(u.dtype, torch.float32)))
        return defect(
            self.pde,
            frames,
            given=given_fields(self.pairs, a.to(frames)),
            grid=self.pairs.grid,
            times=torch.tensor(self.pairs.times, dtype=torch.float64),
        )


def initial_loss(pairs: Pairs, a: Field, prediction: Field) -> Float[Tensor, " sample"]:
    """‖û − a‖² / ‖a‖² over the input's frames, of all fields that change in time.

    Fields that the input leaves out begin at 0: water starts from rest.

    Args:
        pairs: Whose fields and times these are.
        a: Inputs.
        prediction: û, in which the input's frames come first.
    """
    given = given_fields(pairs, a)
    zero = torch.zeros_like(next(given[name] for name in pairs.names if name in given))
    truth = torch.stack([given.get(name, zero) for name in pairs.names], dim=2)
    error = pairs.trajectory(prediction)[:, : zero.shape[1]] - truth
    size = truth.square().flatten(1).sum(1)
    return error.square().flatten(1).sum(1) / torch.where(size > 0, size, 1.0)


def given_fields(pairs: Pairs, a: Field) -> dict[str, Float[Tensor, "sample _ *grid"]]:
    """The fields of an input by name: some frames of those that change, one of the others."""
    static = [name for name in pairs.inputs if name not in pairs.names]
    moving = len(pairs.inputs) - len(static)
    n_input = (a.shape[1] - len(static)) // max(1, moving)
    widths = [1 if name in static else n_input for name in pairs.inputs]
    return dict(zip(pairs.inputs, a.split(widths, dim=1), strict=True))


def check_physics(benchmark: Benchmark, names: tuple[str, ...] | None = None) -> None:
    """Refuse a benchmark without all fields of its equation.

    Args:
        benchmark: To train on.
        names: The fields of its data; None: as the benchmark has them.
    """
    names = benchmark.names if names is None else names
    needed = BENCHMARKS[benchmark.paper_name].names
    if names != needed:
        missing = ", ".join(name for name in needed if name not in names)
        raise ValueError(
            f"The residual of {benchmark.paper_name} needs the fields {', '.join(needed)}, got "
            f"{', '.join(names)}: {missing} are not among the outputs of {benchmark.name}. Train "
            f"with physics=0, or on {benchmark.paper_name} as the equation states it."
        )


@singledispatch
def defect(
    pde: Any, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Float[Tensor, " time"]
) -> Defect:
    """The residual of an equation at the frames where it can be had.

    Args:
        pde: The equation.
        u: Solutions, or predictions.
        given: The input's fields by name.
        grid: Of u, maybe a part of the solver's points.
        times: Of the frames.
    """
    raise ValueError(
        f"No residual is known for the equation {type(pde).__name__}; add one with "
        "`@defect.register`, or train with physics=0."
    )


@defect.register
def _periodic(
    pde: Semilinear, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> Defect:
    # Spectral derivatives: at 256 points three-point differences leave 4.6 times the residual
    # of an Allen–Cahn solution, and 120 times that of a Cahn–Hilliard solution.
    rate = time_derivative(u, times)
    return resolved(rate - pde.rhs(u[:, 1:-1])), rate


@defect.register
def _sorption(
    pde: DiffusionSorption, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> Defect:
    rate = time_derivative(u, times)
    return inside(rate - pde.rhs(u[:, 1:-1]), grid, margin=1), inside(rate, grid, margin=1)


@defect.register
def _water(
    pde: ShallowWater, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> Defect:
    h, velocity = u[:, :, :1], u[:, :, 1:]
    state = torch.cat([h, h * velocity], dim=2)
    ground = given["b"][:, None]
    # Riemann problems leave some fifty fields to differentiate through. They are made anew on
    # the way back, a few frames at a time: all frames of a batch would take gigabytes.
    rhs = torch.cat(
        [
            checkpoint(pde.rhs, part, ground, use_reentrant=False)
            for part in state[:, 1:-1].split(8, dim=1)
        ],
        dim=1,
    )
    rate = time_derivative(state, times)
    return inside(rate - rhs, grid, margin=2), inside(rate, grid, margin=2)


@defect.register
def _maxwell(
    pde: Maxwell, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> Defect:
    """∇ · E and ∇ · H at all frames, by the differences that Yee's scheme keeps at 0.

    The curl equations are left out. Waves travel four cells and more from one frame to the
    next, so that the difference of two frames is no derivative: of exact fields the residual
    would be four to six times ⟨(∂u/∂t)²⟩.
    """
    e, h = u.split(3, dim=2)
    terms = torch.stack(
        [divergence_terms(e, slice(1, None)), divergence_terms(h, slice(None, -1))], dim=3
    )
    return terms.sum(0), terms.norm(dim=0)


def divergence_terms(
    v: Float[Tensor, "sample time 3 x y z"], cells: slice
) -> Float[Tensor, "3 sample time _ _ _"]:
    """∂v₁/∂x, ∂v₂/∂y and ∂v₃/∂z a cell, at the cells that have a neighbour to subtract."""
    every, terms = slice(None), []
    for axis, component in enumerate(v.unbind(2)):
        kept = [cells] * 3
        kept[axis] = slice(None)
        terms.append(component[(every, every, *kept)].diff(dim=axis - 3))
    return torch.stack(terms)


def time_derivative(u: Frames, times: Float[Tensor, " time"]) -> Frames:
    """Central differences at all frames but the first and the last."""
    span = (times[2:] - times[:-2]).to(u).view(-1, *[1] * (u.ndim - 2))
    return (u[:, 2:] - u[:, :-2]) / span


def resolved(v: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
    """The lower two thirds of the waves of a periodic field.

    Products of waves alias to the others first: without these the residual of a Cahn–Hilliard
    solution at 256 points is an eighth, and ∂u/∂t the same.
    """
    n = v.shape[-1]
    return torch.fft.irfft(torch.fft.rfft(v)[..., : n // 3 + 1], n=n)


def inside(v: Float[Tensor, "sample time part *all"], grid: Grid, margin: int) -> Tensor:
    """The cells that know all their neighbours: every one on a solver's own grid.

    On a coarser one, whose points are no longer the centres of cells, the values beyond the
    ends are not where `rhs` takes them to be, which concerns `margin` cells.
    """
    if grid.offset == 0.5:
        return v
    every, kept = slice(None), slice(margin, -margin)
    return v[(every, every, every, *[kept] * grid.n_dim)]


def mean_square(v: Float[Tensor, "sample time part *grid"]) -> Float[Tensor, "sample time part"]:
    """Over the points."""
    return v.square().flatten(3).mean(3)
