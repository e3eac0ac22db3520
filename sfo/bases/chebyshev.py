"""Chebyshev polynomials, made orthonormal on a uniform grid."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.bases.checks import check_size
from sfo.registry import BASES


@BASES.register("chebyshev")
def chebyshev_modes(n: int, n_modes: int) -> Float[Tensor, "modes n"]:
    """The polynomials T₀, T₁, … on n equally spaced points, orthonormalised in order.

    Row l spans, with the rows before it, all polynomials of degree l. On this grid that
    leaves no trace of which polynomials one starts from: these are Chebyshev's own
    discrete polynomials (also named after Gram), positive at the right end.

    Example:
        >>> phi = chebyshev_modes(n=5, n_modes=3) * torch.tensor([5, 10, 14]).sqrt()[:, None]
        >>> phi.round().int()
        tensor([[ 1,  1,  1,  1,  1],
                [-2, -1,  0,  1,  2],
                [ 2, -1, -2, -1,  2]], dtype=torch.int32)
    """
    n, n_modes = check_size(n, n_modes)
    x = np.linspace(-1, 1, n)
    phi = np.full((n_modes, n), 1 / np.sqrt(n))
    # Arnoldi instead of a QR of T₀, T₁, …: high ones are all but dependent on a uniform
    # grid, and QR returns noise from degree 52 on at n = 64. Two passes make it exact.
    for k in range(1, n_modes):
        q = x * phi[k - 1]
        for _ in range(2):
            q = q - phi[:k].T @ (phi[:k] @ q)
        phi[k] = q / np.linalg.norm(q)
    return torch.from_numpy(phi)
