"""The frames of an output: read off several layers, and started as frames of the input."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from sfo.models.blocks import projection
from sfo.shapes import Field


class Decoder(nn.Module):
    """Q in shares: depth as time, each share of the frames is read off a later layer.

    The shares are equal parts of the time, the last layers are read:

        u = (Q_1(v_{T−J+1}), …, Q_J(v_T))

    Args:
        hidden_channels: Latent channels d.
        frames: Frames of each output field.
        fields: Output fields, whose frames lie side by side in the output's channels.
        shares: Number of shares J, at most the number of layers and of frames.
        n_layers: Number of layers T.
        projection_channels: Width of a hidden layer of each Q_j; None: they are linear.
    """

    def __init__(
        self,
        hidden_channels: int,
        *,
        frames: int,
        fields: int,
        shares: int,
        n_layers: int,
        projection_channels: int | None = None,
    ) -> None:
        super().__init__()
        if not 1 <= shares <= min(n_layers, frames):
            raise ValueError(
                f"`decode` must be between 1 and the {n_layers} layers and {frames} frames of a "
                f"field, got {shares}."
            )
        ends = [round(j * frames / shares) for j in range(shares + 1)]
        self.counts = [stop - start for start, stop in pairwise(ends)]
        self.after = range(n_layers - shares + 1, n_layers + 1)
        self.fields = fields
        self.shares = nn.ModuleList(
            [projection(hidden_channels, projection_channels, n * fields) for n in self.counts]
        )

    def read(self, layer: int, v: Field) -> list[Tensor]:
        """The shares that are read off the field after this layer, the first being 1."""
        pairs = zip(self.after, self.shares, strict=True)
        return [share(v).unflatten(1, (self.fields, -1)) for at, share in pairs if at == layer]

    def join(self, shares: list[Tensor]) -> Field:
        """All frames of all fields, from their shares in time."""
        return torch.cat(shares, dim=2).flatten(1, 2)


def frames_of(out_channels: int, out_fields: int, components: int) -> tuple[int, int]:
    """Fields and frames of one component of the output.

    Example:
        >>> frames_of(63, 3, 1), frames_of(48, 6, 6)
        ((3, 21), (1, 8))
    """
    if out_fields < 1 or out_channels % out_fields:
        raise ValueError(
            f"`out_fields` must divide `out_channels`, got out_fields={out_fields}, "
            f"out_channels={out_channels}."
        )
    fields = max(1, out_fields // components)
    return fields, out_channels // components // fields


def carry_frames(
    weight: Tensor,
    in_channels: int,
    carried: Sequence[int | None] | None,
    fields: int,
    frames: int,
) -> None:
    """Start the output skip as the input's frames at all times, or at 0 where there are none."""
    nn.init.zeros_(weight)
    for field, channel in enumerate((carried or ())[:fields]):
        if channel is None:
            continue
        if not 0 <= channel < in_channels:
            raise ValueError(
                f"`carried` must name input channels 0 to {in_channels - 1}, got {channel}."
            )
        with torch.no_grad():
            weight[field * frames : (field + 1) * frames, channel % weight.shape[1]] = 1
