"""Burgers' equation against Cole and Hopf, and what it keeps."""

import math

import numpy as np
import pytest
import torch

from sfo.pdes import Burgers
from sfo.pdes.gaussian_fields import periodic_gaussian
from sfo.registry import BENCHMARKS


def wave(pde, n):
    x = pde.grid(n).coordinates()[0]
    return torch.sin(2 * math.pi * x)[None, None]


def random(pde, n, samples=2):
    """Initial fields of the benchmark."""
    kind = BENCHMARKS["burgers"]
    return torch.stack([kind.initial(0, i, pde.grid(n)) for i in range(samples)])


def relative(u, exact):
    return ((u - exact).norm() / exact.norm()).item()


def cole_hopf(u, nu, t):
    """u = −2ν φ′/φ, where φ = exp(−∫u/2ν) diffuses; on a unit period, for u without a mean."""
    n = u.shape[-1]
    k = 2j * math.pi * torch.arange(n // 2 + 1, dtype=torch.float64)
    u_hat = torch.fft.rfft(u)
    integral = torch.fft.irfft(torch.where(k == 0, 0, u_hat / k), n=n)
    phi_hat = torch.exp(nu * (k**2).real * t) * torch.fft.rfft(torch.exp(-integral / (2 * nu)))
    return -2 * nu * torch.fft.irfft(k * phi_hat, n=n) / torch.fft.irfft(phi_hat, n=n)


@pytest.mark.parametrize(("nu", "bound"), [(0.1, 1e-12), (0.03, 2e-11)])
def test_cole_and_hopf_agree(nu, bound):
    """Through the formation of a shock, to near machine precision."""
    pde, times = Burgers(nu=nu), [0.0, 0.1, 0.2, 0.5]
    frames = pde.solve(wave(pde, 256), times, max_step=2.5e-4)
    for frame, t in zip(frames[0, :, 0], times, strict=True):
        assert (frame - cole_hopf(wave(pde, 256)[0, 0], nu, t)).abs().max() < bound


def test_cole_and_hopf_agree_on_random_fields_at_the_default_steps():
    pde = Burgers(nu=0.05)
    start = random(pde, 256)
    frames = pde.solve(start, [0.0, 0.3])
    assert relative(frames[:, 1, 0], cole_hopf(start[:, 0], 0.05, 0.3)) < 1e-8


def test_the_error_falls_with_the_fourth_power_of_the_step():
    pde, step = Burgers(nu=0.05), 0.01
    exact = cole_hopf(wave(pde, 64)[0, 0], 0.05, 10 * step)
    errors = [
        (pde.solve(wave(pde, 64), [0.0, 10 * step], max_step=step / r)[0, 1, 0] - exact).norm()
        for r in (1, 2, 4)
    ]
    assert math.log2(errors[0] / errors[1]) > 3.5
    assert math.log2(errors[1] / errors[2]) > 3.8


def test_the_error_falls_faster_than_any_power_of_the_spacing():
    """Twice the points square the error, while waves are what limits it."""
    pde, exact = Burgers(nu=0.05), cole_hopf(wave(Burgers(), 512)[0, 0], 0.05, 0.3)
    errors = [
        relative(pde.solve(wave(pde, n), [0.0, 0.3], max_step=5e-4)[0, 1, 0], exact[:: 512 // n])
        for n in (16, 32, 64)
    ]
    assert errors[1] < errors[0] ** 1.6
    assert errors[2] < errors[1] ** 1.6


def test_the_mean_is_kept_and_the_extremes_do_not_grow():
    pde = Burgers()
    start = random(pde, 1024, 4) + 0.3
    frames = pde.solve(start, np.linspace(0, 0.2, 5))
    means = frames.mean(dim=(2, 3))
    assert (means - means[:, :1]).abs().max() < 1e-14
    assert (frames.amax(dim=(2, 3)).diff(dim=1) < 1e-6).all()
    assert (frames.amin(dim=(2, 3)).diff(dim=1) > -1e-6).all()


def test_energy_is_lost_to_viscosity():
    """d/dt mean(u²)/2 = −ν mean(u_x²), the first by a central difference."""
    pde, dt = Burgers(), 1e-4
    frames = pde.solve(random(pde, 1024), [0, 0.05 - dt, 0.05, 0.05 + dt], max_step=5e-5)[:, 1:, 0]
    rate = (frames[:, 2].square() - frames[:, 0].square()).mean(-1) / (4 * dt)
    slope = torch.gradient(frames[:, 1], spacing=1 / 1024, dim=-1)[0][:, 1:-1]
    torch.testing.assert_close(rate, -pde.nu * slope.square().mean(-1), rtol=5e-3, atol=0)


def test_a_moving_observer_sees_the_same():
    """u + c solves it too, carried along by c: by a whole period when c t = 1."""
    pde = Burgers(nu=0.03)
    still, moving = (pde.solve(wave(pde, 128) + c, [0.0, 0.5])[0, 1, 0] for c in (0.0, 2.0))
    torch.testing.assert_close(moving - 2, still, rtol=0, atol=1e-6)


def test_the_benchmarks_steps_and_points_are_enough():
    """To 1e-6 on shocks of the benchmark: a quarter of the step, four times the points."""
    pde, times = Burgers(), [0.0, 0.1, 0.3]
    frames = pde.solve(random(pde, 1024), times)
    assert relative(frames, pde.solve(random(pde, 1024), times, max_step=2.5e-4)) < 1e-7
    grid = pde.grid(2048)
    fine = [
        periodic_gaussian(np.random.default_rng([0, i]), grid, sigma=25.0, tau=5.0, alpha=2.0)
        for i in range(2)
    ]
    finer = pde.solve(torch.stack(fine), times)[..., ::2]
    assert relative(frames[:, 1:], finer[:, 1:]) < 1e-7
