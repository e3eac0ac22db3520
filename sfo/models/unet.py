"""The U-Net: convolutions on a ladder of grids, each half as fine as the one above."""

from collections.abc import Sequence
from inspect import signature
from itertools import pairwise
from math import gcd
from typing import Any, ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional as F

from sfo.checks import check_choice
from sfo.models.blocks import coordinates as grid_coordinates
from sfo.models.operator import Operator, split_components
from sfo.registry import MODELS
from sfo.shapes import Field

Norm = Literal["batch", "group", None]
Boundary = Literal["zero", "circular"]


@MODELS.register("unet")
class UNet(Operator):
    """A convolutional network that halves the grid n_levels times and doubles it again.

    Every level has two convolutions over 3 points along each axis, with a norm and tanh after each;
    a maximum over 2 points leads to the next coarser grid, a transposed convolution over 2
    points back, where the field of the same level on the way down is appended (Ronneberger et
    al., 2015, with the settings of PDEBench). Kernels are points, not lengths: unlike the
    other operators, a U-Net means another map on another grid.

    The grid must be a multiple of 2^n_levels. Others are extended at the far end of each axis
    by their last value, and the result is cut off again.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes, at most 3.
        hidden_channels: Channels on the finest grid; every coarser one has twice as many.
        n_levels: How many times the grid is halved.
        norm: `"batch"`, which in training depends on the other samples of the batch, `"group"`
            over 8 groups of channels of each sample, or None.
        boundary: What the convolutions see outside of the domain: `"zero"` nothing,
            `"circular"` its periodic image.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.

    Example:
        >>> model = UNet(in_channels=1, out_channels=101)
        >>> model(torch.randn(2, 1, 100)).shape
        torch.Size([2, 101, 100])
        >>> sum(p.numel() for p in model.parameters())
        2711109
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        hidden_channels: int = 32,
        n_levels: int = 4,
        norm: Norm = "batch",
        boundary: Boundary = "zero",
        coordinates: bool = False,
        components: int = 1,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("norm", norm, Norm)
        check_choice("boundary", boundary, Boundary)
        if not 1 <= n_dim <= 3:
            raise ValueError(f"`n_dim` must be 1, 2 or 3, got {n_dim}.")
        if hidden_channels < 1 or n_levels < 1:
            raise ValueError(
                "`hidden_channels` and `n_levels` must be at least 1, got "
                f"hidden_channels={hidden_channels}, n_levels={n_levels}."
            )
        first, last = split_components(in_channels, out_channels, components)
        super().__init__(in_channels, out_channels, n_dim, components=components)
        self.coordinates = coordinates
        convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n_dim - 1]
        widen = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[n_dim - 1]
        batch_norm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)[n_dim - 1]
        padding_mode = "zeros" if boundary == "zero" else boundary

        def normalise(channels: int) -> nn.Module:
            if norm == "batch":
                return batch_norm(channels)
            return nn.GroupNorm(gcd(8, channels), channels) if norm == "group" else nn.Identity()

        def pair(*channels: int) -> nn.Sequential:
            parts: list[nn.Module] = []
            for c_in, c_out in pairwise(channels):
                parts += [
                    convolution(c_in, c_out, 3, padding=1, padding_mode=padding_mode, bias=False),
                    normalise(c_out),
                    nn.Tanh(),
                ]
            return nn.Sequential(*parts)

        widths = [hidden_channels * 2**level for level in range(n_levels + 1)]
        first += n_dim if coordinates else 0
        self.down = nn.ModuleList(
            pair(c_in, c, c) for c_in, c in zip([first, *widths], widths, strict=False)
        )
        self.widen = nn.ModuleList(widen(2 * c, c, kernel_size=2, stride=2) for c in widths[:-1])
        self.up = nn.ModuleList(pair(2 * c, c, c) for c in widths[:-1])
        self.project = convolution(hidden_channels, last, kernel_size=1)
        self.pool = (nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d)[n_dim - 1](2)
        self.arguments = arguments

    def options(self) -> dict[str, Any]:
        return {"boundary": self.arguments["boundary"]}

    @classmethod
    def on_grid(cls, settings: dict[str, Any], shape: Sequence[int]) -> dict[str, Any]:
        """Two points or more on the coarsest grid: a batch norm of one sample needs them."""
        n_levels = settings.get("n_levels", signature(cls).parameters["n_levels"].default)
        most = max(1, (max(shape) - 1).bit_length() - 1)
        return {**settings, "n_levels": min(n_levels, most)}

    def operate(self, a: Field) -> Field:
        if self.coordinates:
            a = torch.cat([a, grid_coordinates(a)], dim=1)
        shape = a.shape[2:]
        multiple = 2 ** len(self.up)
        missing = [amount for n in reversed(shape) for amount in (0, -n % multiple)]
        v = F.pad(a, missing, mode="replicate")
        seen = []
        for level in self.down[:-1]:
            seen.append(level(v))
            v = self.pool(seen[-1])
        v = self.down[-1](v)
        for widen, level in zip(reversed(self.widen), reversed(self.up), strict=True):
            v = level(torch.cat([widen(v), seen.pop()], dim=1))
        inside: tuple[Any, ...] = (..., *map(slice, shape))
        return self.project(v)[inside]
