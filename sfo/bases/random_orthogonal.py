"""A random orthonormal basis: the control of the paper's basis ablation."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.bases.checks import check_size
from sfo.registry import BASES


@BASES.register("random")
def random_modes(n: int, n_modes: int, seed: int = 0) -> Float[Tensor, "modes n"]:
    """The Q factor of an n × n_modes Gaussian matrix, drawn from `seed` mode by mode.

    Example:
        >>> bool((random_modes(8, 3) == random_modes(8, 3)).all())
        True
    """
    n, n_modes = check_size(n, n_modes)
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((n_modes, n)).T)
    # With diag(R) > 0 the factor is unique, hence uniform over orthonormal frames.
    return torch.from_numpy((q * np.sign(np.diag(r))).T.copy())
