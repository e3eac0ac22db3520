"""2D Navier–Stokes against Taylor and Green, its balances, and itself on finer grids."""

import math

import numpy as np
import pytest
import torch

from sfo.pdes import NavierStokes
from sfo.registry import BENCHMARKS

FREE = NavierStokes(forcing=0.0)


def random(n, samples=1, size=1.0):
    """Initial vorticities of the benchmark."""
    kind = BENCHMARKS["navier_stokes"]
    grid = FREE.grid(n)
    return size * torch.stack([kind.initial(0, i, grid) for i in range(samples)])


def relative(u, exact):
    return ((u - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("n", [16, 15])
def test_the_vortices_of_taylor_and_green_decay(n):
    """w = cos(kx) cos(ky) exp(−2νk²t), whose advection vanishes."""
    pde, k = NavierStokes(viscosity=0.01, forcing=0.0), 4 * math.pi
    x, y = pde.grid(n).mesh()
    vortices = torch.cos(k * x) * torch.cos(k * y)
    times = [0.0, 0.3, 1.0]
    for frame, t in zip(pde.solve(vortices[None, None], times)[0, :, 0], times, strict=True):
        exact = math.exp(-2 * 0.01 * k**2 * t) * vortices
        torch.testing.assert_close(frame, exact, rtol=0, atol=1e-13)


def test_taylor_and_greens_vortices_in_a_stream_of_their_own():
    """w = 2k² sin(kx) sin(ky)/k + a shear across: v and pressure close, as the paper of 1937."""
    pde, k = NavierStokes(viscosity=0.02, forcing=0.0), 2 * math.pi
    x, y = pde.grid(16).mesh()
    # Any sum of waves of one length is carried nowhere, because w is a function of ψ.
    w = torch.cos(k * x) + 0.5 * torch.sin(k * y) - 0.3 * torch.cos(k * y)
    after = pde.solve(w[None, None], [0.0, 0.7])[0, 1, 0]
    torch.testing.assert_close(after, math.exp(-0.02 * k**2 * 0.7) * w, rtol=0, atol=1e-13)


def test_from_rest_the_forcing_drives_a_shear():
    """w = f (1 − exp(−νk²t))/(νk²) with k² = 2 (2π)²: the flow that forcing alone would have."""
    pde, rate = NavierStokes(), 1e-3 * 8 * math.pi**2
    grid = pde.grid(16)
    x, y = grid.mesh()
    f = 0.1 * (torch.sin(2 * math.pi * (x + y)) + torch.cos(2 * math.pi * (x + y)))
    after = pde.solve(torch.zeros(1, 1, 16, 16), [0.0, 3.0])[0, 1, 0]
    torch.testing.assert_close(after, f * -math.expm1(-rate * 3) / rate, rtol=0, atol=1e-12)


def test_the_velocity_has_the_vorticity_and_no_divergence():
    w = random(32)[0, 0]
    d = FREE._derivatives(w)
    vx, vy = FREE.velocity(w, d)
    # The shortest waves of an even grid have no odd derivatives; the field has none of them.
    torch.testing.assert_close(d(vy, 1, 0) - d(vx, 0, 1), w, rtol=0, atol=1e-12)
    assert (d(vx, 1, 0) + d(vy, 0, 1)).abs().max() < 1e-13


def test_without_viscosity_energy_and_enstrophy_are_kept():
    """By the equations, and by the truncated sum of waves that stands for them."""
    pde = NavierStokes(viscosity=0.0, forcing=0.0)
    start = torch.fft.rfft2(random(32, size=4.0))
    m = torch.fft.fftfreq(32, 1 / 32).abs()
    start[..., m > 10, :] = 0
    start[..., 11:] = 0
    frames = pde.solve(torch.fft.irfft2(start), [0.0, 1.0, 2.0], max_step=0.02)[0, :, 0]
    for quantity in (pde.energy, pde.enstrophy):
        value = quantity(frames)
        assert (value / value[0] - 1).abs().max() < 1e-7
    assert relative(frames[2], frames[0]) > 0.5, "the flow must have moved"


def test_viscosity_takes_energy_and_enstrophy():
    """dE/dt = −2νZ and dZ/dt = −2νP, by a central difference."""
    dt = 1e-3
    frames = FREE.solve(random(64, size=4.0), [0.0, 1 - dt, 1.0, 1 + dt])[0, 1:, 0]
    for quantity, loss in ((FREE.energy, FREE.enstrophy), (FREE.enstrophy, FREE.palinstrophy)):
        value = quantity(frames)
        rate = float(value[2] - value[0]) / (2 * dt)
        assert rate == pytest.approx(-2 * 1e-3 * float(loss(frames[1])), rel=1e-5)


def test_the_energy_of_a_shear():
    """v₂ = sin(kx)/k for w = cos(kx): E = 1/4k², Z = 1/4, P = k²/4."""
    k = 6 * math.pi
    w = torch.cos(k * FREE.grid(32).mesh()[0])
    values = [float(q(w)) for q in (FREE.energy, FREE.enstrophy, FREE.palinstrophy)]
    assert values == pytest.approx([1 / (4 * k**2), 1 / 4, k**2 / 4])


def test_the_mean_vorticity_is_kept():
    frames = NavierStokes().solve(random(32) + 0.5, [0.0, 2.0])
    torch.testing.assert_close(frames[0, 1].mean(), frames[0, 0].mean(), rtol=0, atol=1e-14)


def test_a_solution_obeys_its_equation():
    """A sixth-order difference of seven frames in time is rhs of the middle one."""
    pde, dt = NavierStokes(), 0.02
    frames = pde.solve(random(64), [0.0, *(2 + dt * np.arange(-3, 4))], max_step=dt / 2)
    weights = torch.tensor([-1, 9, -45, 0, 45, -9, 1], dtype=torch.float64) / (60 * dt)
    rate = torch.einsum("t,txy->xy", weights, frames[0, 1:, 0])
    assert relative(rate, pde.rhs(frames[0, 4, 0])) < 1e-7


def test_flows_may_be_shifted_and_turned():
    """By half a period along both axes, which the forcing's wave repeats after; and x for y."""
    pde, start = NavierStokes(), random(32, size=3.0)
    after = pde.solve(start, [0.0, 1.0])[:, 1]
    shifted = pde.solve(start.roll((16, 16), (-2, -1)), [0.0, 1.0])[:, 1]
    torch.testing.assert_close(shifted, after.roll((16, 16), (-2, -1)), rtol=0, atol=1e-12)
    turned = FREE.solve(-start.mT, [0.0, 1.0])[:, 1]
    torch.testing.assert_close(turned, -FREE.solve(start, [0.0, 1.0])[:, 1].mT, rtol=0, atol=1e-12)


def test_the_error_falls_with_the_fourth_power_of_the_step():
    start, times = random(32, size=8.0), [0.0, 1.0]
    exact = FREE.solve(start, times, max_step=0.1 / 16)
    errors = [(FREE.solve(start, times, max_step=0.1 / r) - exact).norm() for r in (1, 2, 4)]
    assert math.log2(errors[0] / errors[1]) > 3.7
    assert math.log2(errors[1] / errors[2]) > 3.7


def test_the_benchmarks_steps_and_points_are_enough():
    """To 1e-6: a quarter of the step, and twice the points along each axis."""
    pde, times = NavierStokes(), [0.0, 1.0, 2.0]
    frames = pde.solve(random(64), times)
    quarter = pde.solve(random(64), times, max_step=pde.max_step / 4)
    assert relative(frames, quarter) < 1e-6
    finer = pde.solve(random(128), times)[..., ::2, ::2]
    assert relative(frames[:, 1:], finer[:, 1:]) < 1e-6
