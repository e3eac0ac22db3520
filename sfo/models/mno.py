"""The Mamba Neural Operator (MNO): the grid as a sequence, mixed by selective state spaces."""

from math import ceil, log
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from sfo.checks import check_at_least
from sfo.models.blocks import Lift, Pointwise
from sfo.models.compiled.selective_scan import selective_scan
from sfo.models.matrices import Layout
from sfo.models.operator import Operator, split_components
from sfo.models.spectral_conv import FourierModes, SpectralConv
from sfo.registry import MODELS
from sfo.shapes import Field

Sequence = Float[Tensor, "points batch _"]


class StateSpaceMixer(nn.Module):
    """Selective state spaces that run along the sequence and against it, behind a gate.

        u, z = σ(W_in v),    (δ, b, c) = W_x u,    Δ = softplus(W_Δ δ + w),    σ = SiLU
        mix(v) = W_out (N(Σ scan(u, Δ, −exp(α), b, c) + D u) ⊙ z)

    The sum is over the two directions, each with a W_x, W_Δ, w, α and D of its own; N is a layer
    norm. There is no convolution before the scan, unlike in Mamba for text.

    Args:
        channels: Channels d of the sequence.
        expansion: Channels of u and z over d.
        n_states: States of a channel.
        rank: Length of δ; None: d/16, rounded up.
    """

    matrix_layouts: ClassVar[dict[str, Layout | None]] = {"log_rates": None, "skip": None}
    """α and D act on each channel on its own."""

    def __init__(
        self, channels: int, *, expansion: int = 2, n_states: int = 16, rank: int | None = None
    ) -> None:
        super().__init__()
        inner = expansion * channels
        rank = ceil(channels / 16) if rank is None else rank
        self.split = (rank, n_states, n_states)
        self.enter = nn.Linear(channels, 2 * inner, bias=False)
        self.select = nn.ModuleList(nn.Linear(inner, sum(self.split), bias=False) for _ in range(2))
        self.step = nn.ModuleList(_step_map(rank, inner) for _ in range(2))
        rates = torch.arange(1, n_states + 1.0).log()[:, None]
        self.log_rates = nn.Parameter(rates.repeat(2, 1, inner))
        self.skip = nn.Parameter(torch.ones(2, inner))
        self.norm = nn.LayerNorm(inner)
        self.leave = nn.Linear(inner, channels, bias=False)

    def forward(self, v: Sequence) -> Sequence:
        # Two maps, because a scan wants u without z between its rows.
        u, z = (F.silu(F.linear(v, weight)) for weight in self.enter.weight.chunk(2))
        y = self.scan(u, 0) + self.scan(u, 1) + self.skip.sum(0) * u
        return self.leave(self.norm(y) * z)

    def scan(self, u: Sequence, direction: int) -> Sequence:
        delta, b, c = self.select[direction](u).split(self.split, dim=-1)
        delta = F.softplus(self.step[direction](delta))
        rates = -self.log_rates[direction].exp()
        return selective_scan(u, delta, rates, b, c, backwards=direction == 1)


def _step_map(rank: int, channels: int) -> nn.Linear:
    """W_Δ and w such that Δ starts in 0.001..0.1, evenly on a logarithmic scale."""
    step = nn.Linear(rank, channels)
    nn.init.uniform_(step.weight, -(rank**-0.5), rank**-0.5)
    with torch.no_grad():
        delta = step.bias.uniform_(log(1e-3), log(1e-1)).exp_()
        # The inverse of softplus.
        delta.add_(torch.log(-torch.expm1(-delta)))
    return step


class MNOLayer(nn.Module):
    """v ← v + mix(N(v)), then v ← v + W₂ max(0, W₁ N(v)), N the layer norm or nothing.

    With `norm_after`, v ← N(v + mix(v)), then v ← N(v + W₂ max(0, W₁ v)).
    """

    def __init__(
        self,
        mixer: StateSpaceMixer,
        channels: int,
        hidden: int,
        norm: bool,
        norm_after: bool = False,
    ) -> None:
        super().__init__()
        self.norm_after = norm_after
        self.mixer_norm, self.update_norm = (
            nn.LayerNorm(channels) if norm else nn.Identity() for _ in range(2)
        )
        self.mixer = mixer
        self.update = nn.Sequential(
            nn.Linear(channels, hidden), nn.ReLU(), nn.Linear(hidden, channels)
        )

    def forward(self, v: Sequence) -> Sequence:
        if self.norm_after:
            v = self.mixer_norm(v + self.mixer(v))
            return self.update_norm(v + self.update(v))
        v = v + self.mixer(self.mixer_norm(v))
        return v + self.update(self.update_norm(v))


class SpectralHead(nn.Module):
    """Q of the authors' code: Fourier layers on a few channels, then an MLP.

        v ← W (v, x),    v ← σ(K v + W v + b) twice,    u = W₂ σ(W₁ v),    σ = SiLU

    with the coordinates x, spectral convolutions K and 2M times as many hidden channels on M axes.

    Args:
        in_channels: Channels of v.
        out_channels: Channels of u.
        n_dim: Number of axes, M.
        hidden_channels: Channels of the Fourier layers.
        n_modes: Frequencies along an axis.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int,
        *,
        hidden_channels: int = 32,
        n_modes: int = 12,
    ) -> None:
        super().__init__()
        d = hidden_channels
        self.enter = Lift(in_channels, d, n_dim)
        modes = FourierModes([n_modes] * n_dim)
        convolutions = [SpectralConv(d, d, modes) for _ in range(2)]
        self.spectral = nn.ModuleList(convolutions)
        self.local = nn.ModuleList(Pointwise(d, d) for _ in range(2))
        # Glorot's normal distribution for two real tensors (d, d, modes, …, 2), times a gain that
        # the code has without the root on one axis.
        gain = (1 if n_dim == 1 else (2 * d) ** 0.5) / d**2
        std = gain * (d * 2 * n_modes**n_dim) ** -0.5
        for convolution in convolutions:
            nn.init.normal_(torch.view_as_real(convolution.weight.detach()), std=std)
        self.leave = nn.Sequential(
            Pointwise(d, 2 * n_dim * d), nn.SiLU(), Pointwise(2 * n_dim * d, out_channels)
        )

    def forward(self, v: Field) -> Field:
        v = self.enter(v)
        for spectral, local in zip(self.spectral, self.local, strict=True):
            v = F.silu(spectral(v) + local(v))
        return self.leave(v)


@MODELS.register("mno")
class MNO(Operator):
    """A neural operator that reads the grid as one sequence, row by row, in both directions.

        u = Q(N(layer_T(… layer_1(P(a, x)))))
        layer(v): v ← v + mix(N(v)),    v ← v + W₂ σ(W₁ N(v)),    σ = ReLU

    P and Q are pointwise linear maps, N is a layer norm and `mix` a selective state space, see
    `StateSpaceMixer` (Cheng et al., "Mamba Neural Operator: Who Wins? Transformers vs.
    State-Space Models for PDEs", 2024). Time and memory are linear in the number of points.
    Neighbours across rows are a row apart in the sequence, and a finer grid is a longer one:
    unlike for spectral operators, it means another map.

    The SFO paper gives this baseline's parameters, 311,781, 721,877 and 8,984,586 in one, two and
    three dimensions, but not its settings. `from_paper` has the plain settings that come nearest:
    305,765, 712,517 and 9,375,280.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes.
        hidden_channels: Latent channels d.
        n_layers: Number of layers T.
        n_states: States of a channel in a scan.
        expansion: Channels of a scan over d.
        rank: Rank of the map to Δ; None: d/16, rounded up.
        mlp_ratio: Width of W₁ over d.
        norm: Normalise before the mixer and before the update of every layer, and before Q.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.
        upstream: Normalise after each residual sum instead, not before Q, and take the Fourier
            layers of `SpectralHead` for Q, as the authors' code does. Its configuration for
            Shallow Water has norm=False besides.

    Example:
        >>> model = MNO(in_channels=1, out_channels=101)
        >>> model(torch.randn(2, 1, 256)).shape
        torch.Size([2, 101, 256])
        >>> sum(p.numel() for p in model.parameters())
        305765
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        "shallow_water": dict(n_layers=6, mlp_ratio=2),
        "maxwell": dict(hidden_channels=512, n_layers=4, coordinates=False),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        hidden_channels: int = 96,
        n_layers: int = 3,
        n_states: int = 16,
        expansion: int = 2,
        rank: int | None = None,
        mlp_ratio: float = 1,
        norm: bool = True,
        coordinates: bool = True,
        components: int = 1,
        upstream: bool = False,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_at_least(1, n_dim=n_dim, hidden_channels=hidden_channels, n_layers=n_layers)
        check_at_least(1, n_states=n_states, expansion=expansion, rank=rank)
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        super().__init__(in_channels, out_channels, n_dim, components=components)

        def layer() -> MNOLayer:
            return MNOLayer(
                StateSpaceMixer(hidden_channels, expansion=expansion, n_states=n_states, rank=rank),
                hidden_channels,
                max(1, round(mlp_ratio * hidden_channels)),
                norm,
                norm_after=upstream,
            )

        self.lift = Lift(channels_in, hidden_channels, n_dim, coordinates=coordinates)
        self.layers = nn.ModuleList(layer() for _ in range(n_layers))
        self.norm = nn.LayerNorm(hidden_channels) if norm and not upstream else nn.Identity()
        self.project: nn.Module
        if upstream:
            self.project = SpectralHead(hidden_channels, channels_out, n_dim)
        else:
            self.project = Pointwise(hidden_channels, channels_out)
        self.arguments = arguments

    def operate(self, a: Field) -> Field:
        # Points first: a scan takes them in turn, and the linear maps are one GEMM each.
        v = self.lift(a).flatten(2).permute(2, 0, 1).contiguous()
        for layer in self.layers:
            v = layer(v)
        return self.project(self.norm(v).permute(1, 2, 0).unflatten(2, a.shape[2:]))
