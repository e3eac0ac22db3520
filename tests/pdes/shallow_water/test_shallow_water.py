"""Shallow water: rest, conservation, exact dam breaks, a swinging lake, orders, symmetries."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from stoker import cell_means

from sfo.pdes.shallow_water import ShallowWater
from sfo.pdes.shallow_water.initial import random_water
from sfo.pdes.shallow_water.radial_dam_break import RadialDamBreak
from sfo.pdes.shallow_water.riemann import hll_flux


def random(*shape):
    return torch.rand(*shape, dtype=torch.float64)


def lakes(grid, seeds):
    """Depths and bathymetries of several random lakes."""
    pairs = [random_water(np.random.default_rng(seed), grid) for seed in seeds]
    return tuple(torch.stack(fields) for fields in zip(*pairs, strict=True))


def coarsen(field, factor):
    """Means over blocks of factor × factor cells."""
    *batch, x, y = field.shape
    blocks = field.reshape(*batch, x // factor, factor, y // factor, factor)
    return blocks.mean((-3, -1))


def momenta(frame):
    """(h, hu, hv) of (h, u, v)."""
    return torch.cat([frame[:1], frame[:1] * frame[1:]])


def rotate(field):
    """The field (h, u, v) a quarter turn on."""
    h, u, v = torch.rot90(field, 1, (-2, -1)).unbind(-3)
    return torch.stack([h, -v, u], dim=-3)


@pytest.mark.parametrize("boundary", ["wall", "open"])
def test_a_lake_at_rest_stays_at_rest(boundary):
    """Level water over any ground, with dry islands in it, does not move."""
    b = 2 * random(2, 1, 20, 27)
    h = (1 - b).clamp(min=0)
    assert 0.3 < (h == 0).double().mean() < 0.7
    frames = ShallowWater(boundary=boundary).solve(h, [0.0, 2.0], b)
    assert (frames[:, :, :1] - h[:, None]).abs().max() < 1e-12
    assert frames[:, :, 1:].abs().max() < 1e-12


def test_walls_keep_the_volume():
    """What leaves a cell enters its neighbour; nothing passes a wall."""
    water = ShallowWater()
    h, b = lakes(water.grid((32, 24)), range(3))
    volume = water.solve(h, [0.0, 1.0, 3.0], b)[:, :, 0].mean((-2, -1))
    assert (volume - volume[:, :1]).abs().max() < 1e-12


@pytest.mark.parametrize("ahead", [1.0, 0.0], ids=["wet", "dry"])
def test_dam_break_converges_to_the_exact_solution(ahead):
    """A planar dam, against Stoker's solution on wet and Ritter's on dry ground."""
    errors = []
    for n in (64, 128, 256):
        water = ShallowWater(lower=(-2.5, 0.0), upper=(2.5, 20.0 / n))
        x, _ = water.grid((n, 4)).mesh()
        h = torch.where(x < 0, 2.0, ahead)[None, None]
        frame = momenta(water.solve(h, [0.0, 0.8])[0, -1])
        assert (frame - frame[..., :1]).abs().max() == 0
        exact = torch.from_numpy(cell_means(n, -2.5, 2.5, 0.8, 2.0, ahead))
        errors.append((frame[:2, :, 0] - exact).abs().mean(-1))
        if n == 64:
            turned = ShallowWater(lower=(0.0, -2.5), upper=(20.0 / n, 2.5))
            along_y = momenta(turned.solve(h.mT, [0.0, 0.8])[0, -1])
            assert (along_y[[0, 2, 1]].mT - frame).abs().max() < 1e-12
    orders = torch.stack([torch.log2(a / b) for a, b in pairwise(errors)])
    assert orders.min() > 0.8
    assert errors[-1].max() < 0.01


def test_a_stream_carries_what_runs_across_it():
    """In a steady stream u, v(x, t) = v(x − ut, 0): it moves along and makes no new extrema."""
    errors = []
    for n in (50, 100):
        water = ShallowWater(lower=(-2.5, 0.0), upper=(2.5, 20 / n), boundary="open")
        x, _ = water.grid((n, 4)).mesh()
        h, u = torch.ones_like(x), torch.full_like(x, 0.8)
        step, bump = (x.abs() < 0.5).double(), torch.exp(-6 * x**2)
        initial = torch.stack([torch.stack([h, u, v]) for v in (step, bump)])
        frames = water.solve(initial, [0.0, 1.0])[:, 1]
        assert (frames[:, :2] - initial[:, :2]).abs().max() < 1e-12
        assert frames[:, 2].min() > -1e-12
        assert frames[:, 2].max() < 1 + 1e-12
        errors.append((frames[1, 2] - torch.exp(-6 * (x - 0.8) ** 2)).abs().mean())
    assert torch.log2(errors[0] / errors[1]) > 1.8


def test_smooth_waves_converge_at_second_order():
    """Over a smooth bed, before any bore: differences of successive grids fall by four."""
    water = ShallowWater()
    x, y = water.grid((512, 512)).mesh()
    b = 0.2 * torch.exp(-((x + 0.3) ** 2) - y**2)
    h = 1 + 0.2 * torch.exp(-2 * ((x - 0.1) ** 2 + (y + 0.2) ** 2)) - b
    frames = []
    for n in (32, 64, 128):
        mean_h, mean_b = (coarsen(field, 512 // n)[None, None] for field in (h, b))
        frames.append(momenta(water.solve(mean_h, [0.0, 0.5], mean_b)[0, -1]))
    gaps = [(coarse - coarsen(fine, 2)).abs().mean((-2, -1)) for coarse, fine in pairwise(frames)]
    assert torch.log2(gaps[0] / gaps[1]).min() > 1.8


def test_a_lake_swings_in_a_bowl():
    """Thacker's lake in a paraboloid: its level surface tilts and circles, shores and all."""
    # b = d (|x|²/a² − 1),  h + b = d s (2 x·e(t) − s) / a²,  (u, v) = s e'(t), where e circles
    # the unit circle at the rate ω = √(2 g d) / a.
    d, a, s = 0.5, 1.2, 0.4
    omega = math.sqrt(2 * d) / a
    quarter = math.pi / 2 / omega
    errors = []
    for n in (32, 64):
        water = ShallowWater(lower=(-2.0, -2.0), upper=(2.0, 2.0))
        x, y = water.grid((n, n)).mesh()
        b = d * ((x**2 + y**2) / a**2 - 1)
        exact = [(d * s * (2 * e - s) / a**2 - b).clamp(min=0) for e in (x, y, -x)]
        initial = torch.stack([exact[0], torch.zeros_like(x), s * omega * (exact[0] > 0)])
        times = [0.0, quarter, 2 * quarter]
        h = water.solve(initial[None], times, b[None, None])[0, :, 0]
        errors.append((h[1:] - torch.stack(exact[1:])).abs().mean((-2, -1)))
    assert torch.log2(errors[0] / errors[1]).min() > 1
    assert errors[1].max() < 0.002


def test_depth_is_never_negative():
    """Water thrown about over rough and partly dry ground neither owes nor vanishes."""
    water = ShallowWater()
    b = 2 * random(2, 1, 16, 16)
    h = random(2, 1, 16, 16) * (random(2, 1, 16, 16) < 0.5)
    velocity = 6 * (random(2, 2, 16, 16) - 0.5)
    frames = water.solve(torch.cat([h, velocity], dim=1), torch.linspace(0, 3, 31), b)
    assert frames.isfinite().all()
    assert frames[:, :, 0].min() == 0
    volume = frames[:, :, 0].mean((-2, -1))
    assert (volume - volume[:, :1]).abs().max() < 1e-12


@pytest.mark.parametrize("boundary", ["wall", "open"])
def test_turned_water_moves_alike(boundary):
    """Turn a lake by 90° and mirror it: the solution turns and mirrors with it."""
    water = ShallowWater(boundary=boundary)
    h, b = lakes(water.grid((24, 24)), [4])
    times = [0.0, 1.0]
    frames = water.solve(h, times, b)
    turned = water.solve(torch.rot90(h, 1, (-2, -1)), times, torch.rot90(b, 1, (-2, -1)))
    assert (turned - rotate(frames)).abs().max() < 1e-12
    mirrored = water.solve(h.flip(-2), times, b.flip(-2)).flip(-2)
    sign = torch.tensor([1.0, -1.0, 1.0])[:, None, None]
    assert (sign * mirrored - frames).abs().max() < 1e-12


def test_a_wall_is_a_mirror():
    """Half a symmetric lake with a wall in its middle moves like the whole one."""
    whole = ShallowWater()
    half = ShallowWater(lower=(0.0, -2.5))
    h, b = lakes(half.grid((16, 32)), [1])

    def doubled(field):
        return torch.cat([field.flip(-2), field], dim=-2)

    times = [0.0, 1.0, 2.0]
    expected = whole.solve(doubled(h), times, doubled(b))[..., 16:, :]
    assert (half.solve(h, times, b) - expected).abs().max() < 1e-12


def test_an_open_boundary_lets_waves_out():
    """Once a ring wave has crossed the box it is gone; between walls it is still there."""
    x, y = ShallowWater().grid((32, 32)).mesh()
    h = (1 + 0.2 * torch.exp(-3 * (x**2 + y**2)))[None, None]
    wall, open_ = (
        (ShallowWater(boundary=boundary).solve(h, [0.0, 5.0])[0, 1, 0] - 1).abs().mean()
        for boundary in ("wall", "open")
    )
    assert open_ < wall / 5


def test_agrees_with_roe_waves():
    """Two unlike schemes differ on the radial dam break by their errors at the bore, 0.3 %."""
    dam = RadialDamBreak()
    h = coarsen(dam.initial(dam.published_radius(0), dam.grid()), 2)[None]
    times = torch.linspace(0, 1, 6)
    by_roe = dam.solve(h, times)
    by_hll = ShallowWater(boundary="open").solve(h, times)[:, :, :1]
    assert torch.dist(by_hll, by_roe) < 0.005 * by_roe.norm()


def test_a_sample_does_not_depend_on_its_company():
    """Solved together or alone, slow beside fast: the same to the last bit."""
    water = ShallowWater()
    h, b = lakes(water.grid((16, 16)), range(3))
    h[1] *= 4
    together = water.solve(h, [0.0, 0.3, 1.0], b)
    for i in range(3):
        alone = water.solve(h[i : i + 1], [0.0, 0.3, 1.0], b[i : i + 1])
        assert torch.equal(together[i : i + 1], alone)


def test_solving_on_continues():
    """The first frame is the initial state, and one may start again from any frame."""
    water = ShallowWater()
    h, b = lakes(water.grid((16, 16)), [0, 1])
    frames = water.solve(h, [0.0, 0.7, 1.3], b)
    assert torch.equal(frames[:, 0, :1], h)
    again = water.solve(frames[:, 1], [0.7, 1.3], b)
    assert torch.equal(again[:, 0], frames[:, 1])
    assert (again[:, 1] - frames[:, 2]).abs().max() < 1e-13


def test_frames_in_between_change_little():
    """More frames mean shorter steps and nothing else."""
    water = ShallowWater()
    h, b = lakes(water.grid((32, 32)), [2])
    few = water.solve(h, [0.0, 1.0], b)[:, -1]
    many = water.solve(h, torch.linspace(0, 1, 41), b)[:, -1]
    assert torch.dist(few, many) < 0.01 * many.norm()


def test_flux_between_equal_sides_is_the_equations():
    """F = (hu, hu² + g h²/2, huv) where nothing jumps, in calm and in racing water."""
    h, v = 1 + random(50), random(50)
    u = 6 * (random(50) - 0.5)
    mass, normal_l, normal_r, transverse = hll_flux((h, u, v), (h, u, v), gravity=2.0)
    torch.testing.assert_close(mass, h * u)
    torch.testing.assert_close(normal_l, h * u**2)
    torch.testing.assert_close(normal_r, h * u**2)
    torch.testing.assert_close(transverse, h * u * v)


def test_rhs_has_the_gradient_of_its_differences():
    """Automatic differentiation agrees with differences, and is finite on dry ground."""
    water = ShallowWater()
    b = random(1, 5, 4)
    state = torch.cat([1 + random(1, 5, 4), random(2, 5, 4) - 0.5]).requires_grad_()
    assert torch.autograd.gradcheck(lambda q: water.rhs(q, b), state)
    dry = (state.detach() * (random(1, 5, 4) < 0.5)).requires_grad_()
    water.rhs(dry, b).square().sum().backward()
    assert dry.grad.isfinite().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(initial=torch.full((1, 1, 4, 4), -0.1)), "depths h ≥ 0, got -0.1"),
        (dict(initial=torch.full((1, 1, 4, 4), math.nan)), "must be finite"),
        (dict(initial=torch.ones(1, 2, 4, 4)), r"\(sample, 1 or 3, X, Y\)"),
        (dict(initial=torch.ones(1, 4, 4)), r"got \(1, 4, 4\)"),
        (dict(initial=torch.ones(1, 1, 1, 4)), "at least 2 points per axis"),
        (dict(bathymetry=torch.ones(2, 1, 4, 4)), r"of the shape \(1, 1, 4, 4\)"),
        (dict(bathymetry=torch.full((1, 1, 4, 4), math.inf)), "must be finite"),
        (dict(times=[0.0, 1.0, 1.0]), "increasing"),
        (dict(times=[]), "increasing"),
    ],
)
def test_bad_input_is_refused(change, message):
    """The message names the argument and the rule."""
    arguments = dict(initial=torch.ones(1, 1, 4, 4), times=[0.0, 1.0], bathymetry=None)
    with pytest.raises(ValueError, match=message):
        ShallowWater().solve(**{**arguments, **change})


@pytest.mark.parametrize(
    "change", [dict(boundary="periodic"), dict(courant=1.5), dict(gravity=0.0)]
)
def test_bad_constants_are_refused(change):
    """No such boundary, no stable step, no waves."""
    with pytest.raises(ValueError, match=next(iter(change))):
        ShallowWater(**change)
