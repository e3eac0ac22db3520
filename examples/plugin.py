"""A plugin: an equation, a model, a basis and a study of your own, in one file.

sfo train --benchmark advection --model convnet --plugin examples/plugin.py --out runs/mine
sfo train --benchmark advection --model sfo --model.basis cosine --plugin examples/plugin.py
sfo reproduce drift --plugin examples/plugin.py --out results/drift
sfo report results/drift --plugin examples/plugin.py
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from sfo import BASES, BENCHMARKS, MODELS, STUDIES, Grid
from sfo.data.benchmarks import Benchmark, Scale, sample_rng
from sfo.experiments import Cell
from sfo.training import Experiment


@dataclass(frozen=True)
class Advection(Benchmark):
    """∂u/∂t + c ∂u/∂x = ν ∂²u/∂x² on a circle, solved exactly, frequency by frequency."""

    name: ClassVar[str] = "advection"
    title: ClassVar[str] = "1D advection–diffusion"
    layout: ClassVar = "tensor"
    scales: ClassVar = {
        "smoke": Scale(samples=24, n=64, frames=6),
        "desk": Scale(samples=400, n=256, frames=21),
    }
    c: float = 1.0
    nu: float = 1e-3

    def grid(self, scale: Scale) -> Grid:
        return Grid((scale.n,), (0.0,), (1.0,))

    def solve(self, seed: int, ids: Sequence[int], scale: Scale) -> tuple[Tensor, None]:
        k = 2 * math.pi * torch.arange(scale.n // 2 + 1, dtype=torch.float64)
        noise = [torch.from_numpy(sample_rng(seed, i).normal(size=scale.n)) for i in ids]
        start = torch.fft.rfft(torch.stack(noise)) / (1 + (k / 20) ** 2)
        t = torch.tensor(self.times(scale), dtype=torch.float64)[:, None, None]
        growth = torch.exp(t * (-self.nu * k**2 - 1j * self.c * k))
        return torch.fft.irfft(start[:, None, None] * growth, n=scale.n), None


BENCHMARKS.register(Advection.name)(Advection())


@MODELS.register("convnet")
class ConvNet(nn.Module):
    """Convolutions on a line: any module that maps (batch, channel, *grid) to the same grid."""

    def __init__(self, in_channels: int, out_channels: int, n_dim: int = 1, width: int = 32):
        super().__init__()
        if n_dim != 1:
            raise ValueError(f"`n_dim` must be 1, got {n_dim}.")
        around = dict(kernel_size=15, padding=7, padding_mode="circular")
        self.first = nn.Conv1d(in_channels, width, **around)
        self.second = nn.Conv1d(width, out_channels, **around)

    def forward(self, a: Tensor) -> Tensor:
        return self.second(torch.nn.functional.gelu(self.first(a)))


@BASES.register("cosine")
def cosine_modes(n: int, n_modes: int) -> Tensor:
    """φₗ(j) ∝ cos(π l (j + 1/2) / n), the rows of the discrete cosine transform."""
    row, j = torch.arange(n_modes, dtype=torch.float64), torch.arange(n, dtype=torch.float64)
    phi = torch.cos(math.pi * row[:, None] * (j + 0.5) / n)
    return phi / phi.norm(dim=1, keepdim=True)


@STUDIES.register("drift")
def drift(scale: str, seeds: int) -> list[Cell]:
    """Two models on advection–diffusion, %"""
    runs = {name: Experiment.of("advection", name, scale=scale) for name in ("sfo", "convnet")}
    return [Cell("advection", name, run, seeds) for name, run in runs.items()]
