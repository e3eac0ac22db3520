"""Constants that bring a model's inputs and outputs to the size of 1."""

import torch
from torch import Tensor, nn

from sfo.shapes import Field


class Standardise(nn.Module):
    """Constants that bring inputs and outputs to the size of 1: given, not learned.

    Args:
        channels: Input channels; each is shifted by a mean and divided by a deviation.
        fields: Output fields; each is multiplied by a scale.
    """

    mean: Tensor
    deviation: Tensor
    scale: Tensor

    def __init__(self, channels: int, fields: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("deviation", torch.ones(channels))
        self.register_buffer("scale", torch.ones(fields))

    @torch.no_grad()
    def set(self, mean: Tensor, deviation: Tensor, scale: Tensor) -> None:
        """Take constants; what is constant itself is not divided or multiplied by its size 0."""
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 1e-12 * mean.abs(), deviation, 1))
        self.scale.copy_(torch.where(scale > 0, scale, 1))

    def forward(self, a: Field) -> Field:
        shape = (-1, *[1] * (a.ndim - 2))
        return (a - self.mean.view(shape)) / self.deviation.view(shape)

    def scaled(self, u: Field) -> Field:
        """The output of a network in the units of the solution."""
        frames = u.shape[1] // len(self.scale)
        return u * self.scale.repeat_interleave(frames).view(-1, *[1] * (u.ndim - 2))
