"""The real Fourier basis, lowest frequency first."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.bases.checks import check_size
from sfo.registry import BASES


@BASES.register("fourier")
def fourier_modes(n: int, n_modes: int) -> Float[Tensor, "modes n"]:
    """Orthonormal 1, cos 2πx, sin 2πx, cos 4πx, … on the points x = 0, 1/n, …, (n−1)/n.

    Example:
        >>> fourier_modes(n=4, n_modes=4)
        tensor([[ 0.5000,  0.5000,  0.5000,  0.5000],
                [ 0.7071,  0.0000, -0.7071,  0.0000],
                [ 0.0000,  0.7071,  0.0000, -0.7071],
                [ 0.5000, -0.5000,  0.5000, -0.5000]], dtype=torch.float64)
    """
    n, n_modes = check_size(n, n_modes)
    row = np.arange(n_modes)[:, None]
    frequency = (row + 1) // 2
    # A row of sin is a row of cos a quarter turn later. Reducing k·j mod n first keeps
    # the phase exact on long grids.
    turn = (frequency * np.arange(n) % n) / n - np.where((row % 2 == 0) & (row > 0), 0.25, 0)
    phi = np.cos(2 * np.pi * turn)
    phi[np.abs(phi) < 1e-15] = 0
    flat = (frequency == 0) | (2 * frequency == n)
    return torch.from_numpy(phi * np.sqrt(np.where(flat, 1, 2) / n))
