import numpy as np

from sfo.models.compiled.exp2 import exp2


def test_powers_of_two():
    """Within two units in the last place, 0 and ∞ out of range; NaN is not hidden."""
    x = np.linspace(-126, 127, 5001, dtype=np.float32)
    power = np.float32([exp2(value) for value in x])
    np.testing.assert_array_max_ulp(power, np.exp2(x.astype(np.float64)).astype(np.float32), 2)
    far = np.float32([-1e9, -np.inf, 0, 1, 200, np.inf, np.nan])
    np.testing.assert_array_equal([exp2(v) for v in far], [0, 0, 1, 2, np.inf, np.inf, np.nan])
