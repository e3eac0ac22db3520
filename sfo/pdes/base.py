"""What periodic equations share: one statement for the solver, the residual and the theory."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid
from sfo.pdes.derivative import Derivative, second_derivative, wave_numbers
from sfo.pdes.integrate import Array, check_problem, integrate

SecondDerivative = Callable[[Tensor], Tensor]
"""∂²/∂x² of values on the grid, or of Fourier coefficients: there it multiplies by −k²."""


class Semilinear(ABC):
    """∂u/∂t = linear(u) + outer(reaction(u)), periodic on (lower, upper).

    `linear` and `outer` have constant coefficients, `reaction` acts point by point. An
    equation states these and its constants; the right-hand side on a grid and the symbols
    that the solver steps with both follow.

    Attributes:
        names: Of the channels.
        offset: Where the points lie in their cells, see `Grid`.
        max_step: The solver's longest time step, short enough for the benchmark's fields.
        warm_up: How often it is halved for the first steps, see `stretches`.
    """

    names: ClassVar[tuple[str, ...]] = ("u",)
    offset: ClassVar[float] = 0.0
    lower: float
    upper: float
    max_step: float
    warm_up: ClassVar[int] = 0

    @abstractmethod
    def linear(self, u: Tensor, d2: SecondDerivative) -> Tensor:
        """The stiff part, which the solver takes exactly."""

    @abstractmethod
    def reaction(self, u: Tensor) -> Tensor:
        """The nonlinear part, point by point."""

    def outer(self, v: Tensor, d2: SecondDerivative) -> Tensor:
        """What acts on the reaction: nothing, unless an equation says otherwise."""
        return v

    @property
    def length(self) -> float:
        """Of one period."""
        return self.upper - self.lower

    def grid(self, n: int) -> Grid:
        """The n points of one period on which the benchmark's fields live."""
        return Grid((n,), (self.lower,), (self.upper,), offset=self.offset)

    def rhs(
        self, u: Float[Tensor, "*batch n"], d2: Derivative = second_derivative
    ) -> Float[Tensor, "*batch n"]:
        """∂u/∂t, with ∂²/∂x² as `d2` takes it."""

        def on_the_grid(v: Tensor) -> Tensor:
            return d2(v, self.length)

        return self.linear(u, on_the_grid) + self.outer(self.reaction(u), on_the_grid)

    def symbols(self, n: int) -> tuple[Float[Tensor, " modes"], Float[Tensor, " modes"]]:
        """What `linear` and `outer` multiply the Fourier coefficients of n points by."""
        k = wave_numbers(n, self.length)

        def on_waves(v: Tensor) -> Tensor:
            return -(k**2) * v

        wave = torch.ones_like(k)
        return self.linear(wave, on_waves), self.outer(wave, on_waves)

    def solve(
        self,
        initial: Float[Array, "sample 1 n"],
        times: Float[Array, " time"] | Sequence[float],
        max_step: float | None = None,
    ) -> Float[Tensor, "sample time 1 n"]:
        """The solution at `times`, by ETDRK4 on the Fourier coefficients in float64.

        Args:
            initial: The field at the first of the times, any number of samples.
            times: Increasing, at any distances; every one is met exactly.
            max_step: Longest time step; the equation's own by default.

        Returns:
            One frame a time. The first is `initial` itself.
        """
        initial, times = check_problem(initial, times, channels=len(self.names))
        linear, outer = self.symbols(initial.shape[-1])
        return integrate(
            initial,
            times,
            linear=linear,
            outer=outer,
            reaction=self.reaction,
            max_step=self.max_step if max_step is None else max_step,
            warm_up=self.warm_up,
        )


def ginzburg_landau(
    u: Float[Tensor, "*batch n"], length: float, *, tension: float, strength: float
) -> Float[Tensor, "*batch"]:
    """∫ tension/2 (∂u/∂x)² + strength/4 (u² − 1)² dx over one period: the energy of two phases."""
    # By parts, ∫ (∂u/∂x)² = −∫ u ∂²u/∂x². On the grid too, rhs then descends this energy.
    walls = -tension / 2 * u * second_derivative(u, length)
    return length * (walls + strength / 4 * (u**2 - 1) ** 2).mean(-1)
