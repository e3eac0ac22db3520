"""The published integrator: step for step what scipy's `solve_ivp` does at its defaults."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from sfo.pdes.sorption.default_rk45 import DefaultRK45Sorption
from sfo.pdes.sorption.equation import DiffusionSorption, published_constant


def published_rate(t, u, sign=1, left=1.0):
    """The right-hand side as the data's code has it: the power is NaN below −1e-6."""
    beyond = sign * 5e-4 * (u[-2] - u[-1]) * len(u)
    around = np.concatenate([[left], u, [beyond]])
    retardation = 1 + 0.71 / 0.29 * 2880 * 3.5e-4 * 0.874 * (u + 1e-6) ** (0.874 - 1)
    return 5e-4 / retardation * (around[2:] - 2 * u + around[:-2]) * len(u) ** 2


RNG = np.random.default_rng(0)
CASES = {
    "published": (np.full(64, 0.1097627), np.linspace(0, 20, 5), {}),
    "finer": (np.full(1024, 0.1), np.linspace(0, 0.2, 3), {}),
    "clean": (np.zeros(64), np.linspace(0, 20, 5), {}),
    "uneven times": (np.full(33, 0.1), np.array([3.0, 3.001, 3.5, 40.0, 41.0]), {}),
    "many frames a step": (np.full(8, 0.1), np.linspace(0, 300, 400), {}),
    "random field": (RNG.uniform(size=64), np.linspace(0, 20, 5), {}),
    "strict": (np.full(64, 0.1), np.linspace(0, 5, 3), dict(rtol=1e-8, atol=1e-10)),
}


def by_scipy(initial, times, *args, **tolerance):
    # scipy compares with NaN and goes on, numpy warns.
    with np.errstate(invalid="ignore"):
        return solve_ivp(
            published_rate, times[[0, -1]], initial, t_eval=times, args=args, **tolerance
        )


@pytest.mark.parametrize("outflow", ["published", "stated"])
@pytest.mark.parametrize("case", CASES)
def test_follows_scipy(case, outflow):
    """The same frames and the same number of evaluations."""
    initial, times, tolerance = CASES[case]
    scipy = by_scipy(initial, times, 1 if outflow == "published" else -1, **tolerance)
    soil = DefaultRK45Sorption(outflow=outflow)
    solved = soil.solve(torch.from_numpy(initial)[None, None], times, **tolerance)
    np.testing.assert_allclose(solved[0, :, 0], scipy.y.T, rtol=0, atol=1e-10)
    _, n_rates = soil.integrate(initial, times, **(tolerance or dict(rtol=1e-3, atol=1e-6)))
    assert n_rates == scipy.nfev


def test_follows_scipy_where_nothing_moves():
    """No rate, no error: steps grow tenfold."""
    initial, times = np.zeros(16), np.linspace(0, 500, 3)
    scipy = by_scipy(initial, times, 1, 0.0)
    frames, n_rates = DefaultRK45Sorption(left=0.0).integrate(initial, times, 1e-3, 1e-6)
    assert n_rates == scipy.nfev < 100
    np.testing.assert_array_equal(frames, np.zeros((3, 16)))


def test_the_published_code_meets_nan():
    """On 1,024 cells the first trial step leaves u below −shift, so `finer` covers NaN."""
    lowest = []

    def rate(t, u):
        lowest.append(u.min())
        return published_rate(t, u)

    with np.errstate(invalid="ignore"):
        solve_ivp(rate, (0, 1e-2), CASES["finer"][0])
    assert lowest[4] < -1e-6


def test_strict_tolerance_gives_the_accurate_solution():
    """Two integrators, one explicit and one implicit, of the same equation."""
    initial, times = torch.full((1, 1, 64), 0.1, dtype=torch.float64), [0, 1.0, 50.0]
    explicit = DefaultRK45Sorption().solve(initial, times, rtol=1e-9, atol=1e-11)
    assert (explicit - DiffusionSorption().solve(initial, times)).abs().max() < 1e-7


@pytest.mark.slow
def test_published_sample():
    """Sample 0 at full size: 688,826 evaluations, 1.45 % from the converged solution."""
    c, times = published_constant(0), np.linspace(0, 500, 101)
    frames, n_rates = DefaultRK45Sorption().integrate(np.full(1024, c), times, 1e-3, 1e-6)
    accurate, _ = DiffusionSorption().integrate(np.full(1024, c), times, 1e-7, 1e-9)
    assert abs(n_rates - 688_826) < 100
    error = np.linalg.norm(frames - accurate) / np.linalg.norm(accurate)
    assert abs(error - 0.01452) < 1e-5


def test_failure_names_the_sample():
    initial = torch.full((3, 1, 16), 0.1, dtype=torch.float64)
    initial[2] = -0.5
    with pytest.raises(ArithmeticError, match=r"Sample 2 of 3: RK45 stopped at t = 0: its step"):
        DefaultRK45Sorption().solve(initial, [0, 1.0])
