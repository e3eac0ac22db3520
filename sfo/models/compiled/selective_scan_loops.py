"""The selective scan on a CPU in float32, compiled: forwards, and back through it.

The inner loops run along the channels, which are independent, and compile to vector
instructions.
"""

import numpy as np
from numba import njit

from sfo.models.compiled.exp2 import exp2

ZERO = np.float32(0)
LN2 = np.float32(np.log(2))

CHECKPOINT_STEPS = 32
"""One in so many states is kept for the backward pass."""
CHANNEL_CHUNK = 512
"""Channels at a time: long loops, over states that fit into the cache."""

# Sums in any order, products and sums in one instruction; infinities and NaN stay what they are.
FASTMATH_FLAGS = {"contract", "reassoc", "nsz"}


@njit(cache=True, fastmath=FASTMATH_FLAGS, nogil=True)
def scan(
    rows: tuple[int, int],
    backwards: bool,
    u: np.ndarray,
    delta: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    starts: np.ndarray,
    y: np.ndarray,
) -> None:
    """Set y and `starts`, the states before every STEPS-th point, for some rows of the batch.

        hₜ = 2^(Δₜ a) hₜ₋₁ + Δₜ bₜ uₜ,    yₜ = Σₛ cₜₛ hₜₛ

    Args:
        rows: The first row and the one past the last.
        backwards: Whether the last point is the first one.
        u, delta, y: (time, batch, channel), like all arrays contiguous in memory.
        a: (state, channel), over log 2.
        b, c: (time, batch, state).
        starts: (piece, batch, state, channel).
    """
    n, _, channels = u.shape
    n_states = len(a)
    width = min(CHANNEL_CHUNK, channels)
    state = np.empty((n_states, width), np.float32)
    x = np.empty(width, np.float32)
    for row in range(*rows):
        for left in range(0, channels, width):
            right = min(channels, left + width)
            count = right - left
            state[:] = ZERO
            for k in range(n):
                if k % CHECKPOINT_STEPS == 0:
                    starts[k // CHECKPOINT_STEPS, row, :, left:right] = state[:, :count]
                t = n - 1 - k if backwards else k
                u_t, delta_t = u[t, row, left:right], delta[t, row, left:right]
                y_t = y[t, row, left:right]
                for i in range(count):
                    x[i] = delta_t[i] * u_t[i]
                    y_t[i] = ZERO
                for s in range(n_states):
                    h, rate, b_t, c_t = state[s], a[s, left:right], b[t, row, s], c[t, row, s]
                    for i in range(count):
                        value = exp2(delta_t[i] * rate[i]) * h[i] + b_t * x[i]
                        h[i] = value
                        y_t[i] += c_t * value


@njit(cache=True, fastmath=FASTMATH_FLAGS, nogil=True)
def scan_gradients(
    rows: tuple[int, int],
    backwards: bool,
    u: np.ndarray,
    delta: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray,
    starts: np.ndarray,
    dy: np.ndarray,
    du: np.ndarray,
    ddelta: np.ndarray,
    db: np.ndarray,
    dc: np.ndarray,
    da: np.ndarray,
) -> None:
    """Set du and ddelta, and add to db, dc and da, for some rows of the batch.

    With x = Δ u and g the gradient of the states, from the last point to the first:

        gₜ = cₜ dyₜ + qₜ₊₁ gₜ₊₁,    qₜ = 2^(Δₜ a),    eₜ = gₜ qₜ hₜ₋₁
        dxₜ = Σₛ bₜₛ gₜₛ,    dbₜ = Σ xₜ gₜ,    dcₜ = Σ dyₜ hₜ,    sums over the channels
        duₜ = Δₜ dxₜ,    dΔₜ = uₜ dxₜ + log 2 Σₛ eₜₛ aₛ,    da = Σₜ Δₜ eₜ

    The states between two of `starts` are computed again. As in `scan`, a is the rate over log 2;
    da is the gradient of the rate itself.
    """
    n, _, channels = u.shape
    n_states = len(a)
    width = min(CHANNEL_CHUNK, channels)
    states = np.empty((CHECKPOINT_STEPS + 1, n_states, width), np.float32)
    decay = np.empty((CHECKPOINT_STEPS, n_states, width), np.float32)
    x = np.empty((CHECKPOINT_STEPS, width), np.float32)
    arriving = np.empty((n_states, width), np.float32)
    dx = np.empty(width, np.float32)
    for row in range(*rows):
        for left in range(0, channels, width):
            right = min(channels, left + width)
            count = right - left
            arriving[:] = ZERO
            for piece in range(len(starts) - 1, -1, -1):
                first = piece * CHECKPOINT_STEPS
                steps = min(CHECKPOINT_STEPS, n - first)
                states[0, :, :count] = starts[piece, row, :, left:right]
                for k in range(steps):
                    t = n - 1 - first - k if backwards else first + k
                    u_t, delta_t = u[t, row, left:right], delta[t, row, left:right]
                    dy_t, x_t = dy[t, row, left:right], x[k]
                    for i in range(count):
                        x_t[i] = delta_t[i] * u_t[i]
                    for s in range(n_states):
                        q, h_before, h = decay[k, s], states[k, s], states[k + 1, s]
                        rate, b_t = a[s, left:right], b[t, row, s]
                        total = ZERO
                        for i in range(count):
                            factor = exp2(delta_t[i] * rate[i])
                            q[i] = factor
                            value = factor * h_before[i] + b_t * x_t[i]
                            h[i] = value
                            total += dy_t[i] * value
                        dc[t, row, s] += total
                for k in range(steps - 1, -1, -1):
                    t = n - 1 - first - k if backwards else first + k
                    u_t, delta_t = u[t, row, left:right], delta[t, row, left:right]
                    du_t, ddelta_t = du[t, row, left:right], ddelta[t, row, left:right]
                    dy_t, x_t = dy[t, row, left:right], x[k]
                    for i in range(count):
                        dx[i] = ZERO
                        ddelta_t[i] = ZERO
                    for s in range(n_states):
                        g, q, e = arriving[s], decay[k, s], states[k, s]
                        rate, drate = a[s, left:right], da[s, left:right]
                        b_t, c_t = b[t, row, s], c[t, row, s]
                        total = ZERO
                        for i in range(count):
                            value = g[i] + c_t * dy_t[i]
                            total += x_t[i] * value
                            dx[i] += b_t * value
                            g[i] = value * q[i]
                        db[t, row, s] += total
                        for i in range(count):
                            exponent = g[i] * e[i]
                            ddelta_t[i] += exponent * rate[i]
                            drate[i] += exponent * delta_t[i]
                    for i in range(count):
                        du_t[i] = dx[i] * delta_t[i]
                        ddelta_t[i] = LN2 * ddelta_t[i] + dx[i] * u_t[i]
