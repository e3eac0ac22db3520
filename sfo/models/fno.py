"""The Fourier Neural Operator (FNO)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import nn
from torch.nn import functional as F

from sfo.models.blocks import Lift, Pointwise, two_layers
from sfo.models.operator import LayeredOperator, split_components
from sfo.models.spectral_conv import FourierModes, SpectralConv, pad
from sfo.registry import MODELS
from sfo.shapes import Field


class FNOLayer(nn.Module):
    """σ(K v + W v + b): spectral convolution and a pointwise map side by side."""

    def __init__(self, channels: int, modes: FourierModes, activate: bool) -> None:
        super().__init__()
        self.skip = Pointwise(channels, channels)
        self.spectral = SpectralConv(channels, channels, modes)
        self.activate = activate

    def forward(self, v: Field) -> Field:
        v = self.spectral(v) + self.skip(v)
        return F.gelu(v) if self.activate else v


class Pad(nn.Module):
    """`pad` as a layer."""

    def __init__(self, amounts: Sequence[int]) -> None:
        super().__init__()
        self.amounts = tuple(amounts)

    def forward(self, v: Field) -> Field:
        return pad(v, self.amounts)


@MODELS.register("fno")
class FNO(LayeredOperator):
    """A neural operator that learns one matrix for each of the lowest frequencies.

        u = Q(layer_T(… layer_1(P(a, x))))        layer(v) = σ(K v + W v + b)
        (K v)(x) = Σ_k W(k) v̂(k) exp(2πi k·x/n),        |k| ≤ m along each axis

    P is a pointwise linear map, Q one with a hidden layer, and σ = GELU after all layers but
    the last one (Li et al., "Fourier Neural Operator for Parametric Partial Differential
    Equations", 2021). It accepts any grid; one that is too coarse for m frequencies uses as
    many as it has. The defaults are those of the SFO paper's baseline in one dimension.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes.
        n_modes: Frequencies along an axis, one number or one for each axis: 0..m−1 along the
            last axis, −m..m−1 along the others.
        hidden_channels: Latent channels d.
        n_layers: Number of layers T.
        projection_channels: Width of the hidden layer of Q.
        padding: Zeros that are appended at the far end of every axis while the layers work, one
            number or one for each axis.
        activate_last: Apply σ after the last layer as well.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.
        unused_norms: Hold a BatchNorm for each layer and never use it, as the paper's FNO does
            on three axes. Nothing but the published number of parameters depends on it.

    Example:
        >>> import torch
        >>> model = FNO(in_channels=1, out_channels=101)
        >>> model(torch.randn(8, 1, 256)).shape
        torch.Size([8, 101, 256])
        >>> sum(p.numel() for p in model.parameters())  # a complex weight counts once
        300325
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        "shallow_water": dict(n_modes=12, hidden_channels=20),
        "maxwell": dict(
            n_modes=8,
            hidden_channels=20,
            padding=(0, 0, 6),
            coordinates=False,
            unused_norms=True,
        ),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        n_modes: int | Sequence[int] = 16,
        hidden_channels: int = 64,
        n_layers: int = 4,
        projection_channels: int = 128,
        padding: int | Sequence[int] = 2,
        activate_last: bool = False,
        coordinates: bool = True,
        components: int = 1,
        unused_norms: bool = False,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        n_modes = for_each_axis("n_modes", n_modes, n_dim, at_least=1)
        padding = for_each_axis("padding", padding, n_dim)
        if min(hidden_channels, n_layers, projection_channels) < 1:
            raise ValueError(
                "`hidden_channels`, `n_layers` and `projection_channels` must be at least 1, got "
                f"{hidden_channels}, {n_layers} and {projection_channels}."
            )
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        modes = FourierModes(n_modes)
        super().__init__(
            in_channels,
            out_channels,
            n_dim,
            lift=nn.Sequential(
                Lift(channels_in, hidden_channels, n_dim, coordinates=coordinates), Pad(padding)
            ),
            layers=[
                FNOLayer(hidden_channels, modes, activate=activate_last or layer < n_layers - 1)
                for layer in range(n_layers)
            ],
            project=nn.Sequential(
                Pad([-n for n in padding]),
                *two_layers(hidden_channels, projection_channels, channels_out),
            ),
            components=components,
        )
        if unused_norms:
            norms = [nn.BatchNorm1d(hidden_channels) for _ in range(n_layers)]
            # Several processes would wait for gradients that never come.
            self.unused_norms = nn.ModuleList(norms).requires_grad_(False)
        self.arguments = {**arguments, "n_modes": list(n_modes), "padding": list(padding)}

    def options(self) -> dict[str, Any]:
        return {name: self.arguments[name] for name in ("padding", "activate_last")}

    @classmethod
    def on_grid(cls, settings: dict[str, Any], shape: Sequence[int]) -> dict[str, Any]:
        """On several axes fewer modes than the default, which is for one, and none without use.

        16 modes on three axes are 270 million weights, of which a coarse grid uses few.
        """
        if len(shape) == 1 or "n_modes" in settings:
            return settings
        most = {2: 12, 3: 8}.get(len(shape), 4)
        return {**settings, "n_modes": [min(most, n // 2 + 1) for n in shape]}


def for_each_axis(
    name: str, value: int | Sequence[int], n_dim: int, at_least: int = 0
) -> tuple[int, ...]:
    """One number for each axis, from that or from one number for all.

    Example:
        >>> for_each_axis("padding", 2, n_dim=3)
        (2, 2, 2)
    """
    values = (value,) * n_dim if isinstance(value, int) else tuple(value)
    if n_dim < 1 or len(values) != n_dim or min(values) < at_least:
        raise ValueError(
            f"`{name}` must be a number or {n_dim} numbers, one for each axis, and at least "
            f"{at_least}, got {value}."
        )
    return values
