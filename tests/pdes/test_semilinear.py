"""Equations of any order, dimension and number of channels, against closed forms."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from sfo.pdes.base import Semilinear
from sfo.pdes.derivative import Derivatives


@dataclass(frozen=True)
class KortewegDeVries(Semilinear):
    """∂u/∂t = −∂³u/∂x³ + 6 u ∂u/∂x: an odd order, whose symbol is imaginary."""

    lower: float = -15.0
    upper: float = 15.0
    max_step: float = 1e-3

    def linear(self, u, d: Derivatives):
        return -d(u, 3)

    def reaction(self, u, d: Derivatives):
        return 6 * u * d(u, 1)


@dataclass(frozen=True)
class Oblique(Semilinear):
    """∂u/∂t = ∂²u/∂x² + ∂²u/∂y² + c ∂²u/∂x∂y − (a · ∇)u + s(x): all mixed, with a source."""

    c: float = 0.7
    lower: tuple = (0.0, -1.0)
    upper: tuple = (2.0, 2.0)
    max_step: float = 0.01
    n_dim: ClassVar[int] = 2

    def linear(self, u, d):
        return d.laplacian(u) + self.c * d(u, 1, 1) - 2 * d(u, 1, 0) - d(u, 0, 1)

    def reaction(self, u, d):
        return torch.zeros_like(u)

    def source(self, grid):
        return 0.5 * torch.cos(math.pi * grid.mesh()[0])


@dataclass(frozen=True)
class Rotation(Semilinear):
    """u turns into v and back in 3D while both diffuse, each with a constant of its own."""

    lower: float = 0.0
    upper: float = 2 * math.pi
    max_step: float = 0.01
    n_dim: ClassVar[int] = 3
    names: ClassVar[tuple[str, ...]] = ("u", "v")
    coupled: bool = False

    def linear(self, w, d):
        u, v = w.unbind(-4)
        other = 0.1 * v if self.coupled else 0 * v
        return torch.stack([0.1 * d.laplacian(u) + other, 0.1 * d.laplacian(v)], dim=-4)

    def reaction(self, w, d):
        u, v = w.unbind(-4)
        return torch.stack([-2 * v, 2 * u], dim=-4)


def test_a_soliton_keeps_its_form():
    """u = −c/2 sech²(√c/2 (x − ct)) solves the equation on the line."""
    pde, c = KortewegDeVries(), 6.0
    x = pde.grid(256).coordinates()[0]

    def soliton(t):
        return -c / 2 / torch.cosh(math.sqrt(c) / 2 * (x + 4 - c * t)) ** 2

    frames = pde.solve(soliton(0.0)[None, None], [0.0, 0.5, 1.0])
    for frame, t in zip(frames[0, :, 0], (0.0, 0.5, 1.0), strict=True):
        torch.testing.assert_close(frame, soliton(t), rtol=0, atol=5e-7)


def test_mixed_derivatives_and_a_source_in_a_box():
    """exp(λt) with λ of the wave; the source's part tends to its steady state."""
    pde = Oblique()
    x, y = pde.grid((16, 12)).mesh()
    kx, ky = math.pi, 2 * math.pi / 3
    decay, speed = kx**2 + ky**2 + 0.7 * kx * ky, 2 * kx + ky
    t = 0.05
    frames = pde.solve(torch.sin(kx * x + ky * y)[None, None], [0.0, t])[0, :, 0]
    wave = math.exp(-decay * t) * torch.sin(kx * x + ky * y - speed * t)
    # ∂p/∂t = p″ − 2p′ + cos(πx)/2 from 0: the real part of ½ e^{iπx} (e^{zt} − 1)/z.
    z = torch.tensor(complex(-(kx**2), -2 * kx), dtype=torch.complex128)
    forced = (0.5 * (torch.exp(z * t) - 1) / z * torch.exp(1j * kx * x)).real
    torch.testing.assert_close(frames[1], wave + forced, rtol=0, atol=1e-12)


def test_two_channels_in_three_dimensions():
    """(u, v) turns by 2t while its wave decays by exp(−0.1 k² t)."""
    pde = Rotation()
    x, y, z = pde.grid(8).mesh()
    wave = torch.sin(x + 2 * y - z)
    start = torch.stack([wave, 0 * wave])[None]
    u, v = pde.solve(start, [0.0, 0.5])[0, 1]
    decay = math.exp(-0.1 * 6 * 0.5)
    torch.testing.assert_close(u, decay * math.cos(1.0) * wave, rtol=0, atol=1e-8)
    torch.testing.assert_close(v, decay * math.sin(1.0) * wave, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("pde", "shape"), [(KortewegDeVries(), (64,)), (Oblique(), (16, 12)), (Rotation(), (8, 8, 8))]
)
def test_the_residual_of_a_solution_falls_with_the_distance_of_its_frames(pde, shape):
    """Any equation that is stated can be trained on: its residual needs nothing else."""
    grid = pde.grid(shape)
    phase = sum(
        2 * math.pi / length * x for length, x in zip(pde.lengths, grid.mesh(), strict=True)
    )
    start = torch.stack([0.3 * torch.sin(phase + c) for c in range(len(pde.names))])[None]
    left = []
    for span in (0.02, 0.01):
        times = torch.tensor([0.0, 0.1, 0.1 + span, 0.1 + 2 * span], dtype=torch.float64)
        frames = pde.solve(start, times, max_step=2e-3)[:, 1:]
        residual, size = pde.residual(frames, given={}, grid=grid, times=times[1:])
        left.append(float(residual[:, 0].norm() / size.norm()))
    assert left[0] < 0.02
    assert 5 < left[0] / left[1] < 9.5


def test_channels_that_the_linear_part_couples_are_named():
    with pytest.raises(
        ValueError, match=r"`linear` of Rotation .* effect of v on another .*reaction"
    ):
        Rotation(coupled=True).solve(torch.zeros(1, 2, 4, 4, 4), [0.0, 1.0])
