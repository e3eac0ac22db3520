"""Layers built from stencils, against dense inverses and direct solves."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfo.theory import (
    ConstructedInverse,
    ConstructedSolver,
    DirichletProblem,
    Stencil,
    WideStencil,
    modes_guaranteed,
    steady_diffusion_reaction,
    unsteady_diffusion_reaction,
)

D = torch.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=torch.float64)
R = 3 * D @ D + 2 * torch.eye(2, dtype=torch.float64)


def dense(layer: torch.nn.Module, n: int, d: int) -> torch.Tensor:
    """The layer as an (n d) × (n d) matrix, point by point."""
    unit = torch.eye(n * d, dtype=torch.float64).reshape(n * d, n, d).transpose(1, 2)
    with torch.no_grad():
        return layer(unit).transpose(1, 2).reshape(n * d, n * d).T


def window(stencil: Stencil, n: int) -> torch.Tensor:
    """A⁻¹ on ℤ, seen through n points: the Toeplitz matrix of the free kernel."""
    t = torch.arange(n)
    blocks = stencil.green(t[:, None] - t)
    blocks = blocks[..., None, None] if stencil.is_scalar else blocks
    return blocks.permute(0, 2, 1, 3).flatten(2).flatten(0, 1)


@settings(max_examples=25, deadline=None)
@given(ratio=st.floats(-0.9999, 0.9999), n=st.integers(2, 80), digits=st.integers(1, 8))
def test_the_layer_is_the_inverse_within_eps(ratio, n, digits):
    """In the operator norm, roots of either sign, up to marginal stability."""
    stencil, eps = Stencil(1.0, ratio / 2), 10.0**-digits
    layer = ConstructedInverse(stencil, n, eps)
    error = torch.linalg.matrix_norm(dense(layer, n, 1) - window(stencil, n), 2)
    assert error <= layer.certified * (1 + 1e-9) + 1e-13
    assert layer.certified <= eps


def test_a_block_layer_serves_positive_and_negative_roots_at_once():
    q = np.linalg.qr(np.random.default_rng(1).standard_normal((3, 3)))[0]
    stencil = Stencil((q * [3.0, 3.0, 4.0]) @ q.T, (q * [-1.2, 1.4, 0.0]) @ q.T)
    layer = ConstructedInverse(stencil, 50, 1e-9)
    assert layer.positive is not None
    assert layer.alternating is not None
    error = torch.linalg.matrix_norm(dense(layer, 50, 3) - window(stencil, 50), 2)
    assert error <= layer.certified <= 1e-9


def test_the_certificate_is_not_idle():
    """For one root the bound ‖e‖₁ is close to the true norm: within a factor of ten."""
    stencil = Stencil(2.1, -1.0)
    layer = ConstructedInverse(stencil, 100, 1e-5)
    error = torch.linalg.matrix_norm(dense(layer, 100, 1) - window(stencil, 100), 2)
    assert error > layer.certified / 10


def test_odd_rows_carry_no_weight():
    layer = ConstructedInverse(Stencil(2.5, -1.0), 64, 1e-6)
    assert layer.positive.theta[1::2].abs().max() == 0
    assert layer.positive.theta.shape == (2 * layer.n_modes - 1, 1, 1)


def test_modes_grow_as_the_theorem_says():
    """Linear in the digits, and never above the proven number for the ℓ¹ norm."""
    stencil, n = Stencil(2.01, -1.0), 256
    counts = []
    for digits in range(2, 11):
        eps = 10.0**-digits
        counts.append(ConstructedInverse(stencil, n, eps).n_modes)
        needed_in_l2 = eps / (2 * math.sqrt(n) * stencil.weight.item())
        assert counts[-1] <= modes_guaranteed(stencil.r.item(), n, needed_in_l2)
    x = np.arange(2, 11)
    assert np.abs(counts - np.polyval(np.polyfit(x, counts, 1), x)).max() <= 2


@pytest.mark.parametrize("eps", [1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("n", [31, 255])
def test_the_steady_example_is_solved_within_eps(n, eps):
    """Against the direct solve, coupled, with ends that are not zero."""
    x = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
    f = torch.stack([1 + torch.sin(9 * x), torch.cos(5 * x)], dim=1)
    ends = torch.tensor([[0.5, 1.0], [-1.0, 0.2]], dtype=torch.float64)
    problem = steady_diffusion_reaction(D, R, f, *ends)
    solver = ConstructedSolver(problem.stencil, n, eps)
    error = solver.solve(problem) - problem.solve()
    assert error.norm() <= solver.certified * (f.norm() + ends.norm())
    assert solver.certified <= eps
    assert error.abs().max() <= eps


@settings(max_examples=25, deadline=None)
@given(
    ratio=st.floats(-0.999, 0.999),
    n=st.integers(1, 60),
    digits=st.integers(1, 6),
    seed=st.integers(0, 100),
)
def test_the_solvers_certificate_holds_for_any_stencil_and_data(ratio, n, digits, seed):
    """The operator norm itself, column by column: f and both ends as unknown inputs."""
    stencil, eps = Stencil(1.0, ratio / 2), 10.0**-digits
    solver = ConstructedSolver(stencil, n, eps)
    rng = np.random.default_rng(seed)
    f = torch.from_numpy(rng.standard_normal(n))
    ends = torch.from_numpy(rng.standard_normal(2))
    problem = DirichletProblem(stencil, f, *ends)
    error = (solver.solve(problem) - problem.solve()).norm()
    assert error <= eps * (f.norm() + ends.norm())


def test_without_charges_the_layer_misses_the_ends():
    """The zero-padded convolution alone is off by 40 % of u here, and two homogeneous
    solutions, rⁱ and r^{n+1−i}, account for all of it."""
    n = 63
    problem = steady_diffusion_reaction(1.0, 10.0, torch.ones(n), 0.0, 0.0)
    with torch.no_grad():
        free = ConstructedInverse(problem.stencil, n, 1e-8)(problem.f[None, None])[0, 0]
    direct = problem.solve()
    images = free - direct
    assert images.abs().max() > 0.4 * direct.abs().max()
    i = torch.arange(1, n + 1)
    ends = torch.stack([problem.stencil.r**i, problem.stencil.r ** (n + 1 - i)], dim=1)
    charges = torch.linalg.lstsq(ends, images[:, None]).solution
    assert (ends @ charges - images[:, None]).norm() < 1e-8


def test_the_unsteady_example_is_marched_within_eps():
    """Ten backward Euler steps by one layer; the errors of the steps at most add up."""
    n, dt, eps = 63, 0.01, 1e-7
    x = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
    problem = unsteady_diffusion_reaction(0.5, 2.0, x, 0.0, 1.0, torch.sin(7 * x))
    solver = ConstructedSolver(problem.stencil.implicit_step(dt), n, eps)
    direct = constructed = problem.c0
    for _ in range(10):
        direct = problem.step(direct, dt).solve()
        constructed = solver.solve(problem.step(constructed, dt))
    assert (constructed - direct).norm() <= 10 * eps * (problem.c0.norm() + dt * x.norm() + 1)


@pytest.mark.parametrize("c", [[3.0, -1.0, 0.3], [6.25 + 2, -5.0, 1.0]])
def test_a_wide_stencil_is_built_too(c):
    """The second one is (2.5 − S − S⁻¹)², a double root."""
    stencil, n = WideStencil(c), 100
    layer = ConstructedInverse(stencil, n, 1e-6)
    t = torch.arange(n)
    truth = stencil.green(t[:, None] - t)
    assert torch.linalg.matrix_norm(dense(layer, n, 1) - truth, 2) <= layer.certified <= 1e-6


def test_bad_input_says_what_is_wrong():
    stencil = Stencil(2.5, -1.0)
    for build in (ConstructedInverse, ConstructedSolver):
        with pytest.raises(ValueError, match="`eps` must be positive, got eps=0"):
            build(stencil, 20, 0.0)
        with pytest.raises(ValueError, match=r"best is .* Ask for a larger eps"):
            build(stencil, 20, 1e-20)
    with pytest.raises(ValueError, match="at least 2 points, got n=1"):
        ConstructedInverse(stencil, 1, 1e-3)
    with pytest.raises(ValueError, match="at least 1 interior point, got n=0"):
        ConstructedSolver(stencil, 0, 1e-3)
    solver = ConstructedSolver(stencil, 20, 1e-3)
    problem = steady_diffusion_reaction(1.0, 1.0, torch.zeros(9), 0.0, 0.0)
    with pytest.raises(ValueError, match="built for n=20 interior points, got 9"):
        solver.solve(problem)
