"""Diffusion–sorption as the published data were made: by scipy's RK45 at its defaults."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from sfo.pdes.problem import Array
from sfo.pdes.sorption.equation import DiffusionSorption


@dataclass(frozen=True)
class DefaultRK45Sorption(DiffusionSorption):
    """`DiffusionSorption` with the integrator, and the errors, of the published data.

    They come from `scipy.integrate.solve_ivp` at its defaults: an explicit method on a stiff
    problem, at a tolerance of 1e-3. Its steps keep to the limit of stability, and at 1,024
    cells the frames are off by a smooth 1.4 % and a noise of 0.1 % near the left end. Use it
    for figures to set beside published ones, and `DiffusionSorption` for all else.

    Example:
        >>> import torch
        >>> DefaultRK45Sorption().solve(0.1 * torch.ones(1, 1, 32), torch.tensor([0.0, 5.0])).shape
        torch.Size([1, 2, 1, 32])
    """

    def solve(
        self,
        initial: Float[Array, "sample 1 n"],
        times: Float[Array, " time"],
        rtol: float = 1e-3,
        atol: float = 1e-6,
    ) -> Float[Tensor, "sample time 1 n"]:
        """What `solve_ivp(method="RK45", t_eval=times)` gives, compiled, in float64.

        The same pair of formulas, error norm, step control and interpolation, so the same
        steps. As in the code that made the data, the power in R is NaN wherever a trial step
        leaves u below −shift, which cuts the step to a fifth.
        """
        return super().solve(initial, times, rtol, atol)

    def integrate(
        self, initial: np.ndarray, times: np.ndarray, rtol: float, atol: float
    ) -> tuple[np.ndarray, int]:
        """One sample's frames, one per row, and how often the right-hand side was computed."""
        from scipy.integrate import RK45

        from sfo.pdes.sorption.loops import rk45

        constants = self.loop_constants(len(initial), floor=-math.inf)
        tables = (RK45.A, RK45.B, RK45.E, RK45.P)
        frames, n_rates, reached = rk45(initial, times, rtol, atol, constants, *tables)
        if reached < times[-1]:
            raise ArithmeticError(f"RK45 stopped at t = {reached:g}: its step became too small.")
        return frames, n_rates
