"""What every registered benchmark promises."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from data.stripped import FASTER
from matplotlib.image import imread

from sfo.data import load_benchmark
from sfo.data.benchmarks import Scale, option_names
from sfo.data.pairs import pairs
from sfo.plot.fields import picture
from sfo.registry import BENCHMARKS

PUBLISHED = {"diffusion_reaction_f32", "diffusion_sorption_rk45", "shallow_water_rdb"}


def tiny(name):
    """A few samples of the smoke scale, and shorter where solving takes long."""
    kind = BENCHMARKS[name].with_options(**FASTER.get(name, {}))
    scale = kind.scale("smoke")
    return kind, Scale(samples=3, n=scale.n, frames=3, stored=scale.stored)


@cache
def solved(name):
    """Two samples, solved once for all tests."""
    kind, scale = tiny(name)
    return kind.simulate(0, [0, 1], scale)


@cache
def alone(name):
    """The second of them, solved alone and with every point of the grid."""
    kind, scale = tiny(name)
    return kind.simulate(0, [1], replace(scale, stored=1))


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_samples_differ_and_depend_on_seed_and_index_alone(name):
    kind, scale = tiny(name)
    both = solved(name)
    kept = (..., *[slice(None, None, scale.stored)] * kind.grid(scale).n_dim)
    again = alone(name).values[0][kept]
    torch.testing.assert_close(both.values[1], again, rtol=1e-9, atol=1e-12)
    assert torch.isfinite(both.values).all()
    if name != "shallow_water_rdb":
        assert not torch.equal(both.values[0], both.values[1])
    if kind.solves_inputs:
        first, other = (kind.draw_inputs(seed, 1, kind.grid(scale)) for seed in (0, 7))
        assert not torch.equal(first, other)
    elif name not in PUBLISHED:
        assert not torch.equal(kind.simulate(7, [1], scale).values[0], again)


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_pairs_begin_with_their_input(name, tmp_path):
    """The solution holds the input's frames, field by field, unless the problem is steady."""
    kind = BENCHMARKS[name]
    asked = dict(samples=3, folder=tmp_path, workers=1, **FASTER.get(name, {}))
    p = load_benchmark(name, "smoke", "all", **asked)
    again = load_benchmark(name, "smoke", "all", **asked)
    assert torch.equal(again.u, p.u), "the second call must find the file of the first"
    fields = p.trajectory()
    channel = 0
    for field in kind.inputs:
        if field in kind.names:
            for step in range(kind.n_input):
                assert torch.equal(p.a[:, channel], fields[:, step, kind.names.index(field)])
                channel += 1
        else:
            channel += 1
    assert channel == p.a.shape[1]
    assert p.benchmark == name


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_options_are_refused_by_name(name):
    kind = BENCHMARKS[name]
    assert len(set(option_names(kind))) == len(option_names(kind))
    with pytest.raises(ValueError, match=f"Unknown option 'colour' of {name}; known: "):
        kind.with_options(colour=1)


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_what_is_made_can_be_drawn(name, tmp_path):
    picture(solved(name)).savefig(tmp_path / "picture.png", dpi=20)
    assert np.ptp(imread(tmp_path / "picture.png")) > 0.5


def test_a_steady_problem_is_one_frame_from_a_field_of_another_name(tmp_path):
    """Darcy: the permeability in, the pressure out, and the one solves the other."""
    p = load_benchmark("darcy", "smoke", "all", samples=3, folder=tmp_path, workers=1)
    assert (p.inputs, p.names, p.times) == (("a",), ("p",), (0.0,))
    assert p.a.shape == p.u.shape == (3, 1, 16, 16)
    kind, scale = BENCHMARKS["darcy"], BENCHMARKS["darcy"].scale("smoke")
    a = kind.coefficient(0, 1, kind.grid(scale))
    assert torch.equal(p.a[1], a[:, ::2, ::2].float())
    assert torch.equal(p.u[1], kind.pde.solve(a[None])[0, :, ::2, ::2].float())
    made = kind.simulate(0, [0, 1], scale)
    assert pairs(made).inputs == ("a",), "by default too, the solution is not its own input"


@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_drawn_inputs_are_solved_to_the_same_sample(name):
    kind, scale = tiny(name)
    if not kind.solves_inputs:
        with pytest.raises(ValueError, match="use `simulate`"):
            kind.draw_inputs(0, 1, kind.grid(scale))
        return
    whole = alone(name)
    inputs = kind.draw_inputs(0, 1, kind.grid(scale))[None]
    assert torch.equal(kind.solve_inputs(inputs, kind.times(scale)), whole.values)
    fields = pairs(whole, inputs=kind.inputs)
    assert torch.equal(inputs.float(), fields.a)


@pytest.mark.parametrize("value", ["abc", float("nan"), float("inf"), [1.0], None, True])
@pytest.mark.parametrize("name", BENCHMARKS.names())
def test_a_constant_is_a_finite_number(name, value):
    """It was found out by a worker, as a TypeError of torch's."""
    benchmark = BENCHMARKS[name]
    equation = getattr(benchmark, "pde", None)
    for option in option_names(benchmark):
        present = getattr(benchmark, option, getattr(equation, option, None))
        if isinstance(present, float):
            with pytest.raises(ValueError, match=f"`{option}` must be a finite number"):
                benchmark.with_options(**{option: value})


PERIODIC = [n for n in BENCHMARKS if BENCHMARKS[n].grid(BENCHMARKS[n].scale("smoke")).periodic]


@pytest.mark.parametrize("name", PERIODIC)
def test_solutions_move_with_their_start_where_the_benchmark_says_so(name):
    """Else a model without coordinates cannot learn it: forced Navier–Stokes stayed at 98 %."""
    benchmark, scale = tiny(name)
    grid, times = benchmark.grid(scale), benchmark.times(scale)[:3]
    start = benchmark.draw_inputs(7, 0, grid)[None]
    axes = tuple(range(-grid.n_dim, 0))
    shifts = tuple(n // 4 for n in grid.shape)
    moved = benchmark.solve_inputs(start.roll(shifts, axes), times)
    truth = benchmark.solve_inputs(start, times).roll(shifts, axes)
    assert bool(torch.dist(moved, truth) < 1e-3 * truth.norm()) == benchmark.shift_invariant
