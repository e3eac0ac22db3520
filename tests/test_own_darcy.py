"""The data of examples/own_arrays.py; tests/test_wheel.py trains on them from a wheel."""

from types import SimpleNamespace

import numpy as np
from installed import EXAMPLES

EXAMPLE = EXAMPLES / "own_arrays.py"


def load_example():
    """What the cell of the tutorial with the solver defines."""
    (source,) = (part for part in EXAMPLE.read_text().split("# %%") if "def pressure" in part)
    names = {}
    exec(source.partition("\n")[2], names)
    return SimpleNamespace(**names)


def test_the_examples_pressure_solves_its_equation():
    """For k = 1 it is Poisson's: u(½, ½) = Σ 16 sin sin / (π⁴ m n (m² + n²)) over odd m, n."""
    n = 24
    u = load_example().pressure(np.ones((n, n)))
    odd = np.arange(1, 200, 2)
    x = (np.arange(n) + 0.5) / n
    sines = np.sin(np.pi * odd[:, None] * x)
    weight = 16 / (np.pi**4 * odd[:, None] * odd * (odd[:, None] ** 2 + odd**2))
    exact = sines.T @ weight @ sines
    assert np.abs(u - exact).max() < 0.02 * exact.max()
