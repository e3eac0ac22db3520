"""The spectral filters of Hazan, Singh and Zhang (2017), an ancestor of the USB."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.bases.checks import check_size
from sfo.registry import BASES


@BASES.register("hankel")
def hankel_modes(n: int, n_modes: int) -> Float[Tensor, "modes n"]:
    """The leading eigenvectors of Zᵢⱼ = 2 / ((i + j)³ − (i + j)), i, j = 1..n.

    Z is the moment matrix ∫ α^{i+j−2} (1 − α)² dα over [0, 1], so Z = A Aᵀ with A from a
    quadrature rule that is exact here, and the modes are A's left singular vectors. That
    keeps them down to λ ≈ 1e-32 λ₁, twice as many as `eigh(Z)`; the ones after that are
    an orthonormal completion, not the true modes. O(n³): an ablation basis.

    Example:
        >>> hankel_modes(n=8, n_modes=2)[0, :3]
        tensor([0.9596, 0.2524, 0.1047], dtype=torch.float64)
    """
    n, n_modes = check_size(n, n_modes)
    node, weight = np.polynomial.legendre.leggauss(n + 1)
    alpha = (node + 1) / 2
    factor = alpha ** np.arange(n)[:, None] * np.sqrt(weight / 2) * (1 - alpha)
    phi = np.linalg.svd(factor, full_matrices=False)[0].T[:n_modes]
    # Z is totally positive like H: the same sign rule, exact while the modes are.
    sign = np.where(phi[:, -1] < 0, -1.0, 1.0) * (-1.0) ** np.arange(n_modes)
    return torch.from_numpy(sign[:, None] * phi)
