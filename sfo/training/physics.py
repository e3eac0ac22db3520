"""How far a prediction is from solving its equation: the terms that PINO adds to the loss."""

import math
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


class PhysicsLoss:
    """The relative size of an equation's residual, for which no true solution is needed.

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
        if train.n_times < 3:
            raise ValueError(
                f"The residual needs at least 3 frames, got {train.n_times}; take a smaller "
                "`time_stride`, or train with physics=0."
            )
        self.pde: Any = benchmark.pde  # type: ignore[attr-defined]
        self.pairs = train
        self.size = self._measure(train[:samples])

    def __call__(self, a: Field, prediction: Field) -> Float[Tensor, " sample"]:
        """f of each sample."""
        left, _ = self._miss(a, prediction)
        # A norm, for unlike a root of squares it has a gradient, 0, where û solves the equation.
        return left.flatten(1).norm(dim=1) / (self.size * math.sqrt(left[0].numel()))

    @torch.no_grad()
    def _measure(self, train: Pairs) -> float:
        # One at a time: many solutions of a 2D benchmark would not fit in memory.
        rows = (train[row] for row in range(len(train)))
        squares = [self._miss(one.a, one.u)[1].square().mean() for one in rows]
        return float(torch.stack(squares).mean().sqrt()) or 1.0

    def _miss(self, a: Field, u: Field) -> tuple[Tensor, Tensor]:
        frames = self.pairs.trajectory(u.to(torch.promote_types(u.dtype, torch.float32)))
        return miss(
            self.pde,
            frames,
            given=given_fields(self.pairs, a.to(frames)),
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
    given = given_fields(pairs, a)
    zero = torch.zeros_like(next(given[name] for name in pairs.names if name in given))
    return torch.stack([given.get(name, zero) for name in pairs.names], dim=2)


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
    needed = BENCHMARKS[benchmark.paper_name or benchmark.name].names
    if names != needed:
        missing = ", ".join(name for name in needed if name not in names)
        raise ValueError(
            f"The residual of {benchmark.paper_name} needs the fields {', '.join(needed)}, got "
            f"{', '.join(names)}: {missing} are not among the outputs of {benchmark.name}. Train "
            f"with physics=0, or on {benchmark.paper_name} as the equation states it."
        )


@singledispatch
def miss(
    pde: Any, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Float[Tensor, " time"]
) -> tuple[Tensor, Tensor]:
    """What an equation leaves of frames that solve it, zero but for their distance.

    Args:
        pde: The equation.
        u: Solutions, or predictions.
        given: The input's fields by name.
        grid: Of u, maybe a part of the solver's points.
        times: Of the frames.

    Returns:
        The residual in the units of u, and what to compare it with, a sample a row.
    """
    raise ValueError(
        f"No residual is known for the equation {type(pde).__name__}; add one with "
        "`@miss.register`, or train with physics=0."
    )


@miss.register
def _periodic(
    pde: Semilinear, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> tuple[Tensor, Tensor]:
    later, n = u[:, 1:], grid.shape[0]
    # Spectral derivatives: of solutions at 256 points three-point differences would miss twice
    # as much on Allen–Cahn, and six times as much on Cahn–Hilliard.
    residual = time_derivative(u, times) - pde.rhs(later)
    linear, _ = pde.symbols(n)
    factor = 1 / (1 / spans(times)[:, None, None] + linear.abs())
    return torch.fft.irfft(factor.to(u) * torch.fft.rfft(residual), n=n), later


@miss.register
def _sorption(
    pde: DiffusionSorption, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> tuple[Tensor, Tensor]:
    later = u[:, 1:]
    # Multiplied by R the stiff part is linear, D ∂²u/∂x².
    residual = pde.retardation(later) * (time_derivative(u, times) - pde.rhs(later))
    residual = inside(residual, grid, margin=1)
    n, (h,) = residual.shape[-1], grid.spacing
    # The eigenvectors of its three-point difference between given ends are the sines, of which
    # the odd extension of a field is made.
    angle = torch.arange(n + 2, dtype=torch.float64) * math.pi / (2 * (n + 1))
    linear = pde.diffusivity * (2 / h * angle.sin()) ** 2
    least = float(pde.retardation(torch.tensor(pde.left)))
    factor = 1 / (least / spans(times)[:, None, None] + linear)
    zero = torch.zeros_like(residual[..., :1])
    odd = torch.cat([zero, residual, zero, -residual.flip(-1)], dim=-1)
    smooth = torch.fft.irfft(factor.to(u) * torch.fft.rfft(odd), n=2 * n + 2)
    return smooth[..., 1 : n + 1], later


@miss.register
def _water(
    pde: ShallowWater, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> tuple[Tensor, Tensor]:
    h, velocity = u[:, :, :1], u[:, :, 1:]
    state = torch.cat([h, h * velocity], dim=2)
    ground, later = given["b"][:, None], state[:, 1:]
    # Riemann problems leave some fifty fields to differentiate through. They are made anew on
    # the way back, a few frames at a time: all frames of a batch would take gigabytes.
    rhs = torch.cat(
        [checkpoint(pde.rhs, part, ground, use_reentrant=False) for part in later.split(8, dim=1)],
        dim=1,
    )
    # L = 0: waves cross about a cell from one frame to the next.
    tau = spans(times).to(u).view(-1, 1, 1, 1)
    return inside(tau * (time_derivative(state, times) - rhs), grid, margin=2), later


@miss.register
def _maxwell(
    pde: Maxwell, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Tensor
) -> tuple[Tensor, Tensor]:
    """∇ · E and ∇ · H at all frames, by the differences that Yee's scheme keeps at 0.

    They are compared with ∂Ex/∂x and the like, of which they are sums. The curl equations are
    left out: waves travel 2 to 4.5 cells from one frame to the next, so that the difference
    of two frames is no derivative. Of exact fields the residual would be twice ∂u/∂t.
    """
    e, h = u.split(3, dim=2)
    terms = torch.stack(
        [divergence_terms(e, slice(1, None)), divergence_terms(h, slice(None, -1))], dim=1
    )
    return terms.sum(-1), terms.norm(dim=-1)


def divergence_terms(
    v: Float[Tensor, "sample time 3 x y z"], cells: slice
) -> Float[Tensor, "sample time _ _ _ 3"]:
    """∂v₁/∂x, ∂v₂/∂y and ∂v₃/∂z a cell, at the cells that have a neighbour to subtract."""
    every, terms = slice(None), []
    for axis, component in enumerate(v.unbind(2)):
        kept = [cells] * 3
        kept[axis] = every
        terms.append(component[(every, every, *kept)].diff(dim=axis - 3))
    return torch.stack(terms, dim=-1)


def time_derivative(u: Frames, times: Float[Tensor, " time"]) -> Frames:
    """Of second order at all frames but the first: central, and one-sided at the last.

    Central differences alone have one equation less than unknown frames: they link every other
    frame, and leave the second one free.
    """
    (rate,) = torch.gradient(u, spacing=(times.to(u),), dim=1, edge_order=2)
    return rate[:, 1:]


def spans(times: Float[Tensor, " time"]) -> Float[Tensor, " _"]:
    """τ, from the first to the last of the three frames in a difference."""
    tau = times[2:] - times[:-2]
    return torch.cat([tau, tau[-1:]])


def inside(v: Float[Tensor, "sample time part *all"], grid: Grid, margin: int) -> Tensor:
    """The cells that know all their neighbours: every one on a solver's own grid.

    On a coarser one, whose points are no longer the centres of cells, the values beyond the
    ends are not where `rhs` takes them to be, which concerns `margin` cells.
    """
    if grid.offset == 0.5:
        return v
    every, kept = slice(None), slice(margin, -margin)
    return v[(every, every, every, *[kept] * grid.n_dim)]
