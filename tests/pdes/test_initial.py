"""Initial fields against the sums that define them and the statistics of their draws."""

import math

import numpy as np
import pytest
import torch

from sfo.grid import Grid
from sfo.pdes import AllenCahn, DiffusionReaction
from sfo.pdes.initial import normalised_waves, sum_of_waves

NODES = AllenCahn().grid(64)
CELLS = DiffusionReaction().grid(1024)
FEW_CELLS = DiffusionReaction().grid(128)


class Script:
    """A generator that hands out the numbers it was given, in order, whatever is asked."""

    def __init__(self, *draws):
        self.draws = list(draws)

    def _next(self, *args, **kwargs):
        return np.array(self.draws.pop(0))

    integers = uniform = choice = _next


def scripted(drawn, absolute=0.5, sign=1, window=0.5, ends=(0.0, 0.0), **options):
    amplitude, phase = np.full((4, 1), 0.5), np.array([[0.1], [0.2], [0.3], [0.4]])
    rng = Script(drawn, amplitude, phase, absolute, sign, window, ends)
    return normalised_waves(rng, CELLS, **options)[0]


def test_sum_of_waves_is_the_sum():
    rng = Script([[3], [8]], [[0.5], [0.25]], [[1.0], [2.0]])
    x = NODES.coordinates()[0]
    by_hand = 0.5 * torch.sin(6 * math.pi * x + 1) + 0.25 * torch.sin(16 * math.pi * x + 2)
    torch.testing.assert_close(sum_of_waves(rng, NODES)[0], by_hand, rtol=0, atol=1e-14)


@pytest.mark.parametrize(("unit", "most"), [(2 * math.pi, 16), (math.pi, 8)])
def test_only_the_drawn_waves_occur(unit, most):
    """On (−1, 1) a unit of 2π holds an even number of waves a period, up to 16; π all up to 8."""
    rng = np.random.default_rng(0)
    fields = torch.cat([sum_of_waves(rng, NODES, unit=unit) for _ in range(400)])
    power = (torch.fft.rfft(fields).abs() > 1e-6).sum(0)
    step = most // 8
    assert (power[step : most + 1 : step] > 50).all()
    assert power.sum() == power[step : most + 1 : step].sum()


def test_amplitudes_are_uniform():
    """One wave of amplitude A has the mean square A²/2: on average 1/6."""
    rng = np.random.default_rng(1)
    fields = torch.cat([sum_of_waves(rng, NODES, n_waves=1) for _ in range(2000)])
    squares = (fields**2).mean(1)
    assert squares.mean().item() == pytest.approx(1 / 6, abs=0.01)
    assert squares.max() <= 0.5


def test_two_different_waves():
    """Waves 1 and 3 once each, the others constant; the period is 1,023 of 1,024 cells."""
    x = CELLS.coordinates()[0] * 1024 / 1023
    by_hand = torch.sin(2 * math.pi * x + 0.1) + torch.sin(6 * math.pi * x + 0.3)
    u = scripted([1, 3])
    spread = by_hand.max() - by_hand.min()
    torch.testing.assert_close(u, (by_hand - by_hand.min()) / spread, rtol=0, atol=1e-13)
    assert u[0].item() == pytest.approx(u[-1].item(), abs=1e-12)


def test_a_wave_drawn_twice_doubles_its_number():
    x = CELLS.coordinates()[0] * 1024 / 1023
    by_hand = (1 + torch.sin(16 * math.pi * x + 0.4)) / 2
    torch.testing.assert_close(scripted([4, 4]), by_hand, rtol=0, atol=1e-4)


def test_sign_and_absolute_value():
    """The sign mirrors the range; an absolute value doubles the waves of a field about 0."""
    torch.testing.assert_close(scripted([1, 3], sign=-1), 1 - scripted([1, 3]))
    plain, folded = scripted([1, 2]), scripted([1, 2], absolute=0.05)
    assert ((folded.diff().sign().diff() != 0).sum()) > ((plain.diff().sign().diff() != 0).sum())


@pytest.mark.parametrize(
    ("published", "left", "right"),
    [(False, 0.1 + 0.35 * 0.8, 0.55 + 0.35 * 0.4), (True, 0.121, 0.571)],
)
def test_windows(published, left, right):
    """Flat outside (xL, xR). As published, the number 0.06 that grants it also places it."""
    u = scripted([1, 3], window=0.06, ends=(0.8, 0.4), published_window=published)
    x = CELLS.coordinates()[0]
    outside = (x < left - 0.05) | (x > right + 0.05)
    inside = (x > left + 0.05) & (x < right - 0.05)
    assert u[outside].std() < 1e-4
    assert u[inside].std() > 0.05


def test_fields_fill_the_unit_interval():
    """Exactly from 0 to 1, with the benchmark's mean of 0.50 ± 0.07."""
    rng = np.random.default_rng(2)
    fields = torch.cat([normalised_waves(rng, FEW_CELLS) for _ in range(1500)])
    assert (fields.amin(1) == 0).all()
    assert (fields.amax(1) == 1).all()
    means = fields.mean(1)
    assert means.mean().item() == pytest.approx(0.5, abs=0.01)
    assert means.std().item() == pytest.approx(0.067, abs=0.01)


def test_one_field_in_ten_has_a_window():
    """Then both ends are flat."""
    rng = np.random.default_rng(3)
    fields = torch.cat(
        [normalised_waves(rng, FEW_CELLS, published_window=True) for _ in range(2000)]
    )
    flat = (fields[:, :5].std(1) < 1e-6) & (fields[:, -25:].std(1) < 1e-6)
    assert flat.float().mean().item() == pytest.approx(0.1, abs=0.025)


@pytest.mark.parametrize("draw", [sum_of_waves, normalised_waves])
def test_seeds_decide(draw):
    one, again, other = (draw(np.random.default_rng(seed), NODES) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_bad_grids_and_units_say_what_is_wrong():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"one axis, got the shape \(8, 8\)"):
        sum_of_waves(rng, Grid((8, 8), (0.0, 0.0), (1.0, 1.0)))
    with pytest.raises(ValueError, match=r"multiple of 3\.14159, .* got unit=1"):
        sum_of_waves(rng, NODES, unit=1.0)
    with pytest.raises(ValueError, match="multiple of"):
        sum_of_waves(rng, NODES, unit=0.0)
