"""The deep operator network (DeepONet)."""

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from sfo.checks import check_at_least, check_choice
from sfo.models.blocks import coordinates
from sfo.models.operator import Operator
from sfo.models.presets import ONE_AXIS
from sfo.registry import MODELS
from sfo.shapes import Field

Query = Literal["space", "space_time", "first_axis"]
Activation = Literal["relu", "tanh"]

# The trunk works on so many query points at once that its output has this many numbers, 128 MB
# in float32.
CHUNK = 2**25


@MODELS.register("deeponet")
class DeepONet(Operator):
    """A sum of p functions of the query point, with coefficients that depend on the input.

        u_c(y) = Σ_k b_ck(a) t_ck(y) + β_c,        k = 1 … p

    The branch b is a network that reads the input field at all points of the training grid, the
    trunk t one that reads the query point y and ends with the activation σ (Lu et al., "Learning
    nonlinear operators via DeepONet", 2021). Weights start as Glorot's normal ones, biases at 0.
    The branch fixes the grid: other ones are refused.

    What y is, and so what the channels c are, is `query`:

    - "space": the coordinates; c is an output channel, a time step of a field.
    - "space_time": coordinates and time; c is a field.
    - "first_axis": the first coordinate; c is an output channel at a place along the other axes.

    All run from 0 to 1. A trunk of coordinates alone is slow to learn functions that oscillate;
    `harmonics` of them help.

    Parameters beside those that the SFO paper prints: on one axis 3,451,237, as printed. On two
    the printed 429,143,808 are `query="first_axis"`, nearly all in two layers with an output for
    every time and place along y; the preset is "space" with 5,532,261, as on the other axes, and
    "space_time" has 2,229,889 but takes four times as long. On three 52,016,560; the printed
    52,034,992 are met by 18 trunk inputs (`harmonics=5`) and `trunk_layers=5`, and by others.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u.
        n_dim: Number of axes.
        train_shape: The grid.
        query: What the trunk reads.
        fields: Fields in u if the query holds the time: `out_channels` is a multiple of it,
            the time steps of a field side by side.
        harmonics: Add cos(πky), k = 1 … harmonics, of each coordinate to the trunk's input.
        n_functions: Functions p in the sum.
        hidden_channels: Width of branch and trunk.
        branch_layers: Hidden layers of the branch.
        trunk_layers: Hidden layers of the trunk; None: 3 on one axis, else 4.
        activation: σ, `"relu"` or `"tanh"`.

    Example:
        >>> model = DeepONet(in_channels=1, out_channels=101, train_shape=(256,))
        >>> model(torch.randn(8, 1, 256)).shape
        torch.Size([8, 101, 256])
        >>> sum(p.numel() for p in model.parameters())
        3451237
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        **{name: dict(train_shape=(256,)) for name in ONE_AXIS},
        # Not the paper's query, see above.
        "shallow_water": dict(train_shape=(128, 128)),
        "maxwell": dict(train_shape=(32, 32, 32)),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        train_shape: Sequence[int],
        query: Query = "space",
        fields: int = 1,
        harmonics: int = 0,
        n_functions: int = 128,
        hidden_channels: int = 128,
        branch_layers: int = 4,
        trunk_layers: int | None = None,
        activation: Activation = "relu",
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("query", query, Query)
        check_choice("activation", activation, Activation)
        if trunk_layers is None:
            trunk_layers = 3 if n_dim == 1 else 4
        if min(n_functions, hidden_channels, branch_layers, trunk_layers) < 1:
            raise ValueError(
                "`n_functions`, `hidden_channels`, `branch_layers` and `trunk_layers` must be at "
                f"least 1, got {n_functions}, {hidden_channels}, {branch_layers} and "
                f"{trunk_layers}."
            )
        check_at_least(0, harmonics=harmonics)
        if len(train_shape) != n_dim or min(train_shape, default=0) < 1:
            raise ValueError(
                f"`train_shape` must be the points along each of the {n_dim} axes, got "
                f"{tuple(train_shape)}."
            )
        if fields < 1 or out_channels % fields:
            raise ValueError(f"`fields` must divide out_channels={out_channels}, got {fields}.")
        super().__init__(in_channels, out_channels, n_dim)
        self.train_shape = tuple(train_shape)
        self.query, self.fields, self.harmonics = query, fields, harmonics
        self.n_functions = n_functions
        n_coordinates = {"space": n_dim, "space_time": n_dim + 1, "first_axis": 1}[query]
        self.n_sums = {
            "space": out_channels,
            "space_time": fields,
            "first_axis": out_channels * prod(self.train_shape[1:]),
        }[query]
        sensors = in_channels * prod(self.train_shape)
        width, last = hidden_channels, n_functions * self.n_sums
        sigma = nn.ReLU if activation == "relu" else nn.Tanh
        self.branch = perceptron([sensors, *[width] * branch_layers, last], sigma)
        n_inputs = n_coordinates * (1 + harmonics)
        self.trunk = perceptron([n_inputs, *[width] * trunk_layers, last], sigma)
        self.trunk.append(sigma())
        self.bias = nn.Parameter(torch.zeros(self.n_sums))
        self.arguments = {**arguments, "train_shape": list(train_shape)}

    def options(self) -> dict[str, Any]:
        names = ("train_shape", "query", "fields", "harmonics", "activation")
        return {name: self.arguments[name] for name in names}

    def operate(self, a: Field) -> Field:
        b = self.branch(a.flatten(1)).unflatten(1, (self.n_sums, self.n_functions))
        # One matrix product (batch, p) × (p, points) for each sum.
        b = b.transpose(0, 1)
        points = self.query_points(a)
        at_once = max(1, CHUNK // (self.n_sums * self.n_functions))
        if len(points) <= at_once:
            u = self._sum(b, points)
        else:
            # What the trunk computes on the way is too much to keep for the backward pass.
            parts = [
                checkpoint(self._sum, b, part, use_reentrant=False, preserve_rng_state=False)
                for part in points.split(at_once)
            ]
            u = torch.cat(parts, dim=2)
        return self._as_field(u.transpose(0, 1))

    def _sum(self, b: Tensor, points: Tensor) -> Float[Tensor, "sums batch points"]:
        """Σ_k b_k t_k(y) + β at some query points."""
        t = self.trunk(points).unflatten(1, (self.n_sums, self.n_functions))
        return torch.baddbmm(self.bias[:, None, None], b, t.permute(1, 2, 0))

    def query_points(self, a: Field) -> Float[Tensor, "points inputs"]:
        """What the trunk reads; the time, if asked for, runs slowest, the last axis fastest."""
        lines = {
            "space": self.train_shape,
            "space_time": (self.out_channels // self.fields, *self.train_shape),
            "first_axis": self.train_shape[:1],
        }[self.query]
        y = coordinates(a.new_empty(1, 1, *lines))[0].flatten(1).T
        k = torch.arange(1, self.harmonics + 1, dtype=y.dtype, device=y.device)
        return torch.cat([y, torch.cos(torch.pi * y[..., None] * k).flatten(1)], dim=1)

    def _as_field(self, u: Float[Tensor, "batch sums points"]) -> Field:
        if self.query == "first_axis":
            u = u.unflatten(1, (self.out_channels, -1)).transpose(2, 3)
        return u.reshape(u.shape[0], self.out_channels, *self.train_shape)

    def check_input(self, a: Tensor) -> None:
        super().check_input(a)
        shape = tuple(a.shape[2:])
        if shape != self.train_shape:
            raise ValueError(
                f"This DeepONet reads its input on the grid {self.train_shape} only, got {shape}: "
                f"resample the input, or build another one with train_shape={shape}."
            )


def perceptron(widths: Sequence[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear maps from width to width, with the activation between them."""
    parts: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        linear = nn.Linear(n_in, n_out)
        nn.init.xavier_normal_(linear.weight)
        nn.init.zeros_(linear.bias)
        parts += [linear, activation()]
    return nn.Sequential(*parts[:-1])
