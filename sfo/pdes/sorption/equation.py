"""The 1D diffusion–sorption equation: a solute that sticks to the ground it seeps through."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.checks import check_choice
from sfo.grid import Grid
from sfo.pdes.problem import (
    Array,
    NotSolved,
    check_constants,
    check_positive,
    check_problem,
    check_solved,
)
from sfo.pdes.residual import Frames, inside, spans, time_derivative

Outflow = Literal["published", "stated"]
"""How the solute leaves on the right, see `DiffusionSorption`."""

SIGN: dict[Outflow, int] = {"published": 1, "stated": -1}


@dataclass(frozen=True)
class DiffusionSorption:
    """∂u/∂t = D/R(u) ∂²u/∂x² on (lower, upper), R(u) being the retardation by sorption.

    After Freundlich,

        R(u) = 1 + (1 − φ)/φ ρ_s k_f n_f (u + shift)^(n_f − 1).

    Central differences on n cells of width h. The ends are values in a cell beyond them:

        left:   u₋₁ = left
        right:  u_n = D (u_{n−2} − u_{n−1}) / h  ("published"),   with the other sign ("stated")

    so that u = left at x = lower, to first order in h, and u ≈ 0 at x = upper. The texts state
    u = D ∂u/∂x there, the data were made with u = −D ∂u/∂x. On coarse grids the two differ by
    O(D), but on finer ones the stated sign feeds what it should let out: u falls below zero at
    the right end once h < D, and grows without bound once h < D/3.

    The texts let t end at 1, the data end at 500.

    Args:
        diffusivity: D.
        porosity: φ, in 0..1.
        rho_s: Bulk density; 0 switches sorption off, R = 1.
        k_f: Freundlich's parameter.
        n_f: Freundlich's exponent.
        shift: Keeps R(0) finite; in the code that made the data, not in the texts.
        left: u in the cell beyond the left end.
        lower, upper: The ends.
        outflow: Sign of the value beyond the right end, as in the data by default.

    Example:
        >>> soil = DiffusionSorption()
        >>> initial = torch.full((1, 1, 64), 0.1)
        >>> u = soil.solve(initial, times=torch.linspace(0, 500, 11))
        >>> u.shape
        torch.Size([1, 11, 1, 64])
        >>> bool((u >= 0).all() and (u <= soil.left).all())
        True
    """

    diffusivity: float = 5e-4
    porosity: float = 0.29
    rho_s: float = 2880.0
    k_f: float = 3.5e-4
    n_f: float = 0.874
    shift: float = 1e-6
    left: float = 1.0
    lower: float = 0.0
    upper: float = 1.0
    outflow: Outflow = "published"

    names: ClassVar[tuple[str, ...]] = ("u",)

    def __post_init__(self) -> None:
        check_constants(self, "diffusivity", "n_f", "shift")
        if not 0 < self.porosity <= 1:
            raise ValueError(
                f"`porosity` must be above 0 and at most 1, the pores' share of the volume, "
                f"got {self.porosity}."
            )
        check_choice("outflow", self.outflow, Outflow)

    def grid(self, n: int) -> Grid:
        """The centres of n cells."""
        return Grid((n,), (self.lower,), (self.upper,), offset=0.5, periodic=False)

    @property
    def capacity(self) -> float:
        """(1 − φ)/φ ρ_s k_f n_f, the factor of the power in R."""
        return (1 - self.porosity) / self.porosity * self.rho_s * self.k_f * self.n_f

    def retardation(self, u: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """R(u), and R(0) where u < 0: the power is not real there.

        Its derivative is then 0, so that a network that predicts a little less than nothing
        has finite gradients.
        """
        return 1 + self.capacity * (u.clamp(min=0) + self.shift) ** (self.n_f - 1)

    def stored(self, u: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """S(u), dissolved and sorbed solute together: dS/du = R(u), the integral of S is balanced.

        S(u) = u + capacity/n_f (u + shift)^n_f, and S(0) + R(0) u where u < 0.
        """
        positive = u.clamp(min=0)
        sorbed = (positive + self.shift) ** self.n_f / self.n_f
        below = (u - positive) * self.shift ** (self.n_f - 1)
        return u + self.capacity * (sorbed + below)

    def rhs(self, u: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        """∂u/∂t on n cells, values and gradients finite for every finite u, see `retardation`."""
        h = self._spacing(u.shape[-1])
        left = torch.full_like(u[..., :1], self.left)
        right = SIGN[self.outflow] * self.diffusivity / h * (u[..., -2:-1] - u[..., -1:])
        around = torch.cat([left, u, right], dim=-1)
        second_difference = around[..., :-2] - 2 * u + around[..., 2:]
        return self.diffusivity / h**2 * second_difference / self.retardation(u)

    def solve(
        self,
        initial: Float[Array, "sample 1 n"],
        times: Float[Array, " time"],
        rtol: float = 1e-7,
        atol: float = 1e-9,
    ) -> Float[Tensor, "sample time 1 n"]:
        """The solutions from any initial fields, in float64, by LSODA with a tridiagonal Jacobian.

        At the default tolerances the frames are within 1e-7 of the exact solution of the n
        ordinary differential equations.

        Args:
            initial: u at the first of the times.
            times: Times of the frames, increasing, at any distances.
            rtol, atol: The error of a step is estimated and kept below rtol |u| + atol.

        Returns:
            One frame a time. The first is `initial` itself.

        Raises:
            NotSolved: If the integrator gives up on a sample; it says which.
        """
        initial, times = check_problem(initial, times, channels=len(self.names))
        if not (check_positive("rtol", rtol) >= 1e-13 and check_positive("atol", atol)):
            raise ValueError(f"`rtol` must be at least 1e-13, above round-off, got rtol={rtol}.")
        frames = torch.empty(len(initial), len(times), *initial.shape[1:], dtype=torch.float64)
        t = times.numpy(force=True)
        for sample, field in enumerate(initial.numpy(force=True)):
            try:
                rows, _ = self.integrate(field[0], t, rtol, atol)
            except ArithmeticError as failure:
                raise NotSolved(f"Sample {sample} of {len(initial)}: {failure}") from failure
            frames[sample, :, 0] = torch.from_numpy(rows)
        return check_solved(frames)

    def residual(
        self, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Float[Tensor, " time"]
    ) -> tuple[Tensor, Tensor]:
        """R(u) (∂u/∂t − rhs(u)) of all frames but the first, divided by R/τ + |D ∂²/∂x²|, and u.

        Multiplied by R the stiff part is linear. The eigenvectors of its three-point difference
        between given ends are the sines, of which the odd extension of a field is made.

        Args:
            u: Solutions, or predictions.
            given: Fields of the input by name, which are not needed.
            grid: Grid of u, maybe a part of the solver's points.
            times: Times of the frames.
        """
        later = u[:, 1:]
        residual = self.retardation(later) * (time_derivative(u, times) - self.rhs(later))
        residual = inside(residual, grid, margin=1)
        n, (h,) = residual.shape[-1], grid.spacing
        angle = torch.arange(n + 2, dtype=torch.float64) * math.pi / (2 * (n + 1))
        linear = self.diffusivity * (2 / h * angle.sin()) ** 2
        least = float(self.retardation(torch.tensor(self.left)))
        factor = 1 / (least / spans(times)[:, None, None] + linear)
        zero = torch.zeros_like(residual[..., :1])
        odd = torch.cat([zero, residual, zero, -residual.flip(-1)], dim=-1)
        smooth = torch.fft.irfft(factor.to(u) * torch.fft.rfft(odd), n=2 * n + 2)
        return smooth[..., 1 : n + 1], later

    def integrate(
        self, initial: np.ndarray, times: np.ndarray, rtol: float, atol: float
    ) -> tuple[np.ndarray, int]:
        """One sample's frames, one per row, and how often the right-hand side was computed."""
        from scipy.integrate import ODEintWarning, odeint

        from sfo.pdes.sorption.loops import rate

        constants = self.loop_constants(len(initial))

        def derivative(_: float, u: np.ndarray) -> np.ndarray:
            out = np.empty_like(u)
            rate(u, constants, out)
            return out

        with warnings.catch_warnings():
            warnings.simplefilter("error", ODEintWarning)
            try:
                frames, counts = odeint(
                    derivative,
                    initial,
                    times,
                    tfirst=True,
                    ml=1,
                    mu=1,
                    rtol=rtol,
                    atol=atol,
                    mxstep=100_000,  # between two frames; 600 steps are usual in all
                    full_output=True,
                )
            except ODEintWarning as warning:
                reason = str(warning).split(" Run with")[0]
                raise ArithmeticError(f"LSODA stopped. {reason}") from None
        return frames, int(counts["nfe"].max(initial=0))

    def loop_constants(self, n: int, floor: float = 0.0) -> tuple[float, ...]:
        """D/h², capacity, n_f − 1, shift, left, ±D/h and the least u in R, for the loops."""
        h = self._spacing(n)
        outflow = SIGN[self.outflow] * self.diffusivity / h
        power = self.n_f - 1
        diffusion = self.diffusivity / h**2
        constants = (diffusion, self.capacity, power, self.shift, self.left, outflow, floor)
        return tuple(map(float, constants))

    def _spacing(self, n: int) -> float:
        if n < 2:
            raise ValueError(f"The last axis of the field must have at least 2 cells, got {n}.")
        return (self.upper - self.lower) / n


def initial_constant(
    rng: np.random.Generator, grid: Grid, low: float = 0.0, high: float = 0.2
) -> Float[Tensor, "1 *grid"]:
    """One number, uniform in low..high, at every point: the initial fields of the data.

    Example:
        >>> cells = DiffusionSorption().grid(4)
        >>> initial_constant(np.random.default_rng(0), cells)
        tensor([[0.1274, 0.1274, 0.1274, 0.1274]], dtype=torch.float64)
    """
    if not low <= high:
        raise ValueError(f"`low` must not be above `high`, got low={low} and high={high}.")
    return torch.full((1, *grid.shape), rng.uniform(low, high), dtype=torch.float64)


def published_constant(index: int, low: float = 0.0, high: float = 0.2) -> float:
    """The initial number of the published sample `index`: the first draw of that seed.

    Example:
        >>> [round(published_constant(i), 7) for i in range(3)]
        [0.1097627, 0.0834044, 0.087199]
    """
    return float(np.random.RandomState(index).uniform(low, high))
