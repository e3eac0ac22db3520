"""Transolver: attention among a few slices of the domain instead of among its points."""

from typing import Any, ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional as F

from sfo.checks import check_choice
from sfo.models.blocks import ChannelNorm, Lift, Pointwise, two_layers
from sfo.models.blocks import coordinates as grid_coordinates
from sfo.models.compiled.slice_attention import slice_attention
from sfo.models.operator import LayeredOperator, split_components
from sfo.models.presets import ONE_AXIS
from sfo.registry import MODELS
from sfo.shapes import Field

Projection = Literal["conv", "pointwise"]


class PhysicsAttention(nn.Module):
    """Points are gathered into slices, the slices attend to each other, and are spread out again.

        w_g(x) = softmax_g((W x̃ + β)_g / τ),    s_g = Σ_x w_g(x) f̃(x) / Σ_x w_g(x)
        attend(v)(x) = W_out Σ_g w_g(x) s'_g,    s' = softmax((Q s)(K s)ᵀ / √dim s) V s

    in each of the heads, whose W, β, Q, K and V are the same but not the temperatures τ, kept in
    0.1..5. x̃ and f̃ are projections of v. Time and memory are O(points × slices).

    Args:
        channels: Channels d of the field, a multiple of `n_heads`.
        n_dim: Number of axes.
        n_heads: Number of heads.
        n_slices: Number of slices.
        projection: `"conv"`: x̃ and f̃ see 3 points along each axis; `"pointwise"`: one.
    """

    def __init__(
        self, channels: int, n_dim: int, *, n_heads: int, n_slices: int, projection: Projection
    ) -> None:
        super().__init__()
        width = channels // n_heads
        self.n_heads = n_heads
        self.project: nn.Module
        if projection == "conv":
            convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n_dim - 1]
            self.project = convolution(channels, 2 * channels, kernel_size=3, padding=1)
        else:
            self.project = Pointwise(channels, 2 * channels)
        self.slice = nn.Linear(width, n_slices)
        self.temperature = nn.Parameter(torch.full((n_heads,), 0.5))
        self.query, self.key, self.value = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.out = Pointwise(channels, channels)

    def forward(self, v: Field) -> Field:
        x, f = self.project(v).flatten(2).unflatten(1, (2, self.n_heads, -1)).unbind(1)
        # Dividing the small matrix by τ saves a pass over points × slices.
        scale = self.temperature.clamp(0.1, 5)[:, None]
        weight, bias = self.slice.weight / scale[..., None], self.slice.bias / scale
        out = slice_attention(
            x, f, weight, bias, self.query.weight, self.key.weight, self.value.weight
        )
        return self.out(out.reshape(v.shape))


class TransolverLayer(nn.Module):
    """v ← v + attend(N(v)), then v ← v + W₂ σ(W₁ N(v)), σ = GELU, N the layer norm."""

    def __init__(self, attention: PhysicsAttention, channels: int, hidden: int) -> None:
        super().__init__()
        self.attention_norm, self.update_norm = ChannelNorm(channels), ChannelNorm(channels)
        self.attention = attention
        self.update = two_layers(channels, hidden, channels)

    def forward(self, v: Field) -> Field:
        v = v + self.attention(self.attention_norm(v))
        return v + self.update(self.update_norm(v))


class TransolverLift(nn.Module):
    """P: W₂ σ(W₁ (a, x)) + a learned constant, σ = GELU, x the coordinates or distances."""

    def __init__(
        self,
        in_channels: int,
        channels: int,
        n_dim: int,
        *,
        coordinates: bool,
        reference_points: int | None,
    ) -> None:
        super().__init__()
        self.reference_points = reference_points
        if reference_points is not None:
            in_channels += reference_points**n_dim
            coordinates = False
        self.inner = Lift(in_channels, 2 * channels, n_dim, coordinates=coordinates)
        self.outer = Pointwise(2 * channels, channels)
        self.constant = nn.Parameter(torch.rand(channels) / channels)

    def forward(self, a: Field) -> Field:
        if self.reference_points is not None:
            a = torch.cat([a, reference_distances(a, self.reference_points)], dim=1)
        v = self.outer(F.gelu(self.inner(a)))
        return v + self.constant.view(-1, *[1] * (v.ndim - 2))


def reference_distances(a: Field, reference_points: int) -> Field:
    """Distances of a field's grid points to a lattice of so many points along each axis.

    Example:
        >>> reference_distances(torch.zeros(1, 1, 3), reference_points=2)
        tensor([[[0.0000, 0.5000, 1.0000],
                 [1.0000, 0.5000, 0.0000]]])
    """
    shape = a.shape[2:]
    # In half precision there is no `cdist`.
    dtype = torch.promote_types(a.dtype, torch.float32)
    lattice = grid_coordinates(a.new_empty(1, 1, *[reference_points] * len(shape), dtype=dtype))
    points = grid_coordinates(a[:1].to(dtype))
    distances = torch.cdist(
        lattice[0].flatten(1).T,
        points[0].flatten(1).T,
        # The other way subtracts squares and is off by 2e-4 where two points meet.
        compute_mode="donot_use_mm_for_euclid_dist",
    )
    return distances.to(a.dtype).view(-1, *shape).expand(a.shape[0], -1, *shape)


@MODELS.register("transolver")
class Transolver(LayeredOperator):
    """A transformer whose tokens are learned slices of the domain, not its points.

        u = Q(N(layer_T(… layer_1(P(a, x)))))
        layer(v): v ← v + attend(N(v)),    v ← v + W₂ σ(W₁ N(v)),    σ = GELU

    P and Q work point by point, P with a hidden layer; N is a layer norm over the channels and
    `attend` as in `PhysicsAttention` (Wu et al., "Transolver: A Fast Transformer Solver for PDEs
    on General Geometries", 2024). With `projection="pointwise"` and no coordinates the points
    are a set: their order does not matter.

    The SFO paper gives this baseline's parameters, 326,629, 605,717 and 4,129,985 in one, two and
    three dimensions, but not its settings. `from_paper` has the plain settings that come nearest:
    326,629, 595,773 and 4,183,760.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes, at most 3 with `projection="conv"`.
        hidden_channels: Latent channels d, a multiple of `n_heads`.
        n_layers: Number of layers T.
        n_heads: Heads of the attention.
        n_slices: Slices of the domain.
        mlp_ratio: Width of W₁ over d.
        projection: See `PhysicsAttention`.
        coordinates: Append the coordinates to the input.
        reference_points: Append in their place the distances to a lattice of so many points
            along each axis.
        components: Components of a vector field that share the network, see `Operator`.
        upstream: Start the maps to the slices as all other linear ones, as the authors' code
            does in effect: it draws orthogonal matrices, so that slices differ from the start,
            and overwrites them. Here they stay orthogonal unless this is set.

    Example:
        >>> model = Transolver.from_paper("allen_cahn")
        >>> model(torch.randn(2, 1, 256)).shape
        torch.Size([2, 101, 256])
        >>> sum(p.numel() for p in model.parameters())
        326629
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        **{name: dict(n_slices=128, reference_points=8) for name in ONE_AXIS},
        "shallow_water": dict(n_layers=6, n_heads=4, mlp_ratio=2),
        "maxwell": dict(hidden_channels=128, n_layers=4, n_slices=32, mlp_ratio=4),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        hidden_channels: int = 64,
        n_layers: int = 8,
        n_heads: int = 8,
        n_slices: int = 64,
        mlp_ratio: float = 1,
        projection: Projection = "conv",
        coordinates: bool = True,
        reference_points: int | None = None,
        components: int = 1,
        upstream: bool = False,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("projection", projection, Projection)
        if projection == "conv" and not 1 <= n_dim <= 3:
            raise ValueError(
                f"`n_dim` must be 1, 2 or 3 with projection='conv', got {n_dim}; "
                "projection='pointwise' takes any."
            )
        if n_heads < 1 or hidden_channels < 1 or hidden_channels % n_heads:
            raise ValueError(
                "`hidden_channels` must be a positive multiple of `n_heads`, got "
                f"hidden_channels={hidden_channels}, n_heads={n_heads}."
            )
        if n_layers < 1 or n_slices < 1:
            raise ValueError(
                "`n_layers` and `n_slices` must be at least 1, got "
                f"n_layers={n_layers}, n_slices={n_slices}."
            )
        if reference_points is not None and reference_points < 2:
            raise ValueError(
                f"`reference_points` must be at least 2 or None, got {reference_points}."
            )
        channels_in, channels_out = split_components(in_channels, out_channels, components)

        def layer() -> TransolverLayer:
            attention = PhysicsAttention(
                hidden_channels,
                n_dim,
                n_heads=n_heads,
                n_slices=n_slices,
                projection=projection,
            )
            hidden = max(1, round(mlp_ratio * hidden_channels))
            return TransolverLayer(attention, hidden_channels, hidden)

        super().__init__(
            in_channels,
            out_channels,
            n_dim,
            lift=TransolverLift(
                channels_in,
                hidden_channels,
                n_dim,
                coordinates=coordinates,
                reference_points=reference_points,
            ),
            layers=[layer() for _ in range(n_layers)],
            project=nn.Sequential(
                ChannelNorm(hidden_channels), Pointwise(hidden_channels, channels_out)
            ),
            components=components,
        )
        self.arguments = arguments
        self.apply(_near_zero if upstream else _reset)


def _near_zero(module: nn.Module) -> None:
    """Start linear maps near zero, so that a layer starts near the identity."""
    if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=0.02)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


def _reset(module: nn.Module) -> None:
    """The same, but for slices that differ from the start: `apply` comes here after the parts."""
    _near_zero(module)
    if isinstance(module, PhysicsAttention):
        nn.init.orthogonal_(module.slice.weight)
