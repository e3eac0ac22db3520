"""Plane sources: what they set, how they are drawn, and what a driven box does."""

import math

import numpy as np
import pytest
import torch

from sfo.pdes.maxwell import Maxwell, PlaneSource
from sfo.pdes.maxwell.plane_sources import random_sources, simulate_driven_box


def draws(n, **options):
    rng = np.random.default_rng(1)
    return [source for _ in range(n) for source in random_sources(rng, **options)]


@pytest.mark.parametrize(
    ("upper", "polarization", "names"),
    [
        ((5, 4, 3), "x", ("Ex", "Hy")),
        ((5, 4, 3), "y", ("Ey", "Hx")),
        ((5, 3, 4), "x", ("Ex", "Hz")),
        ((5, 3, 4), "z", ("Ez", "Hx")),
        ((3, 5, 4), "y", ("Ey", "Hz")),
        ((3, 5, 4), "z", ("Ez", "Hy")),
    ],
)
def test_a_source_sets_both_fields_in_its_plane(upper, polarization, names):
    """After step q the patch has a sin(2πq/period + phase) in E and the other H, for all q."""
    equation = Maxwell()
    source = PlaneSource((2, 2, 2), upper, polarization, amplitude=0.7, period=9, phase=0.4)
    times = equation.time_step * torch.arange(1, 21)
    u = equation.solve(torch.zeros(1, 6, 8, 8, 8), times, [source])[0]
    q = torch.arange(20, dtype=torch.float64)
    expected = 0.7 * torch.sin(2 * math.pi * q / 9 + 0.4)
    patch = tuple(slice(2, b) for b in upper)
    for name in names:
        values = u[(slice(None), Maxwell.names.index(name), *patch)]
        torch.testing.assert_close(values, expected[:, None, None, None].expand_as(values))


def test_the_later_source_wins():
    """Where two sources set the same component, the patch has the values of the last."""
    equation = Maxwell()
    first = PlaneSource((1, 1, 1), (4, 4, 2), "x", amplitude=1.0, phase=1.0)
    last = PlaneSource((2, 2, 1), (5, 5, 2), "x", amplitude=2.0, phase=1.0)
    u = equation.solve(torch.zeros(1, 6, 6, 6, 6), [equation.time_step], [first, last])
    assert u[0, 0, 0, 1:5, 1:5, 1].div(math.sin(1)).round().tolist() == [
        [1, 1, 1, 0],
        [1, 2, 2, 2],
        [1, 2, 2, 2],
        [0, 2, 2, 2],
    ]


def test_waves_of_a_source_carry_no_charge():
    """Outside of the sources' planes both divergences stay at round-off."""
    sources = random_sources(np.random.default_rng(3), corner=6, period="fixed")
    u, _, _ = simulate_driven_box(sources, box=24, window=12)
    e, h = u[:, :3].unbind(1), u[:, 3:].unbind(1)
    inside = (slice(None), *[slice(1, -1)] * 3)
    for fields, shift in ((e, 1), (h, -1)):
        terms = zip(fields, (-3, -2, -1), strict=True)
        div = sum(shift * (f - f.roll(shift, axis)) for f, axis in terms)
        assert div[inside].abs().max() < 1e-14
        assert max(f.abs().max() for f in fields) > 0.1


def test_window_is_the_centre_of_the_box_at_the_right_steps():
    """Frames after warm_up + every, warm_up + 2 every, … steps of the box with copied planes."""
    equation = Maxwell()
    sources = random_sources(np.random.default_rng(4), corner=4)
    u, times, grid = simulate_driven_box(sources, box=16, window=8, warm_up=30, every=5, frames=3)
    steps = equation.time_step * torch.tensor([35, 40, 45])
    box = equation.solve(torch.zeros(1, 6, 16, 16, 16), steps, sources, boundary="copy")
    assert torch.equal(u, box[0, ..., 4:12, 4:12, 4:12])
    torch.testing.assert_close(times, steps.double() - steps[0], rtol=1e-6, atol=0)
    assert grid.spacing == pytest.approx((5e-7,) * 3)
    assert not grid.periodic


def test_drawn_patches_fill_the_corner():
    """Edges are 2 to 5 cells, patches within [0, 16)³; the ends of the ranges are reached."""
    sources = draws(200)
    flat = [s.edges.index(1) for s in sources[:18]]
    assert flat == [2] * 6 + [1] * 6 + [0] * 6
    edges = {edge for s in sources for edge in s.edges}
    assert edges == {1, 2, 3, 4, 5}
    patches = [(a, b) for s in sources for a, b in zip(s.lower, s.upper, strict=True)]
    assert min(a for a, _ in patches) == 0
    # A patch of two cells and more starts below 16 − edge, so that it ends before 16.
    assert max(b for a, b in patches if b - a > 1) == 15
    assert max(b for a, b in patches if b - a == 1) == 16


class LowestDraws:
    """Stands in for a generator: draws the lower end of each range, and notes the ranges."""

    def __init__(self):
        self.ranges = []

    def integers(self, low, high):
        self.ranges.append((low, high))
        return low

    uniform = integers


def test_draws_come_in_the_published_order():
    """Length and start, or position, along x, y, z; amplitude, phase, polarisation, period."""
    rng = LowestDraws()
    # Lengths of 2, so that starts are below 16 − 2; λ such that the shortest period is a step.
    random_sources(rng, per_plane=1, wavelength=1e-3)
    patch, position = [(2, 6), (0, 14)], [(0, 16)]
    rest = [(0, 1), (0, 2 * math.pi), (0, 2), (1e-3, 1e3)]
    xy, xz, yz = rng.ranges[:9], rng.ranges[9:18], rng.ranges[18:]
    assert xy == [*patch, *patch, *position, *rest]
    assert xz == [*patch, *position, *patch, *rest]
    assert yz == [*position, *patch, *patch, *rest]


def test_drawn_numbers_are_uniform():
    """Means and ends of amplitudes, phases, polarisations and periods over 3,600 sources."""
    sources = draws(200)
    amplitude = np.array([s.amplitude for s in sources])
    phase = np.array([s.phase for s in sources]) / (2 * math.pi)
    period = np.array([s.period for s in sources]) / (34.99 * 1000)
    first = [s.polarization == "xyz".replace("xyz"[s.edges.index(1)], "")[0] for s in sources]
    for values in (amplitude, phase, period):
        assert values.mean() == pytest.approx(0.5, abs=0.02)
        assert 0 <= values.min() < 0.01
        assert 0.99 < values.max() <= 1
    assert np.mean(first) == pytest.approx(0.5, abs=0.03)


def test_fixed_period_is_one_wavelength():
    """Light of 1e-5 m has a period of 34.99 steps."""
    assert {s.period for s in draws(1, period="fixed")} == {35}


def test_a_period_below_half_a_step_is_redrawn():
    """At a thousandth of the wavelength one draw in seven would round to no step at all."""
    periods = np.array([s.period for s in draws(20, wavelength=1e-9)])
    assert set(periods) <= set(range(1, 36))
    assert (periods == 1).any()


def test_sources_follow_the_seed():
    """The same seed draws the same sources, and they go on drawing new ones."""
    assert draws(1) == draws(2)[:18]
    assert draws(2)[:18] != draws(2)[18:]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PlaneSource((0, 0, 0), (2, 2, 2), "x"), "one cell thick"),
        (lambda: PlaneSource((0, 0, 0), (2, 1, 1), "x"), "one cell thick"),
        (lambda: PlaneSource((0, 0, 0), (2, 2, 1), "z"), "x or y"),
        (lambda: PlaneSource((0, 0, 0), (2, 2, 1), "x", period=0), "time step"),
        (lambda: random_sources(np.random.default_rng(0), corner=2), "corner"),
        (lambda: random_sources(np.random.default_rng(0), wavelength=1e-11), "wavelength"),
        (lambda: simulate_driven_box([], box=8, window=5), "window"),
        (
            lambda: simulate_driven_box(random_sources(np.random.default_rng(0)), box=8, window=4),
            "inside the box",
        ),
    ],
)
def test_mistakes_are_named(wrong, message):
    """Each message says what is wrong."""
    with pytest.raises(ValueError, match=message):
        wrong()
