"""Modes on a grid of several axes, as products of one-axis modes."""

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.shapes import Modes


def tied_index(axes: Sequence[Float[Tensor, "modes _"]]) -> Modes:
    """φₗ(x₁, …, x_M) = Πₘ φₗ(xₘ): one index for all axes, L modes.

    Example:
        >>> one = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> tied_index([one, one])[1]
        tensor([[ 9., 12.],
                [12., 16.]])
    """
    lengths = {len(phi) for phi in axes}
    if len(lengths) != 1:
        raise ValueError(f"Tied axes need the same number of modes, got {sorted(lengths)}.")
    return reduce(lambda left, phi: torch.einsum("l...,lx->l...x", left, phi), axes)


def multi_index(axes: Sequence[Float[Tensor, "_ _"]]) -> Modes:
    """φ_I(x₁, …, x_M) = Πₘ φ_{iₘ}(xₘ): one mode for each index tuple, L^M modes.

    The last axis' index runs fastest.

    Example:
        >>> one = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> multi_index([one, one])[1]
        tensor([[3., 4.],
                [6., 8.]])
    """
    return reduce(lambda left, phi: torch.einsum("l...,kx->lk...x", left, phi).flatten(0, 1), axes)
