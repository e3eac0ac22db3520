"""The Kuramoto–Sivashinsky equation: growth, balance, symmetry, and the rate of its chaos."""

import math

import numpy as np
import pytest
import torch

from sfo.pdes import KuramotoSivashinsky
from sfo.pdes.derivative import Spectral
from sfo.registry import BENCHMARKS

PDE = KuramotoSivashinsky()


def wave(n, number=1):
    x = PDE.grid(n).coordinates()[0]
    return torch.sin(2 * math.pi * number / PDE.length * x)[None, None]


def state(n=256, samples=2):
    """States on the attractor, as the benchmark starts from."""
    kind = BENCHMARKS["kuramoto_sivashinsky"]
    return torch.stack([kind.initial(0, i, PDE.grid(n)) for i in range(samples)])


def relative(u, exact):
    return ((u - exact).norm() / exact.norm()).item()


@pytest.mark.parametrize("number", [1, 7, 10, 14])
def test_small_waves_grow_at_their_rate(number):
    """σ(k) = k² − k⁴: growing up to k = 1, decaying beyond."""
    k = 2 * math.pi * number / 64
    frames = PDE.solve(1e-7 * wave(128, number), [0.0, 1.0])
    growth = float(frames[0, 1, 0] @ wave(128, number)[0, 0]) / (1e-7 * 64)
    assert math.log(growth) == pytest.approx(k**2 - k**4, abs=1e-6)


def test_the_mean_is_kept():
    frames = PDE.solve(state() + 0.2, [0.0, 5.0, 10.0])
    means = frames.mean(dim=(2, 3))
    assert (means - means[:, :1]).abs().max() < 1e-13


def test_energy_is_balanced():
    """d/dt mean(u²)/2 = mean(u_x²) − mean(u_xx²), the first by a sixth-order difference."""
    dt = 0.02
    times = [0.0, *(1 + dt * np.arange(-3, 4))]
    frames = PDE.solve(state(), times, max_step=dt / 4)[:, 1:, 0]
    weights = torch.tensor([-1, 9, -45, 0, 45, -9, 1], dtype=torch.float64) / (60 * dt)
    rate = (frames.square().mean(-1) / 2) @ weights
    d, u = Spectral((256,), PDE.lengths), frames[:, 3]
    balance = d(u, 1).square().mean(-1) - d(u, 2).square().mean(-1)
    torch.testing.assert_close(rate, balance, rtol=0, atol=1e-8)


def test_a_solution_obeys_its_equation():
    dt = 0.02
    frames = PDE.solve(state(), [0.0, *(1 + dt * np.arange(-3, 4))], max_step=dt / 4)[:, 1:, 0]
    weights = torch.tensor([-1, 9, -45, 0, 45, -9, 1], dtype=torch.float64) / (60 * dt)
    rate = torch.einsum("t,btn->bn", weights, frames)
    assert relative(rate, PDE.rhs(frames[:, 3])) < 1e-6


def test_mirrored_and_moving_states_behave_alike():
    """−u(−x), and u + c carried along by c for one whole period."""
    start = state(128)
    frames = PDE.solve(start, [0.0, 4.0])[:, 1]
    mirrored = PDE.solve(-start.flip(-1).roll(1, -1), [0.0, 4.0])[:, 1]
    torch.testing.assert_close(-mirrored.flip(-1).roll(1, -1), frames, rtol=0, atol=1e-10)
    moving = PDE.solve(start + 16, [0.0, 4.0], max_step=2e-3)[:, 1] - 16
    assert relative(moving, frames) < 1e-5


def test_the_error_falls_with_the_fourth_power_of_the_step():
    """On few waves: on many, stiffness lowers the order a little."""
    start = wave(32, 3) + 0.5 * wave(32, 7)
    exact = PDE.solve(start, [0.0, 2.0], max_step=0.1 / 32)
    errors = [(PDE.solve(start, [0.0, 2.0], max_step=0.1 / r) - exact).norm() for r in (1, 2, 4)]
    assert math.log2(errors[0] / errors[1]) > 3.8
    assert math.log2(errors[1] / errors[2]) > 3.8


def test_steps_and_points_are_enough_for_the_whole_benchmark():
    """To 1e-5 at its end, although errors grow sixfold until then."""
    start = state(512)
    frames = PDE.solve(start, [0.0, 10.0, 20.0])
    finer = PDE.solve(start, [0.0, 10.0, 20.0], max_step=PDE.max_step / 2)
    assert relative(frames[:, 2], finer[:, 2]) < 1e-5
    assert relative(PDE.solve(start[..., ::2], [0.0, 20.0])[:, 1], frames[:, 2, :, ::2]) < 1e-6


def test_the_benchmark_starts_on_the_attractor():
    """Its energy at t = 0 is that of much later times, and has forgotten the Gaussian field."""
    start = state(128, samples=12)
    later = PDE.solve(start, [0.0, 60.0], max_step=0.1)[:, 1]
    assert float(start.std()) == pytest.approx(float(later.std()), rel=0.1)
    short = BENCHMARKS["kuramoto_sivashinsky"].with_options(transient=0.0)
    assert short.initial(0, 0, PDE.grid(128)).std() < 1.5


@pytest.mark.slow
def test_nearby_states_part_at_the_lyapunov_exponent():
    """0.088 at this length: 11 units of time, so that 20 are less than two Lyapunov times."""
    u = state(128, samples=16)
    size, logs = 1e-7, []
    v = u + size * torch.randn(u.shape, generator=torch.Generator().manual_seed(0)).double()
    for _ in range(60):
        u, v = (PDE.solve(start, [0.0, 5.0], max_step=0.1)[:, 1] for start in (u, v))
        apart = (v - u).square().mean((1, 2), keepdim=True).sqrt()
        logs.append(torch.log(apart / size).mean().item())
        v = u + (v - u) * size / apart
    assert np.mean(logs[10:]) / 5 == pytest.approx(0.088, abs=0.008)
