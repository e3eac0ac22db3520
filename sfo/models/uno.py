"""The U-shaped Neural Operator (UNO)."""

from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar, Literal

import torch
from torch import nn
from torch.nn import functional as F

from sfo.checks import check_at_least, check_choice
from sfo.models.blocks import Lift, Pointwise
from sfo.models.fno import for_each_axis
from sfo.models.operator import Operator, split_components
from sfo.models.presets import ONE_AXIS
from sfo.models.spectral_conv import FourierModes, SpectralConv, low_pass, pad
from sfo.models.uno_upstream import OverlappingConv, cut_spectrum
from sfo.registry import MODELS
from sfo.shapes import Field

Norm = Literal["inner", "all", None]


class UNOBlock(nn.Module):
    """σ(N(K v + W v + b)), from one grid to another.

    The spectral convolution K writes to the new grid directly, W v + b is interpolated. With
    `upstream`, both in three dimensions as `uno_upstream` has them.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_modes: Sequence[int],
        norm: bool,
        upstream: bool = False,
    ) -> None:
        super().__init__()
        self.upstream = upstream
        self.skip = Pointwise(in_channels, out_channels)
        convolution = OverlappingConv if upstream else SpectralConv
        self.spectral = convolution(in_channels, out_channels, FourierModes(n_modes))
        nn.init.normal_(self.spectral.weight, std=(2 * in_channels) ** -0.5)
        # A group for each channel: InstanceNorm on any number of axes.
        self.norm = nn.GroupNorm(out_channels, out_channels) if norm else nn.Identity()

    def forward(self, v: Field, shape: Sequence[int]) -> Field:
        if self.upstream and len(shape) == 3:
            # There the bias is spread over the grid before the frequencies are cut.
            local = cut_spectrum(self.skip(v), shape)
            return F.gelu(self.norm(self.spectral(v, shape) + local))
        # Interpolation and pointwise maps commute: both on the smaller of the two grids.
        if prod(shape) < prod(v.shape[2:]):
            local = self.skip(resample(v, shape))
        else:
            local = resample(self.skip(v), shape)
        return F.gelu(self.norm(self.spectral(v, shape) + local))


@MODELS.register("uno")
class UNO(Operator):
    """An FNO that works on coarser grids in its middle, with more channels there.

        v₀ = P(a, x)     v₁ = B₁(v₀) on n/2     v₂ = B₂(v₁) on n/4     v₃ = B₃(v₂) on n/4
        v₄ = B₄(v₃) on n/2     v₅ = B₅(v₄, v₁) on n     u = Q(v₅, v₀)
        B(v) = σ(N(K v + W v + b))

    with d, 2d, 4d, 4d, 2d and d channels in v₀, …, v₅, spectral convolutions K (see `FNO`) and
    σ = GELU (Rahman et al., "U-NO: U-shaped Neural Operators", 2023). From grid to grid, W v is
    interpolated linearly on one axis, by cubic splines with antialiasing on two, and linearly
    on three, there without the frequencies that the new grid does not have. In all of these the
    end points of the grids coincide. The defaults are those of the SFO paper's baseline in one
    dimension.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes, at most 3.
        n_modes: Frequencies along an axis for each of the five blocks, a number or one for each
            axis, counted as in `FNO`. A grid that has fewer uses those it has.
        hidden_channels: Latent channels d.
        padding: Zeros that are appended at the far end of every axis, a number or one for each.
        norm: Instance normalisation N with learned scale and shift, in the blocks `"inner"` (B₂
            and B₄) or `"all"`, or None.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.
        upstream: Compute as PDENNEval's code does, oversights included: overlapping modes are
            written one over the other, and in three dimensions the pointwise path changes grids
            with wrong frequencies and a wrong factor, see `sfo.models.uno_upstream`.

    Example:
        >>> model = UNO.from_paper("shallow_water")
        >>> sum(p.numel() for p in model.parameters())  # a complex weight counts once
        5984051
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        # The paper's table says 1,097,051. No choice of modes that fits 256 points gives that at
        # this width: these settings have 109,051 parameters, 109,571 with norm="all".
        **{name: dict(norm=None) for name in ONE_AXIS},
        "shallow_water": dict(n_modes=(17, 7, 7, 7, 17), hidden_channels=30, padding=6),
        # The paper's count tells how many modes a block has, not their split among the axes; and
        # they are more than its grids of 18 and 9 points have frequencies. On 32³ points, 28.5
        # million of the 90.1 million spectral weights are in use.
        "maxwell": dict(
            n_modes=((16, 16, 9), (8, 8, 4), (8, 8, 4), (8, 8, 4), (16, 16, 9)),
            hidden_channels=32,
            padding=5,
            coordinates=False,
        ),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        n_modes: Sequence[int | Sequence[int]] = (11, 5, 5, 5, 11),
        hidden_channels: int = 20,
        padding: int | Sequence[int] = 9,
        norm: Norm = "inner",
        coordinates: bool = True,
        components: int = 1,
        upstream: bool = False,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("norm", norm, Norm)
        if not 1 <= n_dim <= 3:
            raise ValueError(f"`n_dim` must be 1, 2 or 3, got {n_dim}.")
        check_at_least(2, hidden_channels=hidden_channels)
        if len(n_modes) != 5:
            raise ValueError(
                f"`n_modes` must have five entries, one for each block, got {n_modes}."
            )
        modes = [for_each_axis("n_modes", m, n_dim, at_least=1) for m in n_modes]
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        super().__init__(in_channels, out_channels, n_dim, components=components)
        d = hidden_channels
        self.lift = nn.Sequential(
            Lift(channels_in, d // 2, n_dim, coordinates=coordinates),
            nn.GELU(),
            Pointwise(d // 2, d),
            nn.GELU(),
        )
        widths = ((d, 2 * d), (2 * d, 4 * d), (4 * d, 4 * d), (4 * d, 2 * d), (4 * d, d))
        self.blocks = nn.ModuleList(
            UNOBlock(
                *width,
                m,
                norm=norm == "all" or (norm == "inner" and block in (1, 3)),
                upstream=upstream,
            )
            for block, (width, m) in enumerate(zip(widths, modes, strict=True))
        )
        self.project = nn.Sequential(Pointwise(2 * d, d), nn.GELU(), Pointwise(d, channels_out))
        self.padding = for_each_axis("padding", padding, n_dim)
        self.arguments = {
            **arguments,
            "n_modes": [list(m) for m in modes],
            "padding": list(self.padding),
        }

    def options(self) -> dict[str, Any]:
        return {name: self.arguments[name] for name in ("padding", "upstream")}

    def operate(self, a: Field) -> Field:
        v0 = pad(self.lift(a), self.padding)
        full = v0.shape[2:]
        half, quarter = [n // 2 for n in full], [n // 4 for n in full]
        if min(quarter) < 1:
            raise ValueError(
                f"The grid must have at least 4 points along each axis, with the padding of "
                f"{self.padding}, got {tuple(a.shape[2:])}."
            )
        b1, b2, b3, b4, b5 = self.blocks
        v1 = b1(v0, half)
        v4 = b4(b3(b2(v1, quarter), quarter), half)
        v5 = b5(torch.cat([v4, v1], dim=1), full)
        v = pad(torch.cat([v5, v0], dim=1), [-n for n in self.padding])
        return self.project(v)


def resample(v: Field, shape: Sequence[int]) -> Field:
    """Interpolate a field to another grid between the same end points.

    Example:
        >>> resample(torch.tensor([[[0.0, 2.0, 4.0]]]), [5])
        tensor([[[0., 1., 2., 3., 4.]]])
    """
    n_dim = v.ndim - 2
    if n_dim == 3:
        v = low_pass(v, [n // 2 for n in shape])
    if v.shape[2:] == tuple(shape):
        return v
    mode = ("linear", "bicubic", "trilinear")[n_dim - 1]
    # Antialiasing knows no half precision.
    single = v.to(torch.promote_types(v.dtype, torch.float32))
    out = F.interpolate(single, list(shape), mode=mode, align_corners=True, antialias=n_dim == 2)
    return out.to(v.dtype)
