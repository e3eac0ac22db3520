"""Variants of SFO that were tried and left out; docs/design.md has their errors.

sfo train --benchmark allen_cahn --model sfo_shared --preset recommended \
    --plugin benchmarks/levers.py --optimizer muon --learning-rate 0.01 --schedule one_cycle \
    --clip 1 --epochs 15 --batch-size 4 --out runs/shared
"""

from collections.abc import Iterator
from itertools import repeat
from typing import Any

import torch
from torch import nn

from sfo import MODELS, SFO
from sfo.shapes import Field


class Repeated(nn.Module):
    """A sequence that has one layer at every place."""

    def __init__(self, layer: nn.Module, times: int) -> None:
        super().__init__()
        self.layer, self.times = layer, times

    def __iter__(self) -> Iterator[nn.Module]:
        return repeat(self.layer, self.times)


@MODELS.register("sfo_shared")
class SharedSFO(SFO):
    """One layer, applied `n_layers` times."""

    def __init__(self, *shape: int, **settings: Any) -> None:
        super().__init__(*shape, **settings)
        self.layers: Any = Repeated(self.layers[0], len(self.layers))


class Mixed(nn.Module):
    """A layer that keeps components apart, and v + M v after it.

    Args:
        layer: The layer.
        components: Components, side by side in the batch.
        channels: Channels of each.
        fully: M joins all channels of all components; otherwise each channel has an M of its own.
    """

    def __init__(self, layer: nn.Module, components: int, channels: int, fully: bool) -> None:
        super().__init__()
        self.layer, self.components, self.fully = layer, components, fully
        joined = components * channels
        shape = (joined, joined) if fully else (channels, components, components)
        self.weight = nn.Parameter(torch.zeros(shape))

    @property
    def kernel(self) -> Any:
        """The layer's."""
        return self.layer.kernel

    def forward(self, v: Field) -> Field:
        v = self.layer(v)
        parts = v.unflatten(0, (-1, self.components))
        if self.fully:
            return v + (self.weight @ parts.flatten(1, 2).flatten(2)).reshape(v.shape)
        return v + torch.einsum("dij,bjd...->bid...", self.weight, parts).flatten(0, 1)


@MODELS.register("sfo_mixed")
class MixedSFO(SFO):
    """The components are mixed after every layer, channel by channel."""

    fully = False

    def __init__(self, *shape: int, **settings: Any) -> None:
        super().__init__(*shape, **settings)
        channels = self.arguments["hidden_channels"]
        self.layers = nn.ModuleList(
            Mixed(layer, self.components, channels, self.fully) for layer in self.layers
        )


@MODELS.register("sfo_mixed_fully")
class FullyMixedSFO(MixedSFO):
    """The components are mixed after every layer, all channels with all."""

    fully = True
