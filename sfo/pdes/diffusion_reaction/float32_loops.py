"""The time steps of `Float32DiffusionReaction`, compiled."""

import numpy as np
from numba import njit

ONE = np.float32(1)


@njit(cache=True, error_model="numpy")
def advance(
    u: np.ndarray,
    n_steps: int,
    decay: np.float32,
    half_decay: np.float32,
    weight: np.float32,
    half_weight: np.float32,
) -> int:
    """Take `n_steps` steps in place, or fewer: none after one that changes no bit.

    u[0] and u[-1] repeat the points at the other end. Divisions by zero are meant: u = 0
    becomes 1 / (1 + 1/0) = 0.

    Returns:
        The number of steps that changed u.
    """
    half = np.empty_like(u)
    for step in range(n_steps):
        for i in range(1, len(u) - 1):
            grown = ONE / (ONE + half_decay * (ONE - u[i]) / u[i])
            half[i] = grown + half_weight * ((u[i + 1] - u[i]) - (u[i] - u[i - 1]))
        half[0], half[-1] = half[-2], half[1]
        frozen = True
        for i in range(1, len(u) - 1):
            grown = ONE / (ONE + decay * (ONE - u[i]) / u[i])
            new = grown + weight * ((half[i + 1] - half[i]) - (half[i] - half[i - 1]))
            frozen &= new == u[i]
            u[i] = new
        u[0], u[-1] = u[-2], u[1]
        if frozen:
            return step
    return n_steps
