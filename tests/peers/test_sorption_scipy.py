"""Diffusion–sorption by other integrators, with the equation written another way."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp
from scipy.sparse import diags

from sfo.pdes.sorption.equation import DiffusionSorption


def by_fluxes(n, sign):
    """∂u/∂t from the fluxes through the n + 1 faces, and where its Jacobian is not zero."""
    d, h = 5e-4, 1 / n

    def rate(t, u):
        flux = np.empty(n + 1)
        flux[0] = d * (1 - u[0]) / h
        flux[1:-1] = -d * np.diff(u) / h
        flux[-1] = d * (u[-1] - sign * d * (u[-2] - u[-1]) / h) / h
        sorbed = 2880 * 3.5e-4 * 0.874 / (u + 1e-6) ** 0.126
        return 0.29 * (flux[:-1] - flux[1:]) / h / (0.29 + 0.71 * sorbed)

    return rate, diags([1.0, 1.0, 1.0], [-1, 0, 1], shape=(n, n))


@pytest.mark.parametrize("outflow", ["published", "stated"])
@pytest.mark.parametrize("method", ["BDF", "Radau"])
def test_other_integrators_agree(method, outflow):
    """To 1e-6, from a rough initial field, at uneven times."""
    n, times = 96, np.array([0.0, 0.1, 3.0, 100.0, 500.0])
    initial = np.random.default_rng(0).uniform(0.05, 0.3, n)
    rate, pattern = by_fluxes(n, 1 if outflow == "published" else -1)
    options = dict(rtol=1e-8, atol=1e-10, jac_sparsity=pattern)
    peer = solve_ivp(rate, times[[0, -1]], initial, method=method, t_eval=times, **options)
    u = DiffusionSorption(outflow=outflow).solve(torch.from_numpy(initial)[None, None], times)
    np.testing.assert_allclose(u[0, :, 0], peer.y.T, rtol=0, atol=1e-6)
