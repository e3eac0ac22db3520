"""The residual is small on solutions, large on all else, and leads from the one to the other."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from sfo.data.benchmarks import Scale
from sfo.data.pairs import pairs
from sfo.pdes.derivative import central_second_derivative
from sfo.registry import BENCHMARKS
from sfo.training.physics import PhysicsLoss, check_physics, defect, initial_loss, time_derivative

SIX = dict(
    allen_cahn=Scale(samples=2, n=256, frames=41),
    cahn_hilliard=Scale(samples=2, n=256, frames=101),
    diffusion_reaction=Scale(samples=2, n=64, frames=101),
    diffusion_sorption=Scale(samples=2, n=128, stored=2, frames=51),
    shallow_water=Scale(samples=2, n=32, frames=41),
    maxwell=Scale(samples=2, n=8, frames=4),
)
# Waves of half the paper's numbers, and walls that 256 points resolve.
OPTIONS = dict(
    allen_cahn=dict(epsilon=1e-3, max_wave=4), cahn_hilliard=dict(gamma=1e-5, max_wave=4)
)


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
    """The six benchmarks' pairs, each solved once."""
    return {name: made(name) for name in SIX}


def still(data):
    """A prediction in which nothing moves."""
    frames = data.trajectory()
    return frames[:, :1].expand_as(frames).transpose(1, 2).flatten(1, 2)


def root_mean_square(v):
    return float(v.square().mean().sqrt())


@pytest.mark.parametrize(
    ("name", "at", "spacing"),
    [
        ("allen_cahn", 0.2, 0.02),
        ("cahn_hilliard", 0.5, 0.01),
        ("diffusion_reaction", 0.2, 0.02),
        ("diffusion_sorption", 200.0, 20.0),
    ],
)
def test_residual_of_a_solution_falls_with_the_square_of_the_frames_distance(name, at, spacing):
    """All that is left of it is the error of the central difference in time."""
    benchmark = benchmark_of(name)
    grid = benchmark.pde.grid(256)
    initial = torch.stack([benchmark.initial(0, i, grid) for i in range(2)])
    left = []
    for step in (spacing, spacing / 2, spacing / 4):
        times = torch.tensor([0, at - step, at, at + step], dtype=torch.float64)
        u = benchmark.pde.solve(initial, times)[:, 1:]
        residual, rate = defect(benchmark.pde, u, given={}, grid=grid, times=times[1:])
        left.append(root_mean_square(residual) / root_mean_square(rate))
    assert left[0] < 0.1
    assert 3.7 < left[0] / left[1] < 4.3
    assert 3.9 < left[1] / left[2] < 4.1


def test_water_leaves_little_and_ever_less(solved):
    """Bores keep the residual from second order, but closer frames leave less of it."""
    data = solved["shallow_water"]
    benchmark = benchmark_of("shallow_water")
    every = torch.arange(data.n_times)
    left = []
    for stride in (4, 2, 1):
        kept = torch.cat([every[::stride] + field * data.n_times for field in range(3)])
        thin = replace(data, u=data.u[:, kept], times=data.times[::stride])
        left.append(float(PhysicsLoss(benchmark, thin)(thin.a, thin.u).mean()))
    assert left[0] > 2 * left[1] > 4 * left[2]
    assert left[2] < 0.01


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("allen_cahn", dict(epsilon=3e-3)),
        ("allen_cahn", dict(strength=10.0)),
        ("cahn_hilliard", dict(gamma=2e-5)),
        ("diffusion_reaction", dict(nu=1.0)),
        ("diffusion_sorption", dict(diffusivity=1e-3)),
        ("shallow_water", dict(gravity=2.0)),
    ],
)
def test_solutions_of_another_equation_are_told_apart(name, options, solved):
    """Orders of magnitude lie between a solution and one with another constant."""
    data, benchmark = solved[name], benchmark_of(name)
    physics = PhysicsLoss(benchmark, data)
    other = made(name, benchmark=benchmark.with_options(**options))
    right, wrong = (float(physics(p.a, p.u).mean()) for p in (data, other))
    assert right < 0.03
    assert wrong > 8 * right


def test_divergence_is_rounding_on_fields_and_not_on_others(solved):
    """In float64 the fields are free of it to the last bit; with two components swapped, not."""
    data, benchmark = solved["maxwell"], benchmark_of("maxwell")
    physics = PhysicsLoss(benchmark, data)
    assert physics(data.a, data.u).max() < 1e-12
    exact = benchmark.solve(0, [0, 1], SIX["maxwell"])[0].transpose(1, 2).flatten(1, 2)
    assert physics(data.a, exact).max() < 1e-26
    swapped = data.u.unflatten(1, (6, -1))[:, [1, 0, 2, 3, 5, 4]].flatten(1, 2)
    assert physics(data.a, swapped).min() > 0.1


@pytest.mark.parametrize("name", ["allen_cahn", "cahn_hilliard", "diffusion_reaction"])
def test_a_field_that_stands_still_costs_what_its_rate_should_be(name, solved):
    data, benchmark = solved[name], benchmark_of(name)
    physics = PhysicsLoss(benchmark, data)
    n = data.grid.shape[0]
    rhs_hat = torch.fft.rfft(benchmark.pde.rhs(data.a.double()))
    rhs = torch.fft.irfft(rhs_hat[..., : n // 3 + 1], n=n)
    expected = rhs.square().mean((1, 2)) * (1 / physics.scale).mean()
    torch.testing.assert_close(physics(data.a, still(data)).double(), expected, rtol=1e-3, atol=0)


@pytest.mark.parametrize("name", SIX)
def test_nothing_at_all_solves_the_equation_but_not_the_problem(name, solved):
    """û = 0 has no residual, so the initial term is needed: there it costs 1."""
    data = solved[name]
    nothing = torch.zeros_like(data.u)
    assert PhysicsLoss(benchmark_of(name), data)(data.a, nothing).max() == 0
    torch.testing.assert_close(initial_loss(data, data.a, nothing), torch.ones(2))
    assert initial_loss(data, data.a, data.u).max() == 0


def test_initial_term_sees_every_field_and_input_frame(solved):
    """Water that is not at rest, and the second of Maxwell's two frames."""
    for name, field, frame in (("shallow_water", 1, 0), ("maxwell", 4, 1)):
        data = solved[name]
        u = data.u.clone()
        u[:, field * data.n_times + frame] += 0.5
        shown = [c for c, n in enumerate(data.inputs) if n in data.names]
        size = data.a[:, : len(shown) * BENCHMARKS[name].n_input].square().flatten(1).sum(1)
        points = data.a[0, 0].numel()
        torch.testing.assert_close(initial_loss(data, data.a, u), 0.25 * points / size)
    u[:, 2] += 1.0  # the third frame of Ex is no input
    torch.testing.assert_close(initial_loss(data, data.a, u), 0.25 * points / size)


@pytest.mark.parametrize("name", SIX)
def test_gradients_are_those_of_finite_differences(name, solved):
    """Along random directions, from a field that is no solution."""
    data = solved[name]
    physics = PhysicsLoss(benchmark_of(name), data)
    a = data.a.double()
    u = (data.u + 0.02 * data.u.std() * torch.rand_like(data.u)).double().requires_grad_()
    direction = data.u.std() * torch.rand_like(u)
    (gradient,) = torch.autograd.grad(physics(a, u).sum(), u)
    step = 1e-7
    with torch.no_grad():
        ends = [physics(a, u + sign * step * direction).sum() for sign in (1, -1)]
    slope = (ends[0] - ends[1]) / (2 * step)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-5, atol=0)


@pytest.mark.parametrize("name", SIX)
def test_any_prediction_has_a_gradient(name, solved):
    """Negative depths and concentrations are what an untrained network predicts."""
    data = solved[name]
    u = torch.randn_like(data.u).requires_grad_()
    PhysicsLoss(benchmark_of(name), data)(data.a, u).sum().backward()
    assert u.grad.isfinite().all()


def test_less_residual_is_a_better_solution():
    """From a wrong field with the right first frame, with no data, toward the solution."""
    benchmark = BENCHMARKS["allen_cahn"].with_options(epsilon=1e-2, max_wave=1)
    data = made("allen_cahn", Scale(samples=2, n=32, frames=21), benchmark)
    physics = PhysicsLoss(benchmark, data)
    truth, a = data.u.double(), data.a.double()
    u = a.expand_as(truth).clone().requires_grad_()

    def error():
        return float((u - truth).norm() / truth.norm())

    optimizer = torch.optim.LBFGS([u], max_iter=150, line_search_fn="strong_wolfe")

    def loss():
        optimizer.zero_grad()
        total = (physics(a, u) + initial_loss(data, a, u)).sum()
        total.backward()
        return total

    before = error()
    optimizer.step(loss)
    assert before > 0.3
    assert error() < before / 30


def test_a_lake_at_rest_leaves_nothing(solved):
    """Over its own bed the level is flat; over another's it would flow."""
    data = solved["shallow_water"]
    physics = PhysicsLoss(benchmark_of("shallow_water"), data)
    bed = data.a[:, 1:]
    frames = torch.zeros_like(data.trajectory())
    frames[:, :, 0] = 1 - bed
    u = frames.transpose(1, 2).flatten(1, 2)
    assert physics(data.a, u).max() < 1e-10
    assert physics(torch.cat([data.a[:, :1], 0 * bed], 1), u).min() > 1e-3


def test_units_of_time_do_not_matter(solved):
    """Minutes for seconds, in the equation and in the frames."""
    data, benchmark = solved["allen_cahn"], benchmark_of("allen_cahn")
    slow = benchmark.with_options(epsilon=1e-3 / 60, strength=5 / 60)
    minutes = replace(data, times=tuple(60 * t for t in data.times))
    u = data.u + 0.01 * torch.randn_like(data.u)
    torch.testing.assert_close(
        PhysicsLoss(slow, minutes)(data.a, u), PhysicsLoss(benchmark, data)(data.a, u)
    )


@pytest.mark.parametrize("name", SIX)
def test_single_precision_is_enough(name, solved):
    data = solved[name]
    physics = PhysicsLoss(benchmark_of(name), data)
    u = data.u + 1e-3 * data.u.std() * torch.randn_like(data.u)
    single, double = physics(data.a, u), physics(data.a.double(), u.double())
    torch.testing.assert_close(single.double(), double, rtol=1e-3, atol=0)


@pytest.mark.parametrize("name", ["allen_cahn", "cahn_hilliard"])
def test_thin_walls_are_best_left_to_waves(name):
    """At every fourth point three-point differences leave more, and so do the highest waves."""
    benchmark = BENCHMARKS[name]
    grid = benchmark.pde.grid(1024)
    times = torch.tensor([0.0, 0.49, 0.5, 0.51], dtype=torch.float64)
    initial = torch.stack([benchmark.initial(0, i, grid) for i in range(2)])
    u = benchmark.pde.solve(initial, times)[:, 1:, :, ::4]
    residual, rate = defect(benchmark.pde, u, given={}, grid=grid.subsample(4), times=times[1:])
    middle = u[:, 1:-1]
    all_waves = root_mean_square(rate - benchmark.pde.rhs(middle))
    differences = root_mean_square(rate - benchmark.pde.rhs(middle, central_second_derivative))
    assert differences > 2 * all_waves
    assert all_waves > 1.3 * root_mean_square(residual)


def test_ends_of_a_coarser_grid_are_left_out():
    """There the values beyond the ends are not where the solver's cells have them."""
    benchmark = BENCHMARKS["diffusion_sorption"]
    fine = made("diffusion_sorption", Scale(samples=1, n=256, frames=51))
    coarse = made("diffusion_sorption", Scale(samples=1, n=256, stored=4, frames=51))
    for data, seen in ((fine, True), (coarse, False)):
        physics = PhysicsLoss(benchmark, data)
        u = data.u.clone()
        u[..., -1] = 0.1
        u[..., -2:] = u[..., -1:]
        first = physics(data.a, u)
        u[..., -1] += 0.1
        u[..., -3] = 2 * u[..., -2] - u[..., -1] if not seen else u[..., -3]
        assert physics(data.a, data.u) < 0.03
        assert bool(physics(data.a, u) > 2 * first) is seen


def test_frames_after_a_jump_count_little(solved):
    data = solved["diffusion_sorption"]
    scale = PhysicsLoss(benchmark_of("diffusion_sorption"), data).scale
    assert scale[0] > 5 * scale[-1]


def test_central_differences_are_exact_for_parabolas():
    times = torch.tensor([0.0, 0.5, 1.0, 1.5], dtype=torch.float64)
    u = (3 * times**2 - times).view(1, 4, 1, 1)
    torch.testing.assert_close(time_derivative(u, times).flatten(), 6 * times[1:-1] - 1)


def test_depth_alone_has_no_residual():
    with pytest.raises(ValueError, match=r"needs the fields h, u, v, got h: u, v are not among"):
        check_physics(BENCHMARKS["shallow_water_rdb"])
    for name in (*SIX, "diffusion_reaction_f32", "diffusion_sorption_rk45"):
        check_physics(BENCHMARKS[name])


def test_two_frames_are_too_few(solved):
    data = solved["diffusion_reaction"]
    thin = replace(data, u=data.u[:, :2], times=data.times[:2])
    with pytest.raises(ValueError, match="at least 3 frames, got 2"):
        PhysicsLoss(benchmark_of("diffusion_reaction"), thin)


def test_an_unknown_equation_is_named(solved):
    with pytest.raises(ValueError, match="No residual is known for the equation SimpleNamespace"):
        defect(SimpleNamespace(), torch.zeros(1), given={}, grid=None, times=None)
