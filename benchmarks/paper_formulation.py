"""SFO as the paper writes it down, with plain torch layers: the reference that ours must beat.

Each layer multiplies the spectrum by every mode, (batch, d, L, *freq), and mixes the products with
Θₗ; norm and update are `nn.LayerNorm` and `nn.Linear` on the field with its channels last.
"""

import torch
from torch import Tensor, nn

from sfo.bases import tied_index, usb_modes
from sfo.models.blocks import coordinates


class PaperLayer(nn.Module):
    """v + W₂ σ(W₁ K(N(v))) with K v = Σₗ Θₗ (φₗ * v), mode by mode."""

    def __init__(self, channels: int, hidden: int, shape: tuple[int, ...], n_modes: int) -> None:
        super().__init__()
        self.shape = shape
        self.axes = tuple(range(-len(shape), 0))
        self.norm = nn.LayerNorm(channels)
        self.theta = nn.Parameter(torch.empty(n_modes, channels, channels))
        nn.init.uniform_(self.theta, -1 / channels, 1 / channels)
        self.update = nn.Sequential(
            nn.Linear(channels, hidden), nn.GELU(), nn.Linear(hidden, channels)
        )
        phi = tied_index([usb_modes(n, n_modes) for n in shape]).float()
        self.register_buffer("phi_hat", torch.fft.rfftn(phi, dim=self.axes))

    def forward(self, v: Tensor) -> Tensor:
        x = self.norm(v.movedim(1, -1)).movedim(-1, 1)
        v_hat = torch.fft.rfftn(x, dim=self.axes)
        filtered = v_hat[:, :, None] * self.phi_hat
        s_hat = torch.einsum("bjl...,lij->bi...", filtered, self.theta.to(filtered.dtype))
        s = torch.fft.irfftn(s_hat, s=self.shape, dim=self.axes)
        return v + self.update(s.movedim(1, -1)).movedim(-1, 1)


class PaperSFO(nn.Module):
    """The whole model: lift, four layers, project."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        shape: tuple[int, ...],
        n_modes: int,
        hidden_channels: int,
    ) -> None:
        super().__init__()
        d, n_dim = hidden_channels, len(shape)
        size = 1 if n_dim == 1 else 5
        self.lift = nn.Sequential(
            (nn.Conv1d, nn.Conv2d, nn.Conv3d)[n_dim - 1](
                in_channels + n_dim, d, size, padding=size // 2, padding_mode="circular"
            ),
            nn.GroupNorm(8, d),
        )
        hidden = d if n_dim == 1 else 2 * d
        self.layers = nn.Sequential(*[PaperLayer(d, hidden, shape, n_modes) for _ in range(4)])
        self.project = nn.Linear(d, out_channels)

    def forward(self, a: Tensor) -> Tensor:
        return self.project(
            self.layers(self.lift(torch.cat([a, coordinates(a)], dim=1))).movedim(1, -1)
        ).movedim(-1, 1)
