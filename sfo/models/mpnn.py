"""The message passing neural PDE solver (MPNN), on regular grids."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from sfo.checks import check_choice
from sfo.models.blocks import Pointwise, coordinates
from sfo.models.compiled.message_sums import MessageSums, message_sums_by_definition
from sfo.models.neighbourhood import Edges, Neighbourhood, Neighbours, Points
from sfo.models.operator import Operator
from sfo.models.presets import ONE_AXIS
from sfo.registry import MODELS
from sfo.shapes import Field
from sfo.transforms import needs_plain_operators


def conditioned(linear: nn.Linear, v: Points, theta: Float[Tensor, " theta"]) -> Points:
    """W (v, θ) + b at every grid point, for θ that are the same at all: they join the bias."""
    weight, weight_theta = linear.weight.split([v.shape[-1], len(theta)], dim=1)
    return F.linear(v, weight, linear.bias + weight_theta @ theta)


class MPNNLayer(nn.Module):
    """N(f + ψ(f_i, mean_j m_ij, θ)): messages from the neighbours, update, instance norm.

        m_ij = σ(W₂ σ(W₁ (f_i, f_j, r_i − r_j, θ) + b₁) + b₂),        σ(x) = x / (1 + e⁻ˣ)

    W₁ is linear: W₁(…) + b₁ = A_i + B_j, where A and B are computed once per point.

    Args:
        channels: Channels of f.
        relative: Channels of r, of which messages see the difference.
        n_theta: Numbers that are the same at all points.
    """

    def __init__(self, channels: int, relative: int, n_theta: int) -> None:
        super().__init__()
        self.parts = [channels, channels, relative, n_theta]
        self.message = nn.Linear(sum(self.parts), channels)
        self.message_out = nn.Linear(channels, channels)
        self.update = nn.Linear(2 * channels + n_theta, channels)
        self.update_out = nn.Linear(channels, channels)

    def forward(
        self,
        f: Points,
        r: Points,
        surrounding_r: Points,
        theta: Tensor,
        graph: Neighbourhood,
        edges: Edges,
    ) -> Points:
        w_i, w_j, w_r, w_theta = self.message.weight.split(self.parts, dim=1)
        bias = self.message.bias + w_theta @ theta
        a = F.linear(torch.cat([f, r], -1), torch.cat([w_i, w_r], 1), bias)
        b = F.linear(torch.cat([graph.surround(f), surrounding_r], -1), torch.cat([w_j, -w_r], 1))
        weight, bias = self.message_out.weight, self.message_out.bias
        if a.dtype != weight.dtype or needs_plain_operators(a, weight):
            sums = message_sums_by_definition(a, b, weight, bias, edges)
        else:
            sums = MessageSums.apply(a, b, weight, bias, edges)
        mean = sums / edges.degrees(f)
        update = F.silu(conditioned(self.update, torch.cat([f, mean], -1), theta))
        f = f + F.silu(self.update_out(update))
        # The instance norm: over the points, for each sample and channel.
        return F.batch_norm(f.flatten(-2).flatten(0, -2), None, None, training=True).view(f.shape)


@MODELS.register("mpnn")
class MPNN(Operator):
    """A graph network: points exchange messages with their neighbours, layer after layer.

        f = encoder(a, x, θ),    f ← layer(f) n_layers times,    u = decoder(f)

    Messages see the difference of the input fields and of the coordinates, see `MPNNLayer`
    (Brandstetter et al., "Message Passing Neural PDE Solvers", 2022). But for the
    norm's mean and variance, a point is reached from n_layers · radius points away at most, so
    that a finer grid means another map.

    There are two ways to a trajectory. By default all time steps are output channels, as for the
    other operators here; the published models are none of this kind, so this is an adaptation
    of ours: the decoder is a perceptron, and with `start` it gives the rate of change,

        u(t) = u(0) + t decoder(f),        0 ≤ t ≤ 1.

    With `window` the model is PDENNEval's, and autoregressive: the input is the first `window`
    frames of each field, θ starts with the time t₀ of the latest one, the decoder is two
    convolutions along the features, which give the next `window` frames,

        u(t₀ + k Δt) = u(t₀) + k Δt decoder(f)_k,        k = 1 … window,

    and so on to the end. The result holds the input's frames as well. `advance` is one such
    step, for training schemes of its own such as the pushforward trick.

    The SFO paper prints no number of parameters; the presets have 640,869 on one axis,
    641,765 on two and 645,680 on three.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels, those of
            a field side by side.
        n_dim: Number of axes, at most 3.
        hidden_channels: Features of a point.
        n_layers: Number of layers.
        radius: Points along an axis to the farthest neighbour; None: 3 on one axis, else 1.
        neighbours: `"box"`: diagonal ones too, 26 on three axes with radius 1; `"cross"`: along
            the axes only, 6.
        periodic: Whether the ends of an axis are neighbours.
        parameters: Constants of the equation, for θ.
        start: For each field of u the input channel that holds its first frame, or None for a
            field without one, which starts from 0. Empty: u = decoder(f).
        window: Frames that an autoregressive model reads and writes; None: all at once.

    Example:
        >>> model = MPNN(in_channels=1, out_channels=101, start=(0,))
        >>> model(torch.randn(2, 1, 64)).shape
        torch.Size([2, 101, 64])
        >>> model = MPNN(in_channels=10, out_channels=101, window=10, parameters=(1e-4, 5.0))
        >>> sum(p.numel() for p in model.parameters())  # as published with PDENNEval
        624649
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        # Shallow water without a start, because its data may hold other fields than the height.
        **{name: dict(start=(0,)) for name in ONE_AXIS},
        "maxwell": dict(start=(0, 2, 4, 6, 8, 10)),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        hidden_channels: int = 128,
        n_layers: int = 6,
        radius: int | None = None,
        neighbours: Neighbours = "box",
        periodic: bool = False,
        parameters: Sequence[float] = (),
        start: Sequence[int | None] = (),
        window: int | None = None,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("neighbours", neighbours, Neighbours)
        if not 1 <= n_dim <= 3:
            raise ValueError(f"`n_dim` must be 1, 2 or 3, got {n_dim}.")
        if radius is None:
            radius = 3 if n_dim == 1 else 1
        if min(hidden_channels, n_layers, radius) < 1:
            raise ValueError(
                "`hidden_channels`, `n_layers` and `radius` must be at least 1, got "
                f"{hidden_channels}, {n_layers} and {radius}."
            )
        fields = len(start) or 1
        if window is None:
            check_start(start, in_channels, out_channels)
        else:
            check_window(window, in_channels, out_channels)
            if start:
                raise ValueError(f"`start` must be empty if there is a `window`, got {start}.")
            fields = in_channels // window
        super().__init__(in_channels, out_channels, n_dim)
        self.constants, self.start, self.window = tuple(parameters), tuple(start), window
        self.fields, self.n_times = fields, out_channels // fields
        self.graph = Neighbourhood(n_dim, radius, neighbours, periodic)
        d, relative = hidden_channels, in_channels + n_dim
        n_theta = len(parameters) + (window is not None)
        self.encoder = nn.Linear(relative + n_theta, d)
        self.encoder_out = nn.Linear(d, d)
        self.layers = nn.ModuleList(MPNNLayer(d, relative, n_theta) for _ in range(n_layers))
        self.decoder: nn.Module
        if window is None:
            self.decoder = nn.Sequential(Pointwise(d, d), nn.SiLU(), Pointwise(d, out_channels))
        else:
            self.decoder = FrameDecoder(d, fields, window)
        self.arguments = {**arguments, "parameters": list(parameters), "start": list(start)}

    def options(self) -> dict[str, Any]:
        names = ("neighbours", "periodic", "parameters", "start")
        return {"radius": self.graph.radius, **{name: self.arguments[name] for name in names}}

    def operate(self, a: Field) -> Field:
        if self.window is None:
            return self._all_at_once(a)
        frames = a.unflatten(1, (self.fields, self.window))
        while frames.shape[2] < self.n_times:
            time = (frames.shape[2] - 1) / (self.n_times - 1)
            following = self.advance(frames[:, :, -self.window :], time)
            frames = torch.cat([frames, following], dim=2)
        return frames[:, :, : self.n_times].flatten(1, 2)

    def _all_at_once(self, a: Field) -> Field:
        u = self.decoder(self._features(a, a.new_tensor(self.constants)))
        if not self.start:
            return u
        u = u.unflatten(1, (self.fields, self.n_times))
        t = torch.linspace(0, 1, self.n_times, dtype=u.dtype, device=u.device)
        zero = torch.zeros_like(a[:, 0])
        first = torch.stack([zero if c is None else a[:, c] for c in self.start], dim=1)
        u = first.unsqueeze(2) + t.view(-1, *[1] * self.n_dim) * u
        return u.flatten(1, 2)

    def advance(
        self, frames: Float[Tensor, "batch field window *grid"], time: float
    ) -> Float[Tensor, "batch field window *grid"]:
        """The next frames after these, of which the latest is at `time`; 1 is the end."""
        f = self._features(frames.flatten(1, 2), frames.new_tensor((time, *self.constants)))
        k = torch.arange(1, frames.shape[2] + 1, dtype=f.dtype, device=f.device)
        elapsed = k.view(-1, *[1] * self.n_dim) / (self.n_times - 1)
        return frames[:, :, -1:] + elapsed * self.decoder(f)

    def _features(self, a: Field, theta: Tensor) -> Field:
        r = torch.cat([a, coordinates(a)], dim=1).movedim((0, 1), (-2, -1)).contiguous()
        graph, edges = self.graph, self.graph.edges(a.shape[2:])
        x = graph.surrounding_coordinates(r)
        surrounding_r = torch.cat([graph.surround(r[..., : a.shape[1]]), x], dim=-1)
        f = F.silu(self.encoder_out(F.silu(conditioned(self.encoder, r, theta))))
        for layer in self.layers:
            f = layer(f, r, surrounding_r, theta, graph, edges)
        return f.movedim((-2, -1), (0, 1)).contiguous()

    def check_input(self, a: Tensor) -> None:
        super().check_input(a)
        least = 2 * self.graph.radius + 1
        if min(a.shape[2:]) < least:
            raise ValueError(
                f"With radius={self.graph.radius} every axis must have at least {least} points, "
                f"got the grid {tuple(a.shape[2:])}; use a finer grid or a smaller `radius`."
            )


class FrameDecoder(nn.Module):
    """From the features of a point to the next frames of each field, by two convolutions.

    They slide along the features, eight filters a field, then one over these. Their lengths are
    PDENNEval's for 128 features and 10 frames, and fitted to other numbers.
    """

    def __init__(self, channels: int, fields: int, frames: int) -> None:
        super().__init__()
        second = 14
        length = frames + second - 1
        stride = min(5, (channels - 1) // (length - 1))
        if stride < 1:
            raise ValueError(
                f"`hidden_channels` must be at least {length} for a window of {frames} frames, "
                f"got {channels}."
            )
        first = channels - stride * (length - 1)
        self.first = nn.Conv1d(1, 8 * fields, first, stride=stride)
        self.second = nn.Conv1d(8 * fields, fields, second, groups=fields)

    def forward(self, f: Field) -> Float[Tensor, "batch field window *grid"]:
        points = f.flatten(2).transpose(1, 2)
        frames = self.second(F.silu(self.first(points.reshape(-1, 1, f.shape[1]))))
        frames = frames.view(*points.shape[:2], *frames.shape[1:])
        return frames.permute(0, 2, 3, 1).unflatten(3, f.shape[2:])


def check_start(start: Sequence[int | None], in_channels: int, out_channels: int) -> None:
    """Refuse input channels that do not exist, and times that do not divide evenly."""
    channels = [c for c in start if c is not None]
    if any(not 0 <= c < in_channels for c in channels):
        raise ValueError(
            f"`start` must hold input channels 0..{in_channels - 1} or None, got {tuple(start)}."
        )
    if start and (out_channels % len(start) or out_channels == len(start)):
        raise ValueError(
            "`out_channels` must be two or more time steps of each of the fields in `start`, got "
            f"out_channels={out_channels} for start={tuple(start)}; or pass start=()."
        )


def check_window(window: int, in_channels: int, out_channels: int) -> None:
    """Refuse channels that are not whole windows of fields, or leave nothing to predict."""
    if window < 1 or in_channels % window:
        raise ValueError(
            f"`window` must divide in_channels={in_channels}, the frames of each field, got "
            f"{window}."
        )
    fields = in_channels // window
    if out_channels % fields or out_channels <= in_channels:
        raise ValueError(
            f"`out_channels` must be more than {window} time steps of each of the {fields} "
            f"fields in the input, got {out_channels}."
        )
