"""The weights of a softmax before they are divided by their sum, on a CPU in float32, compiled."""

import numpy as np
from numba import njit

from sfo.models.compiled.exp2 import exp2

ZERO, ONE = np.float32(0), np.float32(1)

POINTS = 256
"""Points at a time: what is known of them stays in cache through both passes."""

# As for numpy, x / 0 is no exception: where loops might end early there are no vectors.
compiled = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@compiled
def powers(
    rows: tuple[int, int], keys: np.ndarray, x: np.ndarray, out: np.ndarray, scale: np.ndarray
) -> None:
    """Set out_g = 2^(kᵀ_g x − top) and scale = 1 / Σ_g out_g at each point, for some rows.

    `top` is the largest of the exponents at the point, so that nothing overflows.

    Args:
        rows: The first row and the one past the last.
        keys: (row, g, channel), like all arrays contiguous in memory.
        x: (row, channel, point).
        out: (row, g, point).
        scale: (row, 1, point).
    """
    n_keys, n = out.shape[1:]
    most = np.empty(POINTS, np.float32)
    for row in range(*rows):
        for left in range(0, n, POINTS):
            right = min(n, left + POINTS)
            count = right - left
            for g in range(n_keys):
                k_g, out_g = keys[row, g], out[row, g, left:right]
                _product(k_g, x[row], left, out_g)
                if g == 0:
                    most[:count] = out_g
                for i in range(count):
                    # A comparison with NaN is false: it stays in its own place.
                    most[i] = out_g[i] if out_g[i] > most[i] else most[i]
            total = scale[row, 0, left:right]
            total[:] = ZERO
            for g in range(n_keys):
                out_g = out[row, g, left:right]
                for i in range(count):
                    value = exp2(out_g[i] - most[i])
                    out_g[i] = value
                    total[i] += value
            for i in range(count):
                total[i] = ONE / total[i]


@compiled
def _product(k: np.ndarray, x: np.ndarray, left: int, out: np.ndarray) -> None:
    """out = kᵀ x from point `left` on, four channels at a time: less traffic with the cache."""
    right = left + len(out)
    fours = len(k) // 4 * 4
    out[:] = ZERO
    for c in range(0, fours, 4):
        k0, k1, k2, k3 = k[c], k[c + 1], k[c + 2], k[c + 3]
        x0, x1 = x[c, left:right], x[c + 1, left:right]
        x2, x3 = x[c + 2, left:right], x[c + 3, left:right]
        for i in range(len(out)):
            out[i] += k0 * x0[i] + k1 * x1[i] + k2 * x2[i] + k3 * x3[i]
    for c in range(fours, len(k)):
        k0, x0 = k[c], x[c, left:right]
        for i in range(len(out)):
            out[i] += k0 * x0[i]
