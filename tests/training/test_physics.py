"""The residual is small on solutions, large on all else, and leads from the one to the other."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from sfo.data.benchmarks import Scale
from sfo.data.pairs import pairs
from sfo.pdes.derivative import Central, Spectral
from sfo.registry import BENCHMARKS
from sfo.training.physics import (
    PhysicsLoss,
    check_physics,
    initial_loss,
    pde_residual,
    time_derivative,
)

SIX = dict(
    allen_cahn=Scale(samples=2, n=128, frames=41),
    cahn_hilliard=Scale(samples=2, n=128, frames=101),
    diffusion_reaction=Scale(samples=2, n=64, frames=401),
    diffusion_sorption=Scale(samples=2, n=128, stored=2, frames=201),
    shallow_water=Scale(samples=2, n=16, frames=21),
    maxwell=Scale(samples=2, n=8, frames=4),
)
# Longer waves and thicker walls, which 128 points resolve.
OPTIONS = dict(
    allen_cahn=dict(epsilon=2e-3, max_wave=3),
    cahn_hilliard=dict(gamma=3e-5, max_wave=3, max_step=1e-3),
)
PERIODIC = ["allen_cahn", "cahn_hilliard", "diffusion_reaction"]


def benchmark_of(name):
    return BENCHMARKS[name].with_options(**OPTIONS.get(name, {}))


def made(name, scale=None, benchmark=None):
    """Pairs as training has them."""
    benchmark = benchmark or benchmark_of(name)
    scale = scale or SIX[name]
    solved = benchmark.simulate(seed=0, ids=range(scale.samples), scale=scale)
    return pairs(solved, inputs=benchmark.inputs, n_input=benchmark.n_input, benchmark=name)


@pytest.fixture(scope="module")
def solved():
    """The six benchmarks' pairs, each solved once, and their losses."""
    data = {name: made(name) for name in SIX}
    return {name: (d, PhysicsLoss(benchmark_of(name), d)) for name, d in data.items()}


def root_mean_square(v):
    return float(v.square().mean().sqrt())


@pytest.mark.parametrize(
    ("name", "at", "spacing"),
    [
        ("allen_cahn", 0.2, 0.01),
        ("cahn_hilliard", 0.5, 0.005),
        ("diffusion_reaction", 0.2, 0.004),
        ("diffusion_sorption", 200.0, 6.0),
    ],
)
def test_residual_of_a_solution_falls_with_the_square_of_the_frames_distance(name, at, spacing):
    """All that is left of it is the error of the central difference, here times that distance."""
    benchmark = benchmark_of(name)
    grid = benchmark.pde.grid(128)
    initial = torch.stack([benchmark.initial(0, i, grid) for i in range(2)])
    steps = [spacing, spacing / 2, spacing / 4]
    before_and_after = [at + sign * step for sign in (-1, 1) for step in steps]
    times = torch.tensor(sorted([0, at, *before_and_after]), dtype=torch.float64)
    tight = dict(rtol=1e-11, atol=1e-13) if name == "diffusion_sorption" else {}
    u = benchmark.pde.solve(initial, times, **tight)
    left = []
    for k in (3, 2, 1):  # frames 4 − k, 4 and 4 + k
        around = [4 - k, 4, 4 + k]
        residual, size = pde_residual(
            benchmark.pde, u[:, around], given={}, grid=grid, times=times[around]
        )
        left.append(root_mean_square(residual) / root_mean_square(size))
    assert left[0] < 1e-3
    assert 7 < left[0] / left[1] < 8.5
    assert 7.4 < left[1] / left[2] < 8.3


def test_water_leaves_less_the_closer_its_frames(solved):
    """To second order but for the bores, and again times the distance."""
    data, _ = solved["shallow_water"]
    left = []
    for stride in (4, 2, 1):
        kept = torch.arange(data.u.shape[1]).view(3, -1)[:, ::stride].flatten()
        thin = replace(data, u=data.u[:, kept], times=data.times[::stride])
        physics = PhysicsLoss(benchmark_of("shallow_water"), thin)
        left.append(float(physics(thin.a, thin.u).mean()))
    assert left[0] > 4 * left[1] > 16 * left[2]
    assert left[2] < 0.003


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("allen_cahn", dict(epsilon=6e-3)),
        ("allen_cahn", dict(strength=10.0)),
        ("cahn_hilliard", dict(gamma=6e-5)),
        ("diffusion_reaction", dict(nu=2.0)),
        ("diffusion_sorption", dict(diffusivity=2e-3)),
        ("shallow_water", dict(gravity=2.0)),
    ],
)
def test_solutions_of_another_equation_are_told_apart(name, options, solved):
    """An order of magnitude lies between a solution and one with another constant."""
    data, physics = solved[name]
    other = made(name, benchmark=benchmark_of(name).with_options(**options))
    right, wrong = (float(physics(p.a, p.u).mean()) for p in (data, other))
    assert wrong > 10 * right


def test_divergence_is_rounding_on_fields_and_not_on_others(solved):
    """In float64 the fields are free of it to the last bit; with two components swapped, not."""
    data, physics = solved["maxwell"]
    assert physics(data.a, data.u).max() < 1e-6
    exact = benchmark_of("maxwell").solve(0, [0, 1], SIX["maxwell"])[0]
    assert physics(data.a, exact.transpose(1, 2).flatten(1, 2)).max() < 1e-13
    swapped = data.u.unflatten(1, (6, -1))[:, [1, 0, 2, 3, 5, 4]].flatten(1, 2)
    assert physics(data.a, swapped).min() > 0.3


@pytest.mark.parametrize("name", SIX)
def test_noise_costs_what_it_costs_the_data(name, solved):
    """One percent of white noise, about one percent: one weight serves all benchmarks."""
    data, physics = solved[name]
    noise = 0.01 * root_mean_square(data.u) * torch.randn_like(data.u)
    cost = physics(data.a, data.u + noise)
    assert cost.min() > 0.003
    assert cost.max() < 0.06


@pytest.mark.parametrize("name", PERIODIC)
def test_waves_are_divided_as_the_eigenvectors_of_the_stiff_part(name):
    """(1/τ + |L|)⁻¹ from the matrix of L."""
    pde, n = benchmark_of(name).pde, 24
    identity = torch.eye(n, dtype=torch.float64)
    matrix = pde.linear(identity, Spectral((n,), pde.lengths))
    rates, vectors = torch.linalg.eigh((matrix + matrix.T) / 2)
    times = torch.tensor([0.0, 0.1, 0.4, 0.5], dtype=torch.float64)
    u = torch.randn(2, 4, 1, n, dtype=torch.float64)
    residual, _ = pde_residual(pde, u, given={}, grid=pde.grid(n), times=times)
    bare = time_derivative(u, times) - pde.rhs(u[:, 1:])
    for frame, span in ((0, 0.4), (1, 0.4), (2, 0.4)):
        inverse = vectors @ torch.diag(1 / (1 / span + rates.abs())) @ vectors.T
        torch.testing.assert_close(residual[:, frame, 0], bare[:, frame, 0] @ inverse)


def test_sines_solve_the_tridiagonal_system():
    """R (∂u/∂t − rhs) divided by R(left)/τ − D δ² between ends of 0."""
    pde, n = BENCHMARKS["diffusion_sorption"].pde, 20
    u = torch.rand(2, 3, 1, n, dtype=torch.float64)
    times = torch.tensor([0.0, 2.0, 5.0], dtype=torch.float64)
    residual, _ = pde_residual(pde, u, given={}, grid=pde.grid(n), times=times)
    bare = time_derivative(u, times) - pde.rhs(u[:, 1:])
    identity = torch.eye(n, dtype=torch.float64)
    second = torch.diag(torch.ones(n - 1), 1) + torch.diag(torch.ones(n - 1), -1) - 2 * identity
    least = float(pde.retardation(torch.tensor(pde.left, dtype=torch.float64)))
    matrix = least / 5 * identity - pde.diffusivity * n**2 * second.double()
    expected = torch.linalg.solve(matrix, (pde.retardation(u[:, 1:]) * bare).mT).mT
    torch.testing.assert_close(residual, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", SIX)
def test_nothing_at_all_solves_the_equation_but_not_the_problem(name, solved):
    """û = 0 has no residual, nor a gradient that is not a number; the initial term sees it."""
    data, physics = solved[name]
    nothing = torch.zeros_like(data.u).requires_grad_()
    loss = physics(data.a, nothing)
    loss.sum().backward()
    assert loss.max() == 0
    assert nothing.grad.isfinite().all()
    cost = initial_loss(data, data.a, nothing).square().mean().sqrt()
    torch.testing.assert_close(cost, torch.tensor(1.0))
    assert initial_loss(data, data.a, data.u).max() == 0


def test_initial_term_takes_no_sample_for_more_than_another(solved):
    """The same error costs the same, were the constant it begins with next to nothing."""
    data, _ = solved["diffusion_sorption"]
    a = data.a.clone()
    a[1] = 1e-6
    u = a.expand_as(data.u) + 0.01
    first, second = initial_loss(data, a, u).tolist()
    assert first == pytest.approx(second, rel=1e-3)


def test_initial_term_sees_every_field_and_input_frame(solved):
    """Water that is not at rest, and the second of Maxwell's two frames, but not its third."""
    for name, field, frame, given in (("shallow_water", 1, 0, 1), ("maxwell", 4, 1, 12)):
        data, _ = solved[name]
        u = data.u.clone()
        u[:, field * data.n_times + frame] += 0.5
        usual = data.a[:, :given].square().flatten(1).sum(1).mean().sqrt()
        expected = (0.5 * data.a[0, 0].numel() ** 0.5 / usual).expand(2)
        torch.testing.assert_close(initial_loss(data, data.a, u), expected)
        u[:, data.n_times - 1] += 1.0
        torch.testing.assert_close(initial_loss(data, data.a, u), expected)


@pytest.mark.parametrize("name", SIX)
def test_gradients_are_those_of_finite_differences(name, solved):
    """Along a random direction, from a field that is no solution."""
    data, physics = solved[name]
    a = data.a.double()
    u = (data.u + 0.02 * data.u.std() * torch.rand_like(data.u)).double().requires_grad_()
    direction = data.u.std() * torch.rand_like(u)
    (gradient,) = torch.autograd.grad(physics(a, u).sum(), u)
    step = 1e-9  # few of the limiters of water switch on so short a way
    with torch.no_grad():
        ends = [physics(a, u + sign * step * direction).sum() for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-4, atol=0)


@pytest.mark.parametrize("name", SIX)
def test_any_prediction_has_a_gradient(name, solved):
    """Negative depths and concentrations are what an untrained network predicts."""
    data, physics = solved[name]
    u = torch.randn_like(data.u).requires_grad_()
    physics(data.a, u).sum().backward()
    assert u.grad.isfinite().all()


def test_less_residual_is_a_better_solution():
    """From a field that stands still, with its first frame but without data, to the solution."""
    benchmark = BENCHMARKS["allen_cahn"].with_options(epsilon=1e-2, max_wave=1)
    data = made("allen_cahn", Scale(samples=2, n=32, frames=21), benchmark)
    physics = PhysicsLoss(benchmark, data)
    truth, a = data.u.double(), data.a.double()
    u = a.expand_as(truth).clone().requires_grad_()

    def error():
        return float((u.detach() - truth).norm() / truth.norm())

    optimizer = torch.optim.LBFGS(
        [u], max_iter=150, tolerance_grad=0, tolerance_change=0, line_search_fn="strong_wolfe"
    )

    def loss():
        optimizer.zero_grad()
        total = (physics(a, u).square() + initial_loss(data, a, u).square()).sum()
        total.backward()
        return total

    before = error()
    optimizer.step(loss)
    assert before > 0.2
    assert error() < before / 30


def test_a_lake_at_rest_leaves_nothing(solved):
    """Over its own bed the level is flat; over another's it would flow."""
    data, physics = solved["shallow_water"]
    bed = data.a[:, 1:]
    frames = torch.zeros_like(data.trajectory())
    frames[:, :, 0] = 1 - bed
    u = frames.transpose(1, 2).flatten(1, 2)
    assert physics(data.a, u).max() < 1e-6
    assert physics(torch.cat([data.a[:, :1], 0 * bed], 1), u).min() > 1e-3


def test_units_of_time_do_not_matter(solved):
    """Minutes for seconds, in the equation and in the frames."""
    data, physics = solved["allen_cahn"]
    slow = benchmark_of("allen_cahn").with_options(epsilon=2e-3 / 60, strength=5 / 60)
    minutes = replace(data, times=tuple(60 * t for t in data.times))
    u = data.u + 0.01 * torch.randn_like(data.u)
    torch.testing.assert_close(PhysicsLoss(slow, minutes)(data.a, u), physics(data.a, u))


@pytest.mark.parametrize("name", SIX)
def test_single_precision_is_enough(name, solved):
    data, physics = solved[name]
    u = data.u + 1e-3 * data.u.std() * torch.randn_like(data.u)
    single, double = physics(data.a, u), physics(data.a.double(), u.double())
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=0)


@pytest.mark.parametrize(("name", "ratio"), [("allen_cahn", 2), ("cahn_hilliard", 10)])
def test_thin_walls_are_best_left_to_waves(name, ratio):
    """At every fourth point three-point differences leave more of a solution."""
    pde = BENCHMARKS[name].pde
    grid = pde.grid(1024)
    times = torch.tensor([0.0, 0.49, 0.5, 0.51], dtype=torch.float64)
    initial = torch.stack([BENCHMARKS[name].initial(0, i, grid) for i in range(2)])
    u = pde.solve(initial, times)[:, 1:, :, ::4]
    rate = time_derivative(u, times[1:])
    left = [rate - pde.rhs(u[:, 1:], kind) for kind in (Central, Spectral)]
    assert root_mean_square(left[0]) > ratio * root_mean_square(left[1])


def test_ends_of_a_coarser_grid_are_left_out():
    """A straight line solves diffusion inside, but not at ends where it has other values."""
    scale = Scale(samples=1, n=64, frames=5)
    for stored, seen in ((1, True), (4, False)):
        data = made("diffusion_sorption", replace(scale, stored=stored))
        physics = PhysicsLoss(BENCHMARKS["diffusion_sorption"], data)
        line = (0.3 - 0.2 * data.grid.coordinates()[0]).expand_as(data.u)
        assert bool(physics(data.a, line) > 0.05) is seen
        assert bool(physics(data.a, line) < 1e-6) is not seen


def test_differences_in_time_are_exact_for_parabolas():
    times = torch.tensor([0.0, 0.5, 0.8, 1.5], dtype=torch.float64)
    u = (3 * times**2 - times).view(1, 4, 1, 1)
    torch.testing.assert_close(time_derivative(u, times).flatten(), 6 * times[1:] - 1)


def test_depth_alone_has_no_residual():
    with pytest.raises(ValueError, match=r"needs the fields h, u, v, got h: u, v are not among"):
        check_physics(BENCHMARKS["shallow_water_rdb"])
    for name in (*SIX, "diffusion_reaction_f32", "diffusion_sorption_rk45"):
        check_physics(BENCHMARKS[name])


def test_two_frames_are_too_few(solved):
    data, _ = solved["diffusion_reaction"]
    thin = replace(data, u=data.u[:, :2], times=data.times[:2])
    with pytest.raises(ValueError, match="at least 3 frames, got 2"):
        PhysicsLoss(benchmark_of("diffusion_reaction"), thin)


def test_an_unknown_equation_is_named():
    with pytest.raises(ValueError, match="No residual is known for the equation SimpleNamespace"):
        pde_residual(SimpleNamespace(), torch.zeros(1), given={}, grid=None, times=None)
