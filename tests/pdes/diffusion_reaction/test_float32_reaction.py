"""The published diffusion–reaction solver: where it stalls, and that rounding is why."""

import math

import numpy as np
import pytest
import torch

from sfo.pdes import DiffusionReaction
from sfo.pdes.diffusion_reaction.float32 import Float32DiffusionReaction
from sfo.pdes.initial import normalised_waves

STEP = 2.0**-22
"""The published step, at 1,024 points."""


def constant(value, n=8):
    return torch.full((1, 1, n), value)


def test_the_step_at_the_published_resolution():
    """At 1,024 points the solver's own step is 2⁻²²: the same bits as when asked for."""
    pde = Float32DiffusionReaction()
    start = normalised_waves(np.random.default_rng(0), pde.grid(1024))[None]
    own = pde.solve(start, [0.0, 1e-3])
    assert torch.equal(own, pde.solve(start, [0.0, 1e-3], max_step=STEP))
    assert not torch.equal(own, pde.solve(start, [0.0, 1e-3], max_step=STEP / 2))


@pytest.mark.parametrize(
    ("start", "end"),
    [
        *[(0.2, 0.375), (0.3, 0.375), (0.5, 0.5625), (0.55, 0.5625)],
        *[(u, u) for u in (0.4, 0.45, 0.6, 0.7, 0.8, 0.9)],
    ],
)
def test_constants_stall(start, end):
    """Growth below half a unit in the last place rounds to none: at 3/8 and 9/16 for good."""
    u = Float32DiffusionReaction().solve(constant(start), [0.0, 1.0], max_step=STEP)[0, 1, 0]
    assert (u == u[0]).all()
    assert u[0].item() == pytest.approx(end, abs=2e-5)
    assert u[0] < start * math.e / (1 - start + start * math.e) - 0.02


@pytest.mark.parametrize(("start", "end"), [(0.05, 0.131), (0.1, 0.227)])
def test_small_constants_still_grow_after_a_unit_of_time(start, end):
    frames = Float32DiffusionReaction().solve(constant(start), [0.0, 0.9, 1.0], max_step=STEP)
    assert frames[0, 2, 0, 0].item() == pytest.approx(end, abs=5e-4)
    assert frames[0, 2, 0, 0] > frames[0, 1, 0, 0]


def test_in_double_precision_the_same_steps_do_not_stall():
    """The scheme without rounding, 2⁻²² a step: growth from 0.5 is logistic."""
    u, decay = np.float64(0.5), math.exp(-STEP)
    for _ in range(2**12):
        u = 1 / (1 + decay * (1 - u) / u)
    exact = 1 / (1 + math.exp(-(2.0**-10)))
    assert u == pytest.approx(exact, abs=1e-12)


def test_with_long_steps_it_solves_the_equation():
    """The error falls with dx² from 16 points to 64: the scheme is sound."""
    accurate, published = DiffusionReaction(nu=1 / 64), Float32DiffusionReaction(nu=1 / 64)
    errors = []
    for n in (16, 32, 64):
        x = accurate.grid(n).coordinates()[0]
        start = (0.5 + 0.4 * torch.sin(2 * math.pi * x))[None, None]
        exact, u = (pde.solve(start, [0.0, 0.5, 1.0]) for pde in (accurate, published))
        errors.append(((u - exact).norm() / exact.norm()).item())
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.1)
    assert errors[1] / errors[2] == pytest.approx(4, abs=0.1)
    assert errors[2] < 2e-4


def test_frozen_fields_stay_as_they_are():
    """A field that stopped between two frames is the last frame of all, to the bit."""
    times = [0.0, 1e-5, 1e-3, 0.5]
    frames = Float32DiffusionReaction().solve(constant(0.6), times, max_step=STEP)
    assert torch.equal(frames[0, 1], frames[0, 3])
    assert not torch.equal(frames[0, 0], frames[0, 1])


def test_steady_states_do_not_move():
    """u = 0, where the growth divides by zero, and u = 1."""
    both = torch.cat([constant(0.0), constant(1.0)])
    frames = Float32DiffusionReaction().solve(both, [0.0, 1e-3], max_step=STEP)
    assert torch.equal(frames[:, 1], both.double())


def test_one_step_by_hand():
    """Against the same formula in numpy's float32, on all points at once."""
    pde, f = Float32DiffusionReaction(), np.float32
    u = np.random.default_rng(0).uniform(size=32).astype(f)

    def laplace(v):
        return (np.roll(v, -1) - v) - (v - np.roll(v, 1))

    def grown(v, h):
        return f(1) / (f(1) + f(math.exp(-h)) * (f(1) - v) / v)

    step = 1 / 32**2 / 4
    half = grown(u, step / 2) + f(1 / 16) * laplace(u)
    new = grown(u, step) + f(1 / 8) * laplace(half)
    frames = pde.solve(u[None, None], [0.0, step])
    assert np.array_equal(frames[0, 1, 0].numpy(), new)


def test_published_fields_stall_between_rounding_and_truth():
    """A field of mean 0.5 at 1,024 points freezes at 0.5625, flat, 14 % off the equation."""
    pde = Float32DiffusionReaction()
    x = pde.grid(1024).coordinates()[0]
    start = (0.5 + 0.5 * torch.sin(2 * math.pi * x))[None, None]
    times = np.linspace(0, 1, 101)
    frames = pde.solve(start, times)
    exact = DiffusionReaction().solve(start, times)
    assert frames[0, -1].min() == frames[0, -1].max()
    assert torch.equal(frames[0, 30], frames[0, -1])
    assert frames[0, -1, 0, 0].item() == pytest.approx(0.5625, abs=1e-3)
    assert ((frames - exact).norm() / exact.norm()).item() == pytest.approx(0.14, abs=0.01)


def test_bad_arguments_say_what_is_wrong():
    pde = Float32DiffusionReaction()
    with pytest.raises(ValueError, match="`initial` must not be negative, got -1"):
        pde.solve(constant(-1.0), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"`max_step` must be a positive number, got 0\.0"):
        pde.solve(constant(0.5), [0.0, 1.0], max_step=0.0)
