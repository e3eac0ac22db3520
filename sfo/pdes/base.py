"""What periodic equations share: one statement for the solver, the residual and the theory."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid
from sfo.pdes.derivative import Derivatives, OnCoefficients, Spectral
from sfo.pdes.integrate import StepTooLong, integrate
from sfo.pdes.problem import Array, check_constants, check_positive, check_problem
from sfo.pdes.residual import Frames, spans, time_derivative

TOLERANCE = 1e-4
"""Largest estimated error of a sample, relative to its size, at an equation's own steps."""
HALVINGS = 4
"""How often an equation's own steps are halved to keep it."""


class Semilinear(ABC):
    """∂u/∂t = linear(u) + outer(reaction(u) + source), periodic on (lower, upper) along each axis.

    `linear` and `outer` have constant coefficients, and `linear` acts on each channel by
    itself; `reaction` is any function of values and derivatives. An equation states these and
    its constants; the right-hand side on a grid, the symbols that the solver steps with and
    the residual follow. Derivatives have any order, along any of the axes: `d(u, 4)`,
    `d(u, 1, 2)`, `d.laplacian(u)`; see `Derivatives`.

    Attributes:
        names: Names of the channels.
        n_dim: Number of axes.
        offset: Where the points lie in their cells, see `Grid`.
        max_step: The solver's longest time step, short enough for the benchmark's fields.
        warm_up: How often it is halved for the first steps, see `step_plan`.
        dealias: Share of the waves that the reaction is computed from and adds to; 2/3 keeps
            products of two waves from appearing as other waves, and 1 keeps all.

    Example:
        >>> from dataclasses import dataclass
        >>> @dataclass(frozen=True)
        ... class KortewegDeVries(Semilinear):
        ...     lower: float = 0.0
        ...     upper: float = 20.0
        ...     max_step: float = 0.01
        ...
        ...     def linear(self, u, d):
        ...         return -d(u, 3)
        ...
        ...     def reaction(self, u, d):
        ...         return 6 * u * d(u, 1)
        >>> x = KortewegDeVries().grid(128).coordinates()[0]
        >>> wave = -2 / torch.cosh(x - 10) ** 2
        >>> after = KortewegDeVries().solve(wave[None, None], [0.0, 0.5])[0, 1, 0]
        >>> bool((after + 2 / torch.cosh(x - 10 - 4 * 0.5) ** 2).abs().max() < 1e-3)
        True
    """

    names: ClassVar[tuple[str, ...]] = ("u",)
    n_dim: ClassVar[int] = 1
    offset: ClassVar[float] = 0.0
    lower: float | tuple[float, ...]
    upper: float | tuple[float, ...]
    max_step: float
    warm_up: ClassVar[int] = 0
    dealias: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        check_constants(self)

    @abstractmethod
    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        """The stiff part, which the solver takes exactly."""

    @abstractmethod
    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        """The nonlinear part, from values and derivatives."""

    def outer(self, v: Tensor, d: Derivatives) -> Tensor:
        """What acts on the reaction: nothing, unless an equation says otherwise."""
        return v

    def source(self, grid: Grid) -> Tensor | None:
        """What is added to the reaction whatever the solution, `(*grid)` in float64."""
        return None

    @property
    def length(self) -> float:
        """Length of one period along the first axis."""
        return self.lengths[0]

    @property
    def lengths(self) -> tuple[float, ...]:
        """Length of one period along each axis."""
        return tuple(b - a for a, b in zip(*self._box(), strict=True))

    def grid(self, shape: int | Sequence[int]) -> Grid:
        """The points of one period on which the benchmark's fields live.

        Args:
            shape: Points along each axis; one number stands for all axes.
        """
        shape = (shape,) * self.n_dim if isinstance(shape, int) else tuple(shape)
        lower, upper = self._box()
        return Grid(shape, lower, upper, offset=self.offset)

    def rhs(
        self,
        u: Float[Tensor, "*batch_and_grid"],
        derivatives: type[Derivatives] = Spectral,
        grid: Grid | None = None,
    ) -> Float[Tensor, "*batch_and_grid"]:
        """∂u/∂t.

        Args:
            u: Fields `(*batch, *grid)`, or `(*batch, channel, *grid)` of several channels.
            derivatives: How derivatives are taken, `Spectral` or `Central`.
            grid: Where the points of `u` lie; None: where the benchmark's lie.
        """
        shape = tuple(u.shape[-self.n_dim :])
        d = derivatives(shape, self.lengths)
        reaction = self.reaction(u, d)
        source = self.source(self.grid(shape) if grid is None else grid)
        if source is not None:
            reaction = reaction + source.to(reaction)
        return self.linear(u, d) + self.outer(reaction, d)

    def symbols(self, shape: int | Sequence[int]) -> tuple[Tensor, Tensor]:
        """What `linear` and `outer` multiply Fourier coefficients by.

        Each is of the shape of the coefficients of a field, with the channels in front where
        there are several.

        Args:
            shape: Points along each axis; one number stands for all axes.
        """
        grid = self.grid(shape)
        d = OnCoefficients(grid.shape, self.lengths)
        wave = d.symbol(torch.ones((), dtype=torch.float64), *[0] * self.n_dim)
        if len(self.names) == 1:
            return self.linear(wave, d), self.outer(wave, d)
        return self._diagonal(self.linear, wave, d), self._diagonal(self.outer, wave, d)

    def _diagonal(self, part, wave: Tensor, d: OnCoefficients) -> Tensor:  # type: ignore[no-untyped-def]
        """The symbol of each channel, of an operator that must not mix them."""
        rows = []
        for channel in range(len(self.names)):
            alone = torch.zeros(len(self.names), *wave.shape, dtype=wave.dtype)
            alone[channel] = wave
            image = part(alone, d)
            others = [c for c in range(len(self.names)) if c != channel]
            if image[others].any():
                raise ValueError(
                    f"`{part.__name__}` of {type(self).__name__} must act on each channel by "
                    f"itself, got an effect of {self.names[channel]} on another channel. Put "
                    "terms that couple channels into `reaction`."
                )
            rows.append(image[channel])
        return torch.stack(rows)

    def solve(
        self,
        initial: Float[Array, "sample channel *grid"],
        times: Float[Array, " time"] | Sequence[float],
        max_step: float | None = None,
    ) -> Float[Tensor, "sample time channel *grid"]:
        """The solution at `times`, by ETDRK4 on the Fourier coefficients in float64.

        Args:
            initial: Field at the first of the times, any number of samples.
            times: Times of the frames, increasing, at any distances; every one is met exactly.
            max_step: Longest time step. None: the equation's own, which is halved as often as
                it takes to keep the estimated error of every sample below `TOLERANCE`, at most
                `HALVINGS` times.

        Returns:
            One frame per time. The first is `initial` itself.
        """
        initial, times = check_problem(initial, times, len(self.names), self.n_dim)
        shape = tuple(initial.shape[2:])
        d = Spectral(shape, self.lengths)
        linear, outer = (symbol.to(initial.device) for symbol in self.symbols(shape))
        source = self.source(self.grid(shape))
        source_hat = None if source is None else d.coefficients(source.to(initial))
        # Where all waves count for more than their aliases, none is left out: at 1,024 points
        # Allen–Cahn is right to 1e-8 as it is, to 2e-4 with the upper half cut off.
        kept = self._kept(d).to(initial) if self.dealias < 1 else None

        def reaction(u_hat: Tensor) -> Tensor:
            if kept is not None:
                u_hat = kept * u_hat
            u = d.values(u_hat)
            d.remember(u, u_hat)
            r_hat = d.coefficients(self.reaction(u, d))
            return r_hat if source_hat is None else r_hat + source_hat

        run = partial(
            integrate,
            initial,
            times,
            linear=linear,
            outer=outer if kept is None else kept * outer,
            reaction=reaction,
            warm_up=self.warm_up,
        )
        if max_step is not None:
            return run(max_step=check_positive("max_step", max_step))
        for halvings in range(HALVINGS):
            try:
                return run(max_step=self.max_step / 2**halvings, tolerance=TOLERANCE)
            except StepTooLong:
                continue
        shortest = self.max_step / 2**HALVINGS
        try:
            return run(max_step=shortest, tolerance=TOLERANCE)
        except StepTooLong as failure:
            raise ValueError(
                f"`initial` is too rough or too large for the steps of {type(self).__name__}. "
                f"{failure} Pass a smaller `max_step`, such as max_step={shortest / 4:.1g}."
            ) from None

    def residual(
        self,
        u: Frames,
        *,
        given: Mapping[str, Tensor],
        grid: Grid,
        times: Float[Tensor, " time"],
    ) -> tuple[Tensor, Tensor]:
        """(1/τ + |L|)⁻¹ (∂u/∂t − rhs(u)) of all frames but the first, and those frames.

        Spectral derivatives: of solutions at 256 points three-point differences would miss
        twice as much on Allen–Cahn, and six times as much on Cahn–Hilliard.

        Args:
            u: Solutions, or predictions.
            given: Fields of the input by name, which periodic equations do not need.
            grid: Grid of u, maybe a part of the solver's points.
            times: Times of the frames.
        """
        later = u[:, 1:]
        residual = time_derivative(u, times) - self.rhs(later, grid=grid)
        linear, _ = self.symbols(grid.shape)
        tau = spans(times).reshape([-1, *[1] * (1 + self.n_dim)])
        factor = 1 / (1 / tau + linear.abs())
        d = Spectral(grid.shape, self.lengths)
        return d.values(factor.to(u) * d.coefficients(residual)), later

    def _box(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        lower, upper = (
            ends if isinstance(ends, tuple) else (ends,) * self.n_dim
            for ends in (self.lower, self.upper)
        )
        return lower, upper

    def _kept(self, d: OnCoefficients) -> Float[Tensor, "*modes"]:
        """1 on the waves with |m| < dealias · n/2 along every axis, 0 on the others."""
        kept = torch.ones(())
        for k, n, length in zip(d.wave_numbers(), d.shape, d.lengths, strict=True):
            m = k * length / (2 * torch.pi)
            kept = kept * (m.abs() < self.dealias * n / 2 - 1e-9)
        return kept


def ginzburg_landau(
    u: Float[Tensor, "*batch n"], length: float, *, tension: float, strength: float
) -> Float[Tensor, "*batch"]:
    """∫ tension/2 (∂u/∂x)² + strength/4 (u² − 1)² dx over one period: the energy of two phases."""
    # By parts, ∫ (∂u/∂x)² = −∫ u ∂²u/∂x². On the grid too, rhs then descends this energy.
    walls = -tension / 2 * u * Spectral(u.shape[-1:], (length,))(u, 2)
    return length * (walls + strength / 4 * (u**2 - 1) ** 2).mean(-1)
