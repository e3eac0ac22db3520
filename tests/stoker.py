"""The exact dam break on flat ground, wet (Stoker) or dry (Ritter), for comparison."""

import numpy as np
from scipy.optimize import brentq


def dam_break(x, t, behind, ahead, gravity=1.0):
    """(h, u) at time t of water that stood `behind` deep at x < 0 and `ahead` deep at x > 0.

    A rarefaction u + 2c = 2c₀ runs back into the deep water. On dry ground it reaches to the
    front at x = 2c₀t; on wet ground it ends at the depth from which a bore can run ahead.
    """
    c_0 = np.sqrt(gravity * behind)
    if ahead == 0:
        middle, bore = 0.0, 2 * c_0
    else:

        def mismatch(h):
            jump = (h - ahead) * np.sqrt(gravity / 2 * (1 / h + 1 / ahead))
            return 2 * (c_0 - np.sqrt(gravity * h)) - jump

        middle = brentq(mismatch, ahead, behind, xtol=1e-15)
        bore = 2 * (c_0 - np.sqrt(gravity * middle)) * middle / (middle - ahead)
    c = np.clip((2 * c_0 - x / t) / 3, np.sqrt(gravity * middle), c_0)
    passed = x < bore * t
    h = np.where(passed, c**2 / gravity, ahead)
    return h, np.where(passed, 2 * (c_0 - c), 0.0)


def cell_means(n, lower, upper, t, behind, ahead, points=50):
    """The means of h and hu over n cells."""
    x = lower + (np.arange(n * points) + 0.5) * (upper - lower) / (n * points)
    h, u = dam_break(x, t, behind, ahead)
    return np.stack([h, h * u]).reshape(2, n, points).mean(-1)
