"""Compiled: the rate of the diffusion–sorption equation, and scipy's RK45 around it."""

import math

import numpy as np
from numba import njit

LOG2 = tuple(2 / ((2 * k + 1) * math.log(2)) for k in reversed(range(11)))
"""Coefficients of log₂((1 + f)/(1 − f)) / f in powers of f², the highest first."""
EXP2 = tuple(math.log(2) ** k / math.factorial(k) for k in reversed(range(14)))
"""Coefficients of 2ʳ in powers of r, the highest first."""

MANTISSA = np.int64(52)
ROOT_HALF = np.float64(math.sqrt(0.5)).view(np.int64)
# Adding it rounds a float to the nearest integer and leaves that in the lowest bits.
ROUND = np.float64(1.5 * 2**52)
ROUND_BITS = ROUND.view(np.int64)

# Where a division by zero raises, loops have an exit and are not compiled to vector
# instructions. "contract" allows a b + c to be rounded once instead of twice.
compiled = njit(cache=True, error_model="numpy", fastmath={"contract"})


@compiled
def horner(coefficients: tuple[float, ...], x: float) -> float:
    """The polynomial in x with these coefficients, the highest power first."""
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


@compiled
def power(x: float, exponent: float) -> float:
    """x^exponent to a few units in the last place, and NaN for x < 0.

    For normal x and results only, not for infinity, 0 or subnormals. The library's `pow` takes
    one number at a time; a loop over this is compiled to vector instructions and takes a
    quarter of the time.
    """
    bits = np.float64(x).view(np.int64)
    whole = (bits - ROOT_HALF) >> MANTISSA
    m = np.int64(bits - (whole << MANTISSA)).view(np.float64)  # x = 2^whole m, √½ ≤ m < √2
    f = (m - 1) / (m + 1)
    log2 = np.int64(whole + ROUND_BITS).view(np.float64) - ROUND + f * horner(LOG2, f * f)
    y = exponent * log2
    rounded = y + ROUND
    fraction = np.float64(horner(EXP2, y - (rounded - ROUND)))
    scale = np.float64(rounded).view(np.int64) << MANTISSA
    value = np.int64(fraction.view(np.int64) + scale).view(np.float64)
    return np.nan if x < 0 else value


@compiled
def rate(u: np.ndarray, constants: tuple[float, ...], out: np.ndarray) -> None:
    """`DiffusionSorption.rhs(u)` for one field, with its `loop_constants`."""
    diffusion, capacity, exponent, shift, left, outflow, floor = constants
    n = len(u)
    for i in range(n):
        out[i] = diffusion / (1 + capacity * power(max(u[i], floor) + shift, exponent))
    out[0] *= left - 2 * u[0] + u[1]
    for i in range(1, n - 1):
        out[i] *= u[i - 1] - 2 * u[i] + u[i + 1]
    out[n - 1] *= u[n - 2] - 2 * u[n - 1] + outflow * (u[n - 2] - u[n - 1])


@compiled
def combine(weights: np.ndarray, k: np.ndarray, u: np.ndarray, h: float, out: np.ndarray) -> None:
    """out = u + h Σ weights[s] k[s]."""
    out[:] = 0
    for s in range(len(weights)):
        for i in range(len(u)):
            out[i] += weights[s] * k[s, i]
    for i in range(len(u)):
        out[i] = u[i] + h * out[i]


@compiled
def size_of(x: np.ndarray, u: np.ndarray, v: np.ndarray, rtol: float, atol: float) -> float:
    """The root mean square of x in units of rtol max(|u|, |v|) + atol."""
    squares = np.empty_like(x)
    for i in range(len(x)):
        squares[i] = (x[i] / (atol + max(abs(u[i]), abs(v[i])) * rtol)) ** 2
    return math.sqrt(squares.sum() / len(x))


@compiled
def first_step(
    u: np.ndarray,
    du: np.ndarray,
    duration: float,
    rtol: float,
    atol: float,
    constants: tuple[float, ...],
) -> float:
    """The step to try first, by the sizes of u, of its rate and of the change of that rate."""
    d0 = size_of(u, u, u, rtol, atol)
    d1 = size_of(du, u, u, rtol, atol)
    h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, duration)
    du1 = np.empty_like(u)
    rate(u + h0 * du, constants, du1)
    d2 = size_of(du1 - du, u, u, rtol, atol) / h0
    still = d1 <= 1e-15 and d2 <= 1e-15
    h1 = max(1e-6, h0 * 1e-3) if still else (0.01 / max(d1, d2)) ** (1 / 5)
    return min(100 * h0, h1, duration)


@compiled
def rk45(
    initial: np.ndarray,
    times: np.ndarray,
    rtol: float,
    atol: float,
    constants: tuple[float, ...],
    a: np.ndarray,
    b: np.ndarray,
    e: np.ndarray,
    p: np.ndarray,
) -> tuple[np.ndarray, int, float]:
    """What scipy's `solve_ivp(method="RK45", t_eval=times)` computes, step by step.

    Args:
        initial: u at `times[0]`.
        times: Times of the frames, increasing.
        rtol, atol: The error of a step is measured in units of rtol |u| + atol.
        constants: Constants of `rate`.
        a, b, e, p: The tables of `scipy.integrate.RK45`: of the stages, the step, its error
            and the polynomial between its ends.

    Returns:
        One row per time, the number of rates computed, and the time reached, which falls short
        of `times[-1]` if the step became too small.
    """
    n = len(initial)
    frames = np.empty((len(times), n))
    frames[0] = initial
    k = np.empty((len(e), n))
    u, u_new, zero = initial.copy(), np.empty(n), np.zeros(n)
    error, weights = np.empty(n), np.empty(len(e))
    t, end = times[0], times[-1]
    rate(u, constants, k[0])
    step = first_step(u, k[0], end - t, rtol, atol, constants)
    n_rates, n_frames = 2, 1
    while t < end:
        smallest = 10 * (np.nextafter(t, np.inf) - t)
        step = max(step, smallest)
        rejected = False
        while True:
            if not step >= smallest:  # or it is NaN: `initial` was below −shift
                return frames, n_rates, t
            t_new = min(t + step, end)
            step = t_new - t
            for s in range(1, len(b)):
                combine(a[s, :s], k, u, step, u_new)
                rate(u_new, constants, k[s])
            combine(b, k, u, step, u_new)
            rate(u_new, constants, k[-1])
            n_rates += len(b)
            combine(e, k, zero, step, error)
            size = size_of(error, u, u_new, rtol, atol)
            factor = 10.0 if size == 0 else 0.9 * size ** (-1 / 5)
            if size < 1:
                break
            step *= factor if factor > 0.2 else 0.2  # also where a stage met NaN
            rejected = True
        while n_frames < len(times) and times[n_frames] <= t_new:
            x = (times[n_frames] - t) / (t_new - t)
            for s in range(len(e)):
                weights[s] = x * (p[s, 0] + x * (p[s, 1] + x * (p[s, 2] + x * p[s, 3])))
            combine(weights, k, u, step, frames[n_frames])
            n_frames += 1
        step *= min(factor, 1.0 if rejected else 10.0)
        u[:] = u_new
        k[0] = k[-1]
        t = t_new
    return frames, n_rates, t
