"""Sizes and units of a model's inputs and outputs: given by the data, not learned."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.models.pointwise import Pointwise, pointwise
from sfo.shapes import Field


class Standardise(nn.Module):
    """Constants that bring inputs and outputs to the size of 1: given, not learned.

    Args:
        channels: Input channels; each is shifted by a mean and divided by a deviation.
        fields: Output fields; each is multiplied by a scale.

    Attributes:
        offset: What is added to the output, `(channel, *grid)`, with axes of length 1 where it is
            the same at all points, or None. On other grids it is interpolated, where the
            coordinates say that their points are.
    """

    mean: Tensor
    deviation: Tensor
    scale: Tensor
    offset: Tensor | None

    def __init__(self, channels: int, fields: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("deviation", torch.ones(channels))
        self.register_buffer("scale", torch.ones(fields))
        self.register_buffer("offset", None)

    @torch.no_grad()
    def set(
        self, mean: Tensor, deviation: Tensor, scale: Tensor, offset: Tensor | None = None
    ) -> None:
        """Take constants; what is constant itself is not divided or multiplied by its size 0."""
        self.offset = None if offset is None else offset.to(self.scale)
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > 1e-12 * mean.abs(), deviation, 1))
        self.scale.copy_(torch.where(scale > 0, scale, 1))

    def forward(self, a: Field) -> Field:
        shape = (-1, *[1] * (a.ndim - 2))
        return (a - self.mean.view(shape)) / self.deviation.view(shape)

    def scaled(self, u: Field) -> Field:
        """The output of a network in the units of the solution."""
        frames = u.shape[1] // len(self.scale)
        u = u * self.scale.repeat_interleave(frames).view(-1, *[1] * (u.ndim - 2))
        return u if self.offset is None else u + interpolate(self.offset, u.shape[2:])

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *how: Any) -> None:
        self.offset = _room(self.offset, state.get(f"{prefix}offset"), self.scale)
        super()._load_from_state_dict(state, prefix, *how)


class OutputSkip(Pointwise):
    """The linear path S a from the input to the output.

    Args:
        in_channels: Channels of the input.
        out_channels: Channels of the output.

    Attributes:
        unit: The size of one unit of the weights, `(out, in)`, or None if all are 1. An optimiser
            takes steps of the same size whatever the data's units are: with a pressure of 1e5 for
            an input, a step of 0.01 would be far too long.
    """

    unit: Tensor | None

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(in_channels, out_channels, bias=False)
        self.register_buffer("unit", None)

    @torch.no_grad()
    def set(self, weight: Tensor, unit: Tensor | None = None) -> None:
        """Take S, and the units in which it is learned."""
        self.unit = None if unit is None else unit.to(self.weight)
        self.weight.copy_(weight if unit is None else weight / unit)

    def forward(self, a: Field) -> Field:
        return pointwise(a, self.weight if self.unit is None else self.weight * self.unit, None)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *how: Any) -> None:
        self.unit = _room(self.unit, state.get(f"{prefix}unit"), self.weight)
        super()._load_from_state_dict(state, prefix, *how)


def _room(buffer: Tensor | None, loaded: Tensor | None, like: Tensor) -> Tensor | None:
    """A buffer with room for what the weights have of it, if they have it."""
    if loaded is None or (buffer is not None and buffer.shape == loaded.shape):
        return None if loaded is None else buffer
    return like.detach().new_empty(loaded.shape)


def interpolate(field: Float[Tensor, "channel *grid"], shape: Sequence[int]) -> Tensor:
    """A field on another grid with the same first and last point along each axis.

    An axis of length 1 stays: the field is the same along it.

    Example:
        >>> interpolate(torch.tensor([[0.0, 2.0, 6.0]]), (5,))
        tensor([[0., 1., 2., 4., 6.]])
    """
    for axis, n in enumerate(shape, start=1):
        points = field.shape[axis]
        if points in (1, n):
            continue
        position = torch.linspace(0, points - 1, n, dtype=torch.float64)
        below = position.long().clamp(max=max(0, points - 2))
        weight = (position - below).to(field).view(-1, *[1] * (field.ndim - 1 - axis))
        lower = field.index_select(axis, below.to(field.device))
        above = (below + 1).clamp(max=points - 1).to(field.device)
        field = torch.lerp(lower, field.index_select(axis, above), weight)
    return field
