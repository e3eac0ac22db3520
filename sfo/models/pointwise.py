"""The same linear map of the channels at every grid point."""

import torch
from torch import Tensor, nn

from sfo.shapes import Field
from sfo.transforms import is_transformed


class Pointwise(nn.Linear):
    """W v + b at every grid point, on any number of axes."""

    def forward(self, v: Field) -> Field:
        return pointwise(v, self.weight, self.bias)


def pointwise(v: Field, weight: Tensor, bias: Tensor | None) -> Field:
    """W v + b at every grid point."""
    # One GEMM per sample on the field as it lies, without moving the channels last.
    weights = weight.expand(v.shape[0], -1, -1)
    if bias is None:
        out = torch.bmm(weights, v.flatten(2))
    else:
        out = torch.baddbmm(bias[:, None], weights, v.flatten(2))
    return out.view(*out.shape[:2], *v.shape[2:])


def pointwise_sum(v: Field, weight: Tensor, w: Field, other: Tensor, bias: Tensor) -> Field:
    """W v + W' w + b at every grid point, the second product added to the first in place."""
    out = torch.baddbmm(bias[:, None], weight.expand(v.shape[0], -1, -1), v.flatten(2))
    factors = other.expand(w.shape[0], -1, -1), w.flatten(2)
    # A transform of torch.func may know the one product as a batch and the other not; and autocast
    # brings arguments to one precision only where nothing is done in place.
    in_place = out.dtype == other.dtype == w.dtype and not is_transformed()
    out = out.baddbmm_(*factors) if in_place else torch.baddbmm(out, *factors)
    return out.view(*out.shape[:2], *v.shape[2:])
