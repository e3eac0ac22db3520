"""Parts that models share: pointwise maps, the channel norm, the lift and the two updates."""

import copy
import re
from collections.abc import Callable, MutableMapping
from functools import partial
from math import sqrt
from typing import Any, Literal, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sfo.models.kernel import FactoredKernel, SpectralKernel
from sfo.models.pointwise import Pointwise, pointwise
from sfo.models.tiles import in_tiles
from sfo.shapes import Field
from sfo.transforms import is_observed, needs_plain_operators

Update = Literal["mlp", "glu"]
Activation = Literal["gelu", "relu", "silu", "sigmoid"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "gelu": F.gelu,
    "relu": F.relu,
    "silu": F.silu,
    "sigmoid": torch.sigmoid,
}

# One step of the channel norm's loop over the batch covers this many numbers, 4 MB in float32.
CHUNK = 2**20

FORMER_MLP = "bend"
"""The name of the lift's hidden layers in weights that were saved by version 0.3."""


def two_layers(n_in: int, hidden: int, n_out: int) -> nn.Sequential:
    """W₂ σ(W₁ ·) at every grid point, σ = GELU."""
    return nn.Sequential(Pointwise(n_in, hidden), nn.GELU(), Pointwise(hidden, n_out))


class ChannelNorm(nn.LayerNorm):
    """Layer normalisation over the channels, at every grid point on its own."""

    def __init__(self, channels: int) -> None:
        super().__init__(channels)

    def forward(self, v: Field) -> Field:
        flat = v.flatten(2)
        if v.dtype != self.weight.dtype or needs_plain_operators(v, self.weight):
            out = channel_norm_by_definition(flat, self.weight, self.bias, self.eps)
        else:
            out = _ChannelNorm.apply(flat, self.weight, self.bias, self.eps)
        return out.view(v.shape)


def channel_norm_by_definition(v: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """The norm of a field `(batch, channel, points)` as torch has it, on a transposed copy."""
    return F.layer_norm(v.transpose(1, 2), weight.shape, weight, bias, eps).transpose(1, 2)


class _ChannelNorm(torch.autograd.Function):
    """The same without the transposes, twice as fast on large grids.

    It keeps only the input, which the residual connection holds anyway, and two numbers per
    point. The loop over samples keeps each in cache through all passes.
    """

    @staticmethod
    def forward(ctx: Any, v: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        out = torch.empty_like(v)
        mean, scale = v.new_empty(2, len(v), 1, v.shape[2])
        for part in _parts(v):
            x, centred = v[part], out[part]
            torch.mean(x, 1, keepdim=True, out=mean[part])
            torch.sub(x, mean[part], out=centred)
            torch.mean(centred.square(), 1, keepdim=True, out=scale[part])
            scale[part].add_(eps).rsqrt_()
            centred.mul_(scale[part]).mul_(weight[:, None]).add_(bias[:, None])
        ctx.save_for_backward(v, mean, scale, weight, bias)
        ctx.eps = eps
        return out

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        v, mean, scale, weight, bias = ctx.saved_tensors
        if torch.is_grad_enabled():
            out = channel_norm_by_definition(v, weight, bias, ctx.eps)
            return (*torch.autograd.grad(out, (v, weight, bias), dout, create_graph=True), None)
        dv = torch.empty_like(v)
        dweight, dbias = torch.zeros_like(weight), torch.zeros_like(bias)
        for part in _parts(v):
            x = (v[part] - mean[part]).mul_(scale[part])
            dx, dy = dv[part], dout[part]
            product = dy * x
            dweight += product.sum((0, 2))
            dbias += dy.sum((0, 2))
            along_x = product.mul_(weight[:, None]).mean(1, keepdim=True)
            torch.mul(dy, weight[:, None], out=dx)
            dx.sub_(dx.mean(1, keepdim=True)).addcmul_(x, along_x, value=-1).mul_(scale[part])
        return dv, dweight, dbias, None


def _parts(v: Tensor) -> list[slice]:
    step = max(1, CHUNK // max(1, v[0].numel()))
    return [slice(start, start + step) for start in range(0, len(v), step)]


class Lift(nn.Module):
    """P: append the coordinates, mix the channels to d, normalise, and add a nonlinear map.

    The coordinates run from 0 to 1 along each axis, end points included.

    Args:
        in_channels: Channels of the input field.
        hidden_channels: Channels d of the latent field.
        n_dim: Number of axes.
        kernel: Points along an axis that the lift sees, odd; the domain is continued
            periodically. 1 is a pointwise map.
        coordinates: Whether to append the coordinates.
        standard: Whether the coordinates run from −√3 to √3 instead of from 0 to 1, which gives
            them mean 0 and deviation 1.
        norm: `"group"` for GroupNorm over 8 groups of channels and all points, or None.
        mlp_channels: Hidden width of v + W₂ σ(W₁ v) at the end, or None: P is linear but for the
            norm.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        n_dim: int,
        *,
        kernel: int = 1,
        coordinates: bool = True,
        standard: bool = False,
        norm: Literal["group"] | None = None,
        mlp_channels: int | None = None,
    ) -> None:
        super().__init__()
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"`lift_kernel` must be odd and at least 1, got {kernel}.")
        if kernel > 1 and n_dim > 3:
            raise ValueError(f"`lift_kernel` must be 1 on {n_dim} axes, got {kernel}.")
        if norm == "group" and hidden_channels % 8:
            raise ValueError(
                f"`hidden_channels` must be a multiple of 8 for the lift's GroupNorm, got "
                f"{hidden_channels}. Choose a multiple of 8 or lift_norm=None."
            )
        self.in_channels, self.n_dim, self.kernel = in_channels, n_dim, kernel
        self.coordinates, self.standard = coordinates, standard
        channels = in_channels + (n_dim if coordinates else 0)
        self.mix: Pointwise | nn.Conv1d | nn.Conv2d | nn.Conv3d
        if kernel == 1:
            self.mix = Pointwise(channels, hidden_channels)
        else:
            self.mix = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n_dim - 1](
                channels, hidden_channels, kernel
            )
        self.norm = nn.GroupNorm(8, hidden_channels) if norm == "group" else nn.Identity()
        self.mlp = (
            None
            if mlp_channels is None
            else two_layers(hidden_channels, mlp_channels, hidden_channels)
        )

    def forward(self, a: Field) -> Field:
        v = self.norm(self._mixed(a))
        return v if self.mlp is None else v + self.mlp(v)

    def _load_from_state_dict(self, state: dict[str, Any], prefix: str, *how: Any) -> None:
        for name in [name for name in state if name.startswith(f"{prefix}{FORMER_MLP}.")]:
            state[f"{prefix}mlp{name.removeprefix(prefix + FORMER_MLP)}"] = state.pop(name)
        super()._load_from_state_dict(state, prefix, *how)

    def _mixed(self, a: Field) -> Field:
        weight, bias = self.mix.weight, cast(Tensor, self.mix.bias)
        if is_observed(self.mix):
            return self._called(a)
        if not self.coordinates:
            return self._convolve(a, weight, bias)
        # The lift is linear and the coordinates are the same for all samples: their part is
        # computed once, for a batch of one.
        x = coordinates(a[:1])
        if self.standard:
            x = sqrt(12) * (x - 0.5)
        fixed = self._convolve(x, weight[:, self.in_channels :], bias)
        no_bias = torch.zeros_like(bias)
        return self._convolve(a, weight[:, : self.in_channels], no_bias) + fixed

    def _called(self, a: Field) -> Field:
        """The same by calling the layer, for whoever has hooks on it."""
        if self.coordinates:
            x = coordinates(a)
            a = torch.cat([a, sqrt(12) * (x - 0.5) if self.standard else x], dim=1)
        return self.mix(self._around(a) if self.kernel > 1 else a)

    def _convolve(self, a: Field, weight: Tensor, bias: Tensor) -> Field:
        if self.kernel == 1:
            return pointwise(a, weight, bias)
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.n_dim - 1]
        return convolve(self._around(a), weight, bias)

    def _around(self, a: Field) -> Tensor:
        """The field continued periodically by half a kernel."""
        reach = self.kernel // 2
        if min(a.shape[2:]) < reach:
            raise ValueError(
                f"the grid must have at least {reach} points along each axis for "
                f"lift_kernel={self.kernel}, got {tuple(a.shape[2:])}; build the model with "
                "lift_kernel=1."
            )
        return F.pad(a, (reach,) * (2 * self.n_dim), mode="circular")


S = TypeVar("S", bound=MutableMapping[str, Any])


def with_current_names(state: S) -> S:
    """Weights under the names of today: until version 0.3 the lift's `mlp` had another one.

    Example:
        >>> with_current_names({"lift.bend.0.bias": 1, "lift.mix.bias": 2})
        {'lift.mlp.0.bias': 1, 'lift.mix.bias': 2}
    """
    renamed = copy.copy(state)  # With the versions of modules, which a state dict has beside it.
    renamed.clear()
    former = re.compile(rf"(^|\.){FORMER_MLP}\.")
    renamed.update({former.sub(r"\1mlp.", name): value for name, value in state.items()})
    return renamed


def coordinates(a: Field) -> Field:
    """The coordinates of a field's grid, one channel per axis, for every sample.

    Example:
        >>> coordinates(torch.zeros(1, 1, 3))
        tensor([[[0.0000, 0.5000, 1.0000]]])
    """
    shape = a.shape[2:]
    lines = [torch.linspace(0, 1, n, dtype=a.dtype, device=a.device) for n in shape]
    mesh = torch.stack(torch.meshgrid(*lines, indexing="ij"))
    return mesh.expand(a.shape[0], *mesh.shape)


class MLP(nn.Module):
    """W₂ σ(W₁ v) at every grid point.

    Args:
        channels: Channels d of the field.
        hidden: Channels of the hidden layer.
        activation: σ.
        merged: Whether W₁ is part of what comes before, as it can be of a factored kernel.
    """

    def __init__(
        self, channels: int, hidden: int, activation: Activation = "gelu", *, merged: bool = False
    ) -> None:
        super().__init__()
        self.inner = None if merged else Pointwise(channels, hidden)
        self.outer = Pointwise(hidden, channels)
        self.activate = ACTIVATIONS[activation]

    def forward(self, v: Field) -> Field:
        return self.after_inner(v if self.inner is None else self.inner(v))

    def after_inner(self, hidden: Field) -> Field:
        """W₂ σ(·)."""
        return self.outer(self.activate(hidden))


class GLU(nn.Module):
    """σ(W_g v) ⊙ (W_v v) at every grid point."""

    def __init__(self, channels: int, activation: Activation = "gelu") -> None:
        super().__init__()
        self.gate = Pointwise(channels, channels)
        self.value = Pointwise(channels, channels)
        self.activate = ACTIVATIONS[activation]

    def forward(self, v: Field) -> Field:
        return self.activate(self.gate(v)) * self.value(v)


def fused(
    kernel: nn.Module, update: nn.Module
) -> tuple[Callable[[Field], Any], Callable[[Field, Any], Field]]:
    """Two maps: what stands for the kernel, and what adds the update to a field v.

        first, add = fused(kernel, update)          add(v, first(w)) = v + update(kernel(w))

    W₁ of an `MLP` is multiplied into the matrices of a `SpectralKernel` that can absorb it: one
    product less. What follows the convolution of a `FactoredKernel` is pointwise, and is done tile
    by tile. Whoever has hooks on one of the modules counts on its being called with its own field:
    then the two stay as they are.

    Example:
        >>> from sfo.models.kernel_modes import KernelModes, KernelOptions
        >>> kernel, update = SpectralKernel(4, KernelModes(KernelOptions(n_modes=3))), MLP(4, 4)
        >>> first, add = fused(kernel, update)
        >>> v = torch.randn(2, 4, 16)
        >>> first is kernel, torch.allclose(add(v, first(v)), v + update(kernel(v)), atol=1e-5)
        (False, True)
    """
    if isinstance(update, MLP) and not is_observed(kernel) and not is_observed(update):
        inner = update.inner
        if isinstance(kernel, SpectralKernel) and inner is not None:
            if kernel.can_absorb(inner) and not is_observed(inner):
                return partial(kernel, inner=inner), partial(_added, update.after_inner)
        elif isinstance(kernel, FactoredKernel) and inner is None:
            return partial(_convolved, kernel), partial(_mixed_and_added, kernel, update)
    return kernel, partial(_added, update)


def _added(update: Callable[[Field], Field], v: Field, y: Field) -> Field:
    return v + update(y)


def _convolved(kernel: FactoredKernel, w: Field) -> tuple[Field, Field]:
    return kernel.convolved(w), w


def _mixed_and_added(
    kernel: FactoredKernel, update: MLP, v: Field, convolved: tuple[Field, Field]
) -> Field:
    return in_tiles(
        lambda v, y, w: v + update.after_inner(kernel.mixed(y, w)),
        v,
        *convolved,
        modules=(update.outer, kernel.mix_out),
    )


def projection(hidden_channels: int, width: int | None, out_channels: int) -> nn.Module:
    """Q: a pointwise linear map, or one with a hidden layer."""
    if width is None:
        return Pointwise(hidden_channels, out_channels)
    return two_layers(hidden_channels, width, out_channels)
