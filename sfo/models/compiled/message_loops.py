"""What an MPNN does along edges between its matrix products, on a CPU in float32, compiled.

Point i of `a` and point j of `b` are connected by edge (i, j) = (receivers[e], senders[e]);
a row of an array holds all samples and channels. All of it is about the activation

    σ(x) = x s,    σ′(x) = s + x s (1 − s),    s = 1 / (1 + e⁻ˣ).
"""

from math import e, log2

import numpy as np
from numba import njit

from sfo.models.compiled.exp2 import exp2

ZERO, ONE = np.float32(0), np.float32(1)
MINUS_LOG2_E = np.float32(-log2(e))

# As for numpy, x / 0 is no exception: where loops might end early there are no vectors.
compiled = njit(cache=True, error_model="numpy", fastmath={"contract"})


@compiled
def sigmoid(x: np.float32) -> np.float32:
    return ONE / (ONE + exp2(x * MINUS_LOG2_E))


@compiled
def slope(x: np.float32) -> np.float32:
    # 1 − s would lose digits for large x: s (1 − s) is the same for x and −x.
    faded = exp2(abs(x) * MINUS_LOG2_E)
    half = ONE / (ONE + faded)
    s = half if x > ZERO else faded * half
    return s + x * faded * half * half


@compiled
def hidden(
    receivers: np.ndarray, senders: np.ndarray, a: np.ndarray, b: np.ndarray, z: np.ndarray
) -> None:
    """z_e = σ(a_i + b_j)."""
    for edge in range(len(receivers)):
        a_i, b_j, z_e = a[receivers[edge]], b[senders[edge]], z[edge]
        for k in range(len(z_e)):
            x = a_i[k] + b_j[k]
            z_e[k] = x * sigmoid(x)


@compiled
def add_messages(receivers: np.ndarray, y: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    """out_i += σ(y_e + bias)."""
    for edge in range(len(receivers)):
        y_e, out_i = y[edge], out[receivers[edge]]
        for k in range(len(y_e)):
            x = y_e[k] + bias[k]
            out_i[k] += x * sigmoid(x)


@compiled
def message_gradients(
    receivers: np.ndarray, y: np.ndarray, bias: np.ndarray, dout: np.ndarray
) -> None:
    """y_e ← dout_i σ′(y_e + bias)."""
    for edge in range(len(receivers)):
        y_e, dout_i = y[edge], dout[receivers[edge]]
        for k in range(len(y_e)):
            y_e[k] = dout_i[k] * slope(y_e[k] + bias[k])


@compiled
def add_hidden_gradients(
    receivers: np.ndarray,
    senders: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    dz: np.ndarray,
    da: np.ndarray,
    db: np.ndarray,
) -> None:
    """da_i += dz_e σ′(a_i + b_j), and db_j the same."""
    for edge in range(len(receivers)):
        a_i, b_j, dz_e = a[receivers[edge]], b[senders[edge]], dz[edge]
        da_i, db_j = da[receivers[edge]], db[senders[edge]]
        for k in range(len(dz_e)):
            dx = dz_e[k] * slope(a_i[k] + b_j[k])
            da_i[k] += dx
            db_j[k] += dx
