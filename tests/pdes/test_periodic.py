"""Allen–Cahn, diffusion–reaction and Cahn–Hilliard against what is known of their solutions."""

import math

import numpy as np
import pytest
import torch

from sfo.pdes import AllenCahn, CahnHilliard, DiffusionReaction
from sfo.pdes.derivative import Spectral
from sfo.pdes.initial import normalised_waves, sum_of_waves

PDES = [AllenCahn(), DiffusionReaction(), CahnHilliard()]
BY_NAME = dict(ids=lambda pde: type(pde).__name__)
TIMES = np.linspace(0, 1, 11)


def axis(pde, n):
    return pde.grid(n).coordinates()[0]


def wave(pde, n, number=1):
    return torch.sin(2 * math.pi * number / pde.length * (axis(pde, n) - pde.lower))


def constant(values, n=16):
    return torch.tensor(values, dtype=torch.float64)[:, None, None].expand(-1, 1, n)


def standard(pde, n, samples=2):
    """Initial fields of the benchmarks; for diffusion–reaction, steep ones among them."""
    rng = np.random.default_rng(4)
    draw = normalised_waves if isinstance(pde, DiffusionReaction) else sum_of_waves
    fields = torch.stack([draw(rng, pde.grid(n)) for _ in range(20 * samples)])
    steepest = fields.diff(dim=-1).abs().amax(dim=(1, 2)).argsort(descending=True)
    return fields[steepest[:samples]]


def relative(u, exact):
    return ((u - exact).norm() / exact.norm()).item()


def test_allen_cahn_without_space_is_the_cubic_equation():
    """u = u₀ e^(5t) / √(1 + u₀² (e^(10t) − 1))."""
    start = constant([-1.7, -0.3, 1e-3, 0.5, 1.0, 2.0])
    u0, t = start[:, None], torch.from_numpy(TIMES)[:, None, None]
    exact = u0 * torch.exp(5 * t) / torch.sqrt(1 + u0**2 * torch.expm1(10 * t))
    assert (AllenCahn().solve(start, TIMES, max_step=1e-3) - exact).abs().max() < 3e-9


def test_diffusion_reaction_without_space_is_logistic():
    """u = u₀ e^t / (1 − u₀ + u₀ e^t)."""
    start = constant([0.0, 0.01, 0.5, 0.9, 1.0])
    u0, t = start[:, None], torch.from_numpy(TIMES)[:, None, None]
    exact = u0 * torch.exp(t) / (1 - u0 + u0 * torch.exp(t))
    assert (DiffusionReaction().solve(start, TIMES) - exact).abs().max() < 1e-10


def test_without_reaction_waves_decay():
    """exp(−ν k² t), on cell centres."""
    pde = DiffusionReaction(nu=0.05, rho=0.0)
    frames = pde.solve(wave(pde, 32, 3)[None, None], TIMES)
    decay = torch.exp(-0.05 * (6 * math.pi) ** 2 * torch.from_numpy(TIMES))
    torch.testing.assert_close(frames[0, :, 0], decay[:, None] * wave(pde, 32, 3))


@pytest.mark.parametrize("number", [5, 20, 40])
def test_small_waves_grow_at_the_rate_of_cahn_hilliard(number):
    """σ(k) = 0.01 k² − 1e-6 k⁴, positive and negative."""
    pde, k = CahnHilliard(), math.pi * number
    frames = pde.solve(1e-6 * wave(pde, 128, number)[None, None], [0.0, 0.1])
    growth = (frames[0, 1, 0] @ wave(pde, 128, number)) / (1e-6 * 64)
    assert math.log(growth) / 0.1 == pytest.approx(1e-2 * k**2 - 1e-6 * k**4, rel=1e-7)


def test_cahn_hilliard_keeps_its_mean():
    pde = CahnHilliard()
    frames = pde.solve(standard(pde, 512) + 0.1, [0, 0.05, 0.1])
    means = frames.mean(dim=(2, 3))
    assert (means - means[:, :1]).abs().max() < 1e-12


def test_the_mean_of_diffusion_reaction_grows_as_its_reaction():
    """d/dt mean(u) = mean(u (1 − u)), by a central difference."""
    pde, dt = DiffusionReaction(), 1e-4
    frames = pde.solve(standard(pde, 256, 1), [0, 0.02 - dt, 0.02, 0.02 + dt])
    _, before, now, after = frames[0, :, 0]
    change = (after.mean() - before.mean()) / (2 * dt)
    assert change == pytest.approx((now * (1 - now)).mean().item(), rel=1e-6)


@pytest.mark.parametrize("pde", [AllenCahn(), CahnHilliard()], **BY_NAME)
def test_energy_never_increases(pde):
    frames = pde.solve(standard(pde, 512), np.linspace(0, 0.2, 21))
    energy = pde.energy(frames[:, :, 0])
    assert (energy.diff(dim=1) < 0).all()
    assert (energy[:, -1] < 0.8 * energy[:, 0]).all()


@pytest.mark.parametrize("pde", [AllenCahn(), CahnHilliard()], **BY_NAME)
def test_the_equation_descends_its_energy(pde):
    """rhs = −∂E/∂u, or ∂²/∂x² (∂E/∂u): autograd finds the same equation."""
    u = (0.4 * wave(pde, 64) + 0.3 * wave(pde, 64, 3) - 0.1).requires_grad_()
    (gradient,) = torch.autograd.grad(pde.energy(u), u)
    gradient = gradient * 64 / pde.length
    inner = isinstance(pde, CahnHilliard)
    descent = Spectral((64,), pde.lengths)(gradient, 2) if inner else -gradient
    torch.testing.assert_close(pde.rhs(u.detach()), descent, rtol=0, atol=1e-12)


def test_the_energy_of_a_wave():
    """u = A sin(kx): ∫ u_x² = A²k²L/2 and ∫ (u² − 1)² = L (3A⁴/8 − A² + 1)."""
    a, k = 0.7, math.pi * 3
    gradient, well = a**2 * k**2, 2 * (3 * a**4 / 8 - a**2 + 1)
    for pde, tension, strength in ((AllenCahn(), 1e-4, 5.0), (CahnHilliard(), 1e-6, 1e-2)):
        energy = pde.energy(a * wave(pde, 64, 3)).item()
        assert energy == pytest.approx(tension / 2 * gradient + strength / 4 * well, rel=1e-13)


@pytest.mark.parametrize("pde", [AllenCahn(), CahnHilliard()], **BY_NAME)
def test_phases_may_change_names(pde):
    """u → −u maps solutions to solutions."""
    start = standard(pde, 128)
    frames, mirrored = pde.solve(start, [0, 0.1]), pde.solve(-start, [0, 0.1])
    torch.testing.assert_close(frames, -mirrored, rtol=0, atol=1e-13)


@pytest.mark.parametrize("pde", PDES, **BY_NAME)
def test_the_solution_obeys_its_equation(pde):
    """A sixth-order difference of seven frames in time is rhs of the middle one."""
    dt = 1e-3
    start = (0.5 + 0.3 * wave(pde, 64) + 0.1 * wave(pde, 64, 2))[None, None]
    frames = pde.solve(start, [0.0, *(0.05 + dt * np.arange(-3, 4))], max_step=dt / 8)[0, 1:, 0]
    weights = torch.tensor([-1, 9, -45, 0, 45, -9, 1], dtype=torch.float64) / (60 * dt)
    assert relative(weights @ frames, pde.rhs(frames[3])) < 1e-9


@pytest.mark.parametrize("pde", PDES, **BY_NAME)
def test_symbols_are_the_equation_on_waves(pde):
    """rhs of a small wave is its symbol times the wave."""
    linear, outer = pde.symbols(32)
    for number in (1, 7):
        small = 1e-6 * wave(pde, 32, number)
        reaction = outer[number] * pde.reaction(small, Spectral((32,), pde.lengths))
        torch.testing.assert_close(
            pde.rhs(small), linear[number] * small + reaction, rtol=1e-5, atol=1e-14
        )


@pytest.mark.parametrize("pde", PDES, **BY_NAME)
def test_default_steps_are_short_enough(pde):
    """To 1e-7 on steep initial fields of the benchmarks: a quarter of the step says the same."""
    start, times = standard(pde, 512), [0, 0.01, 0.02, 0.05, 0.1]
    frames = pde.solve(start, times)
    assert relative(frames, pde.solve(start, times, max_step=pde.max_step / 4)) < 2e-7


@pytest.mark.parametrize("pde", [AllenCahn(), CahnHilliard()], **BY_NAME)
def test_a_thousand_points_are_enough(pde):
    """1,024 points and 2,048 agree where they meet."""
    draws = (sum_of_waves(np.random.default_rng(5), pde.grid(n)) for n in (1024, 2048))
    coarse, fine = (u[None] for u in draws)
    times = [0, 0.1, 0.3] if isinstance(pde, AllenCahn) else [0, 0.05]
    frames = pde.solve(coarse, times)
    assert relative(frames, pde.solve(fine, times)[..., ::2]) < 1e-7


def test_diffusion_reaction_stays_between_its_bounds():
    """0 ≤ u ≤ 1, and the range shrinks around its growing mean."""
    pde = DiffusionReaction()
    frames = pde.solve(standard(pde, 1024), TIMES)
    assert frames.min() >= -1e-9
    assert frames.max() <= 1 + 1e-9
    spread = frames.amax(dim=(2, 3)) - frames.amin(dim=(2, 3))
    assert (spread[:, 5:] < 1e-3).all()


@pytest.mark.parametrize("pde", PDES, **BY_NAME)
def test_frames_do_not_depend_on_the_others(pde):
    """Unequal times, frames left out, a later start of the clock, and samples alone or together."""
    start = standard(pde, 64)
    times = [0.0, 0.013, 0.02, 0.1, 0.101]
    frames = pde.solve(start, times)
    assert relative(pde.solve(start, [0.0, 0.1])[:, 1], frames[:, 3]) < 1e-6
    torch.testing.assert_close(
        pde.solve(start[1:], [3.0 + t for t in times]), frames[1:], rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_the_first_frame_is_the_initial_field(dtype):
    """To the bit, in float64, from tensors and arrays."""
    start = torch.rand(2, 1, 10).to(dtype)
    for given in (start, start.numpy()):
        frames = AllenCahn().solve(given, [0.0, 0.01])
        assert frames.dtype == torch.float64
        assert torch.equal(frames[:, 0], start.double())


def test_an_odd_number_of_points_will_do():
    """A resolved field is the same trigonometric polynomial on 33 points and on 66."""
    pde = AllenCahn(epsilon=0.2)
    odd, even = (pde.solve(0.5 * wave(pde, n)[None, None], [0.0, 0.2]) for n in (33, 66))
    assert relative(odd, even[..., ::2]) < 1e-10


def test_gradients_pass_through_the_right_hand_side():
    """The physics residual of a network needs ∂rhs/∂u: here Σ rhs of the logistic, 1 − 2u."""
    u = torch.full((8,), 0.3, requires_grad=True)
    DiffusionReaction().rhs(u).sum().backward()
    torch.testing.assert_close(u.grad, torch.full((8,), 0.4))


def test_grids_are_the_benchmarks():
    """Nodes from −1 for the phase fields, cell centres on (0, 1) for diffusion–reaction."""
    assert axis(AllenCahn(), 4).tolist() == axis(CahnHilliard(), 4).tolist() == [-1, -0.5, 0, 0.5]
    assert axis(DiffusionReaction(), 4).tolist() == [0.125, 0.375, 0.625, 0.875]
