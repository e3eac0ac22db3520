"""The paper's two examples, against closed-form solutions."""

import math

import pytest
import torch

from sfo.theory import Stencil, steady_diffusion_reaction, unsteady_diffusion_reaction

EYE = torch.eye(2, dtype=torch.float64)
D = torch.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=torch.float64)


def grid(n: int) -> torch.Tensor:
    return torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)


def test_steady_example_without_a_source_is_a_hyperbolic_sine():
    """−u″ + k²u = 0, u(0) = 0, u(1) = 1: u = sinh kx / sinh k, to O(h²)."""
    errors = []
    for n in (99, 199):
        x = grid(n)
        u = steady_diffusion_reaction(1.0, 16.0, torch.zeros(n), 0.0, 1.0).solve()
        errors.append((u - torch.sinh(4 * x) / math.sinh(4)).abs().max())
    assert errors[1] < 3e-5
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)


def test_steady_right_hand_side_carries_the_ends():
    """F₁ = f₁ − A₁ u_left with A₁ = −D/h² (the paper writes B₀ there), and A U = F."""
    n, left, right = 5, torch.tensor([1.0, 2.0]).double(), torch.tensor([-1.0, 0.5]).double()
    f = torch.ones(n, 2, dtype=torch.float64)
    problem = steady_diffusion_reaction(D, 3 * EYE, f, left, right)
    h = 1 / (n + 1)
    torch.testing.assert_close(problem.rhs[0], f[0] + D @ left / h**2)
    torch.testing.assert_close(problem.rhs[-1], f[-1] + D @ right / h**2)
    torch.testing.assert_close(problem.rhs[1:-1], f[1:-1])
    u = torch.cat([left[None], problem.solve(), right[None]])
    inside = -(u[:-2] - 2 * u[1:-1] + u[2:]) @ D / h**2 + 3 * u[1:-1]
    torch.testing.assert_close(inside, f)


def test_the_root_of_a_fine_grid_is_the_continuous_decay_length():
    """r → exp(−h √(R/D)) as h → 0, the Green's function exp(−√(R/D)|x|) sampled."""
    h = 1e-3
    r = steady_diffusion_reaction(2.0, 18.0, torch.zeros(999), 0.0, 0.0).stencil.r.item()
    assert r == pytest.approx(math.exp(-3 * h), rel=1e-8)


def test_unsteady_example_settles_in_the_steady_one():
    n = 31
    x = grid(n)
    s = torch.stack([torch.sin(3 * x), x], dim=1)
    ends = torch.tensor([[0.5, 0.0], [1.0, -1.0]], dtype=torch.float64)
    unsteady = unsteady_diffusion_reaction(D, 2 * EYE, s, *ends, torch.zeros(n, 2))
    steady = steady_diffusion_reaction(D, 2 * EYE, s, *ends)
    torch.testing.assert_close(unsteady.source, steady.rhs)
    c = unsteady.c0
    for _ in range(60):
        c = unsteady.step(c, dt=0.5).solve()
    torch.testing.assert_close(c, steady.solve(), rtol=0, atol=1e-12)


def test_an_implicit_step_damps_a_sine_as_computed():
    """sin πx is an eigenvector: one step divides it by 1 + dt (R + 4D sin²(πh/2)/h²)."""
    n, dt = 40, 0.01
    c0 = torch.sin(math.pi * grid(n))
    problem = unsteady_diffusion_reaction(0.7, 1.5, torch.zeros(n), 0.0, 0.0, c0)
    rate = 1.5 + 4 * 0.7 * math.sin(math.pi / (2 * (n + 1))) ** 2 * (n + 1) ** 2
    torch.testing.assert_close(problem.step(c0, dt).solve(), c0 / (1 + dt * rate))


def test_bad_examples_say_what_is_wrong():
    zero = torch.zeros(9)
    with pytest.raises(ValueError, match=r"a > 2\|b\|"):
        steady_diffusion_reaction(1.0, 0.0, zero, 0.0, 0.0)
    with pytest.raises(ValueError, match=r"`f` must have shape \(n, d\)"):
        steady_diffusion_reaction(D, EYE, zero, zero[:2], zero[:2])
    with pytest.raises(ValueError, match=r"`u_left` must have shape \(2,\)"):
        steady_diffusion_reaction(D, EYE, torch.zeros(9, 2), 0.0, zero[:2])
    with pytest.raises(ValueError, match="must commute"):
        steady_diffusion_reaction(D, torch.diag(torch.tensor([1.0, 2.0])), torch.zeros(9, 2), 0, 0)
    with pytest.raises(ValueError, match=r"`c0` must have the shape of `s`"):
        unsteady_diffusion_reaction(1.0, 1.0, zero, 0.0, 0.0, zero[:5])
    with pytest.raises(ValueError, match="`dt` must be positive"):
        Stencil(3.0, 1.0).implicit_step(0.0)
