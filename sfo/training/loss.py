"""What is minimised: the relative error of a batch."""

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.shapes import Field


def relative_l2(prediction: Field, truth: Field) -> Float[Tensor, " sample"]:
    """‖û − u‖ / ‖u‖ of each sample, over all channels and points.

    A truth that is zero everywhere is compared with 1 instead, so that no gradient is lost.
    """
    return _norm(prediction - truth) / _size(_norm(truth))


def relative_h1(prediction: Field, truth: Field) -> Float[Tensor, " sample"]:
    """The same with first differences in space: √(‖e‖² + ‖∇e‖²) / √(‖u‖² + ‖∇u‖²).

    Differences are taken per n points, as on the unit box.
    """
    return _h1(prediction - truth) / _size(_h1(truth))


def _norm(v: Field) -> Float[Tensor, " sample"]:
    return v.flatten(1).norm(dim=1)


def _h1(v: Field) -> Float[Tensor, " sample"]:
    parts = [v, *(v.shape[axis] * v.diff(dim=axis) for axis in range(2, v.ndim))]
    # A norm of norms, because unlike a root of squares it has a gradient, 0, where v = 0.
    return torch.stack([_norm(part) for part in parts]).norm(dim=0)


def _size(norm: Tensor) -> Tensor:
    return torch.where(norm > 0, norm, torch.ones_like(norm))


LOSSES = {"l2": relative_l2, "h1": relative_h1}
