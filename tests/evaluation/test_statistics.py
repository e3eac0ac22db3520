"""Intervals and tests against values from tables."""

import math

import numpy as np
import pytest
from scipy import stats

from sfo.evaluation import Interval, compare, mean_interval


def test_interval_by_hand():
    """s = 1 and t = 4.30265 for two degrees of freedom, from the table."""
    interval = mean_interval([1.0, 2.0, 3.0])
    assert interval.mean == 2
    assert interval.half_width == pytest.approx(4.3026527299 / math.sqrt(3), rel=1e-10)


def test_ten_seeds_as_in_the_paper():
    """t = 2.262157 for nine degrees of freedom; the values 0..9 have s² = 55/6."""
    interval = mean_interval(range(10))
    assert interval.half_width == pytest.approx(2.2621571628 * math.sqrt(55 / 60), rel=1e-10)


def test_one_seed_has_no_interval():
    assert mean_interval([0.3]) == Interval(0.3, None, 1)


def test_intervals_cover_the_mean_as_often_as_they_say():
    """Of 2,000 intervals from five normal values 95 % hold the true mean, up to 3 deviations."""
    values = np.random.default_rng(0).normal(3.0, 2.0, size=(2000, 5))
    held = [abs(i.mean - 3.0) <= i.half_width for i in map(mean_interval, values)]
    assert abs(np.mean(held) - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize(
    ("mean", "half_width", "text"),
    [
        (0.4512, 0.0287, "0.45 ± 0.03"),
        (0.4512, 0.0137, "0.451 ± 0.014"),
        (40.83, 1.22, "40.8 ± 1.2"),
        (1234.4, 56.0, "1234 ± 56"),
        (5.12e-7, 2.3e-8, "(5.1 ± 0.2)e-7"),
        (0.0, 2e-8, "0.00000000 ± 0.00000002"),
        (0.25, 0.0, "0.25 ± 0"),
        (0.25, None, "0.25"),
        (-0.0451, 0.0996, "-0.05 ± 0.10"),
    ],
)
def test_rounded_where_the_interval_begins(mean, half_width, text):
    assert str(Interval(mean, half_width, n=3)) == text


def test_wilcoxon_by_hand():
    """Six differences of one sign: both tails hold one of 2⁶ assignments of signs each."""
    first, second = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.1, 2.2, 3.3, 4.4, 5.5, 6.6]
    comparison = compare(first, second)
    assert comparison.p_value == pytest.approx(2 / 2**6)
    assert comparison.wins == 1
    assert comparison.difference == pytest.approx(-0.35)
    assert comparison.reduction == pytest.approx(1 - 1 / 1.1)


def test_bootstrap_agrees_with_student_for_many_normal_pairs():
    generator = np.random.default_rng(1)
    hard = generator.lognormal(sigma=2.0, size=400)
    gain = generator.normal(0.2, 0.5, size=400)
    comparison = compare(hard, hard + gain)
    exact = mean_interval(-gain)
    assert comparison.difference == pytest.approx(exact.mean)
    assert comparison.lower == pytest.approx(exact.mean - exact.half_width, abs=0.005)
    assert comparison.upper == pytest.approx(exact.mean + exact.half_width, abs=0.005)
    # Without the pairing the hard samples drown it.
    assert stats.ttest_ind(hard, hard + gain).pvalue > 0.5
    assert comparison.p_value < 1e-6


def test_the_same_seed_gives_the_same_interval():
    x, y = np.random.default_rng(2).random((2, 30))
    assert compare(x, y, seed=3) == compare(x, y, seed=3)
    assert compare(x, y, seed=3) != compare(x, y, seed=4)


def test_the_mirror_image():
    """Exchanging the models turns every statement round."""
    x, y = np.random.default_rng(2).random((2, 30))
    there, back = compare(x, y), compare(y, x)
    assert (back.difference, back.wins) == pytest.approx((-there.difference, 1 - there.wins))
    assert back.p_value == pytest.approx(there.p_value)
    assert (back.lower, back.upper) == pytest.approx((-there.upper, -there.lower), abs=1e-3)


def test_equal_models_tie():
    comparison = compare([0.1, 0.2], [0.1, 0.2])
    assert (comparison.lower, comparison.upper, comparison.wins, comparison.p_value) == (
        0,
        0,
        0.5,
        1,
    )


def test_one_sample_compares_without_interval():
    comparison = compare([0.1], [0.0])
    assert (comparison.lower, comparison.reduction, comparison.p_value) == (None, None, 1)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="diverged"):
        mean_interval([0.1, math.nan])
    with pytest.raises(ValueError, match="`values` must be one or more"):
        mean_interval([])
    with pytest.raises(ValueError, match="`level`"):
        mean_interval([1.0, 2.0], level=95)
    with pytest.raises(ValueError, match="same samples"):
        compare([0.1, 0.2], [0.1])
