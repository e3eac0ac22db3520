"""A step of shallow water along one axis by Roe's waves, compiled: `RadialDamBreak`'s loop."""

import math

import numpy as np
from numba import njit

# Divisions by 0 give inf or NaN, as in NumPy: to check each would cost a fifth of the time.
# `float64[:, :]` leaves the strides open: one compilation of `sweep` serves both axes.
ROWS = "float64(float64[:, :], float64[:, :], float64[:, :], float64, float64)"


@njit(cache=True, error_model="numpy")
def leftward_speed(s: float, start: float, end: float) -> float:
    """s⁻ of a wave of speed s whose characteristics spread from `start` to `end`.

    It is min(s, 0), but in a rarefaction about 0 that share of the wave which keeps it from
    standing still as an expanding jump (Harten & Hyman's entropy fix).
    """
    if start < 0.0 < end:
        return start * (end - s) / (end - start)
    return min(s, 0.0)


@njit(cache=True, error_model="numpy")
def split(
    left: np.ndarray,
    right: np.ndarray,
    gravity: float,
    waves: np.ndarray,
    speeds: np.ndarray,
    leftward: np.ndarray,
    rightward: np.ndarray,
) -> None:
    """Split the jump between two cells of (h, hu, hv) into Roe's three waves.

        q_r − q_l = Σₚ Wₚ,    A⁻Δq = Σₚ sₚ⁻ Wₚ,    A⁺Δq = Σₚ (sₚ − sₚ⁻) Wₚ

    Writes the waves, one per row; their speeds u − c, u, u + c at Roe's mean; A⁻Δq and A⁺Δq.
    """
    u_l, u_r = left[1] / left[0], right[1] / right[0]
    weight_l, weight_r = math.sqrt(left[0]), math.sqrt(right[0])
    u = (weight_l * u_l + weight_r * u_r) / (weight_l + weight_r)
    v = (left[2] / weight_l + right[2] / weight_r) / (weight_l + weight_r)
    c = math.sqrt(gravity * (left[0] + right[0]) / 2)
    jump_h, jump_q = right[0] - left[0], right[1] - left[1]
    first = ((u + c) * jump_h - jump_q) / (2 * c)
    third = (jump_q - (u - c) * jump_h) / (2 * c)
    speeds[0], speeds[1], speeds[2] = u - c, u, u + c
    waves[0, 0], waves[0, 1], waves[0, 2] = first, first * (u - c), first * v
    waves[1, 0], waves[1, 1], waves[1, 2] = 0.0, 0.0, right[2] - left[2] - v * jump_h
    waves[2, 0], waves[2, 1], waves[2, 2] = third, third * (u + c), third * v
    # The first wave leads from q_l to q_l + W₁, the third from q_r − W₃ to q_r.
    h_1, h_3 = left[0] + first, right[0] - third
    u_1, u_3 = (left[1] + waves[0, 1]) / h_1, (right[1] - waves[2, 1]) / h_3
    c_l, c_1 = math.sqrt(gravity * left[0]), math.sqrt(gravity * h_1)
    c_3, c_r = math.sqrt(gravity * h_3), math.sqrt(gravity * right[0])
    s_1 = leftward_speed(u - c, u_l - c_l, u_1 - c_1)
    s_2 = min(u, 0.0)
    s_3 = leftward_speed(u + c, u_3 + c_3, u_r + c_r)
    for k in range(3):
        leftward[k] = s_1 * waves[0, k] + s_2 * waves[1, k] + s_3 * waves[2, k]
        total = (u - c) * waves[0, k] + u * waves[1, k] + (u + c) * waves[2, k]
        rightward[k] = total - leftward[k]


@njit(cache=True, error_model="numpy")
def correct(
    waves: np.ndarray, speeds: np.ndarray, face: int, ratio: float, correction: np.ndarray
) -> None:
    """Write what makes a face's flux second order where the waves are smooth.

        F̃ = ½ Σₚ |sₚ| (1 − ratio |sₚ|) φ(θₚ) Wₚ,    φ(θ) = max(0, min((1 + θ)/2, 2, 2θ))

    with the monotonised central limiter φ; θₚ Wₚ is the projection on Wₚ of the same wave at
    the next face upwind.
    """
    correction[:] = 0.0
    for p in range(3):
        wave, speed = waves[face, p], speeds[face, p]
        upwind = waves[face - 1 if speed > 0.0 else face + 1, p]
        size = wave[0] ** 2 + wave[1] ** 2 + wave[2] ** 2
        if size > 0.0:
            theta = (wave[0] * upwind[0] + wave[1] * upwind[1] + wave[2] * upwind[2]) / size
            limiter = max(0.0, min((1.0 + theta) / 2, 2.0, 2.0 * theta))
            factor = abs(speed) * (1.0 - ratio * abs(speed)) * limiter / 2
            for k in range(3):
                correction[k] += factor * wave[k]


@njit(ROWS, cache=True, error_model="numpy")
def sweep(
    h: np.ndarray, normal: np.ndarray, transverse: np.ndarray, ratio: float, gravity: float
) -> float:
    """Step rows of water on flat ground in place, each by itself.

        q ← q − ratio (A⁺Δq − F̃ at the face before, + A⁻Δq + F̃ at the face after)

    (LeVeque, "Wave propagation algorithms for multidimensional hyperbolic systems", 1997).
    The outermost cells are continued beyond both ends, with zero gradient.

    Args:
        h: Depth, (row, n).
        normal: Momentum along the rows.
        transverse: Momentum across them.
        ratio: Time step over spacing.
        gravity: g.

    Returns:
        The largest Courant number met, ratio |s|.
    """
    rows, n = h.shape
    cells = np.empty((n + 4, 3))
    waves, speeds = np.empty((n + 3, 3, 3)), np.empty((n + 3, 3))
    leftward, rightward = np.empty((n + 3, 3)), np.empty((n + 3, 3))
    correction = np.empty((n + 3, 3))
    fastest = 0.0
    for row in range(rows):
        for i in range(n + 4):
            inside = min(max(i - 2, 0), n - 1)
            cells[i, 0] = h[row, inside]
            cells[i, 1] = normal[row, inside]
            cells[i, 2] = transverse[row, inside]
        for i in range(n + 3):
            split(cells[i], cells[i + 1], gravity, waves[i], speeds[i], leftward[i], rightward[i])
            fastest = max(fastest, abs(speeds[i, 0]), abs(speeds[i, 2]))
        for i in range(1, n + 2):
            correct(waves, speeds, i, ratio, correction[i])
        for i in range(n):
            # With two ghosts before it, cell i stands at i + 2, between faces i + 1 and i + 2.
            before, after = i + 1, i + 2
            for k in range(3):
                cells[after, k] -= ratio * (rightward[before, k] + leftward[after, k])
                cells[after, k] -= ratio * (correction[after, k] - correction[before, k])
            h[row, i] = cells[after, 0]
            normal[row, i] = cells[after, 1]
            transverse[row, i] = cells[after, 2]
    return ratio * fastest
