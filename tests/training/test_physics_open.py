"""PINO's residual on equations that the training package does not know by name."""

from dataclasses import replace

import pytest
import torch

from sfo.data.benchmarks import Scale
from sfo.data.pairs import pairs
from sfo.registry import BENCHMARKS
from sfo.training.physics import PhysicsLoss, check_physics, initial_loss

SCALES = dict(
    burgers=Scale(samples=2, n=256, frames=81),
    kuramoto_sivashinsky=Scale(samples=2, n=256, stored=2, frames=101),
    navier_stokes=Scale(samples=2, n=32, frames=41),
)
OPTIONS = dict(burgers=dict(nu=0.05), kuramoto_sivashinsky={}, navier_stokes=dict(sigma=5.0))


@pytest.fixture(scope="module")
def solved():
    out = {}
    for name, scale in SCALES.items():
        kind = BENCHMARKS[name].with_options(**OPTIONS[name])
        data = pairs(kind.simulate(0, range(2), scale), inputs=kind.inputs, benchmark=name)
        out[name] = kind, data, PhysicsLoss(kind, data)
    return out


@pytest.mark.parametrize("name", SCALES)
def test_solutions_leave_little_and_noise_what_it_costs_the_data(name, solved):
    """Less than 0.5 %; one percent of white noise costs about one; standing still a lot."""
    kind, data, physics = solved[name]
    check_physics(kind)
    right = physics(data.a, data.u)
    noise = 0.01 * data.u.square().mean().sqrt() * torch.randn_like(data.u)
    assert right.max() < 0.005
    assert 0.003 < physics(data.a, data.u + noise).mean() < 0.03
    assert physics(data.a, data.a.expand_as(data.u)).min() > 0.05


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("burgers", dict(nu=0.1)),
        ("kuramoto_sivashinsky", dict(nu=1.5)),
        ("navier_stokes", dict(viscosity=1e-2)),
        ("navier_stokes", dict(forcing=0.2)),
    ],
)
def test_solutions_of_another_equation_are_told_apart(name, other, solved):
    kind, data, physics = solved[name]
    changed = PhysicsLoss(kind.with_options(**other), data)
    assert changed(data.a, data.u).min() > 4 * physics(data.a, data.u).max()


@pytest.mark.parametrize("name", SCALES)
def test_frames_closer_together_leave_less(name, solved):
    """To second order in their distance, but for waves that are gone before the second frame."""
    kind, data, physics = solved[name]
    thin = replace(data, u=data.u[:, ::2], times=data.times[::2])
    left = float(physics(data.a, data.u).mean())
    assert float(PhysicsLoss(kind, thin)(thin.a, thin.u).mean()) > 2.5 * left


@pytest.mark.parametrize("name", SCALES)
def test_gradients_are_those_of_finite_differences(name, solved):
    _, data, physics = solved[name]
    a = data.a.double()
    u = (data.u + 0.02 * data.u.std() * torch.rand_like(data.u)).double().requires_grad_()
    direction = data.u.std() * torch.rand_like(u)
    (gradient,) = torch.autograd.grad(physics(a, u).sum(), u)
    with torch.no_grad():
        ends = [physics(a, u + sign * 1e-6 * direction).sum() for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / 2e-6
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-4, atol=0)


def test_less_residual_is_a_better_solution():
    """Burgers from a field that stands still, with its first frame but without data."""
    kind = BENCHMARKS["burgers"].with_options(nu=0.1)
    scale = Scale(samples=2, n=32, frames=21)
    data = pairs(kind.simulate(0, range(2), scale), inputs=kind.inputs)
    physics = PhysicsLoss(kind, data)
    truth, a = data.u.double(), data.a.double()
    u = a.expand_as(truth).clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [u], max_iter=100, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        total = (physics(a, u).square() + initial_loss(data, a, u).square()).sum()
        total.backward()
        return total

    before = float((u.detach() - truth).norm() / truth.norm())
    optimizer.step(loss)
    assert before > 0.5
    assert float((u.detach() - truth).norm() / truth.norm()) < before / 10


def test_a_steady_problem_says_that_it_has_no_residual():
    with pytest.raises(ValueError, match=r"No residual is known for the equation Darcy.*physics=0"):
        check_physics(BENCHMARKS["darcy"])
