"""Yee's leapfrog for Maxwell's equations, compiled: the inner loop of `Maxwell.solve`."""

import numpy as np
from numba import njit


@njit(cache=True)
def advance(
    state: np.ndarray,
    electric: float,
    magnetic: float,
    signals: np.ndarray,
    boxes: np.ndarray,
    channels: np.ndarray,
    wrap: bool,
) -> None:
    """Step the fields in place, once for each row of `signals`.

        E ← E + electric ∇⁻ × H,    sources        H ← H − magnetic ∇⁺ × E,    sources

    with differences ∇∓ to the previous and to the next cell. The last plane of cells along
    each axis stands for the first one: E is copied from the last to the first, H from the
    first to the last, so that n cells have a period of n − 1. Sources overwrite the fields
    after that. With `wrap` the planes are made equal again after the sources.

    Args:
        state: Ex, Ey, Ez, Hx, Hy, Hz, of shape (6, X, Y, Z).
        electric: c dt / (ε h).
        magnetic: c dt / (μ h).
        signals: The value of each source at each step, (step, source).
        boxes: First and one past the last cell of each source along the axes, (source, 2, 3).
        channels: The channels of E and H that each source sets, (source, 2).
        wrap: Whether the two outer planes stay equal where a source touches one of them.
    """
    e, h = state[:3], state[3:]
    for signal in signals:
        step_electric(state, electric)
        copy_planes(e, -1, 0)
        set_sources(state, signal, boxes, channels[:, 0])
        if wrap:
            copy_planes(e, 0, -1)
        step_magnetic(state, magnetic)
        copy_planes(h, 0, -1)
        set_sources(state, signal, boxes, channels[:, 1])
        if wrap:
            copy_planes(h, 0, -1)


@njit(cache=True)
def step_electric(state: np.ndarray, factor: float) -> None:
    """Add factor ∇⁻ × H to E on all cells but the first along each axis."""
    ex, ey, ez, hx, hy, hz = state
    nx, ny, nz = ex.shape
    for i in range(1, nx):
        for j in range(1, ny):
            for k in range(1, nz):
                dy_hz = hz[i, j, k] - hz[i, j - 1, k]
                dz_hy = hy[i, j, k] - hy[i, j, k - 1]
                dz_hx = hx[i, j, k] - hx[i, j, k - 1]
                dx_hz = hz[i, j, k] - hz[i - 1, j, k]
                dx_hy = hy[i, j, k] - hy[i - 1, j, k]
                dy_hx = hx[i, j, k] - hx[i, j - 1, k]
                ex[i, j, k] += factor * (dy_hz - dz_hy)
                ey[i, j, k] += factor * (dz_hx - dx_hz)
                ez[i, j, k] += factor * (dx_hy - dy_hx)


@njit(cache=True)
def step_magnetic(state: np.ndarray, factor: float) -> None:
    """Take factor ∇⁺ × E from H on all cells but the last along each axis."""
    ex, ey, ez, hx, hy, hz = state
    nx, ny, nz = ex.shape
    for i in range(nx - 1):
        for j in range(ny - 1):
            for k in range(nz - 1):
                dy_ez = ez[i, j + 1, k] - ez[i, j, k]
                dz_ey = ey[i, j, k + 1] - ey[i, j, k]
                dz_ex = ex[i, j, k + 1] - ex[i, j, k]
                dx_ez = ez[i + 1, j, k] - ez[i, j, k]
                dx_ey = ey[i + 1, j, k] - ey[i, j, k]
                dy_ex = ex[i, j + 1, k] - ex[i, j, k]
                hx[i, j, k] -= factor * (dy_ez - dz_ey)
                hy[i, j, k] -= factor * (dz_ex - dx_ez)
                hz[i, j, k] -= factor * (dx_ey - dy_ex)


@njit(cache=True)
def copy_planes(field: np.ndarray, source: int, target: int) -> None:
    """Copy one outer plane of cells onto the opposite one, along each axis in turn."""
    # Loops, since slices of four axes take the compiler seconds.
    nc, nx, ny, nz = field.shape
    for c in range(nc):
        for j in range(ny):
            for k in range(nz):
                field[c, target, j, k] = field[c, source, j, k]
        for i in range(nx):
            for k in range(nz):
                field[c, i, target, k] = field[c, i, source, k]
        for i in range(nx):
            for j in range(ny):
                field[c, i, j, target] = field[c, i, j, source]


@njit(cache=True)
def set_sources(
    state: np.ndarray, signal: np.ndarray, boxes: np.ndarray, channels: np.ndarray
) -> None:
    """Overwrite a channel with the value of each source; where sources overlap, the last wins."""
    for s in range(len(signal)):
        (x0, y0, z0), (x1, y1, z1) = boxes[s]
        state[channels[s], x0:x1, y0:y1, z0:z1] = signal[s]
