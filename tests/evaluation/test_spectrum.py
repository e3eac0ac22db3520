"""Frequency bands: sums over fields with known spectra, and Parseval."""

import math

import pytest
import torch

from sfo.evaluation import ErrorSums, compute_errors
from sfo.evaluation.spectrum import BANDS, band_squares, band_weights
from sfo.grid import Grid


def unit_grid(*shape):
    return Grid(shape, (0.0,) * len(shape), (1.0,) * len(shape))


def wave(n, k):
    """A cosine of frequency k, whose sum of squares is n / 2."""
    return torch.cos(2 * math.pi * k * torch.arange(n, dtype=torch.float64) / n)


def errors_of(prediction, truth):
    grid = unit_grid(*truth.shape[2:])
    return compute_errors([(prediction, truth)], n_times=truth.shape[1], grid=grid)


def test_waves_fall_into_their_bands():
    """Of 36 points the largest frequency is 18: 5 is low, 6 and 11 middle, 12 high.

    The truth has amplitude 1 in each band, the errors are 0.3, 0.1 and 0.2; so the own errors are
    these, and the shares these over √3.
    """
    n = 36
    truth = wave(n, 5) + wave(n, 11) + wave(n, 12)
    prediction = truth + 0.3 * wave(n, 5) + 0.1 * wave(n, 6) + 0.2 * wave(n, 12)
    errors = errors_of(prediction[None, None], truth[None, None])
    assert errors.band_l2 == pytest.approx({"low": 0.3, "middle": 0.1, "high": 0.2}, rel=1e-12)
    shares = {b: e / math.sqrt(3) for b, e in {"low": 0.3, "middle": 0.1, "high": 0.2}.items()}
    assert errors.band_share == pytest.approx(shares, rel=1e-12)


def test_a_diagonal_wave_counts_by_its_radius():
    """Frequencies (3, 3) of (6, 6) have the radius √2 / 2 ≥ 2/3; along an axis 3 is middle."""
    for ky, band in ((0, "middle"), (3, "high")):
        truth = (wave(12, 3)[:, None] * wave(12, ky)[None, :])[None, None]
        errors = errors_of(2 * truth, truth)
        expected = {name: float(name == band) for name in BANDS}
        assert errors.band_share == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("shape", [(8,), (9,), (1,), (6, 7), (7, 6), (4, 1, 5), (4, 6, 8)])
def test_squares_of_the_bands_add_up_to_the_total(shape):
    """Parseval, for even and odd axes; each frequency counts once, as a full transform has it."""
    generator = torch.Generator().manual_seed(0)
    truth, noise = torch.randn(2, 3, 2, *shape, generator=generator, dtype=torch.float64)
    sums = ErrorSums(components=2, n_times=1, grid=unit_grid(*shape), fields=("h", "u"))
    sums.update(truth + noise, truth)
    bands = sums.rows(band_squares)
    whole = torch.stack([noise.square().flatten(1).sum(1), truth.square().flatten(1).sum(1)], 1)
    torch.testing.assert_close(bands.sum(-1), whole, rtol=1e-12, atol=0)
    assert band_weights(sums.grid).sum() == math.prod(shape)
    total = [r.square() for r in torch.tensor(sums.errors().per_sample)]
    shares = bands[:, 0].sum(-1) / bands[:, 1].sum(-1)
    torch.testing.assert_close(torch.stack(total).double(), shares, rtol=1e-6, atol=0)


def test_bands_are_those_of_the_full_transform():
    """The slow way: all frequencies of a complex transform, one after another."""
    generator = torch.Generator().manual_seed(0)
    field = torch.randn(1, 1, 6, 8, generator=generator, dtype=torch.float64)
    sums = ErrorSums(components=1, n_times=1, grid=unit_grid(6, 8))
    sums.update(torch.zeros_like(field), field)
    found = sums.rows(band_squares)[0, 1]
    expected = torch.zeros(3, dtype=torch.float64)
    hat = torch.fft.fftn(field[0, 0], norm="ortho")
    for i in range(6):
        for j in range(8):
            r = math.hypot(min(i, 6 - i) / 3, min(j, 8 - j) / 4)
            expected[0 if r < 1 / 3 - 1e-9 else 1 if r < 2 / 3 - 1e-9 else 2] += (
                hat[i, j].abs() ** 2
            )
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_bands_without_truth_and_diverged_models():
    """An empty band counts 0 where it is exact and 1 where it is not; NaN is never good."""
    truth = wave(36, 1)[None, None]
    errors = errors_of(truth, truth)
    assert list(errors.band_share.values()) == [0, 0, 0]
    errors = errors_of(torch.full_like(truth, math.nan), truth)
    assert math.isnan(errors.band_l2["low"])
    zero = torch.zeros_like(truth)
    assert errors_of(zero + 1.0, zero).band_l2 == {"low": 1.0, "middle": 0.0, "high": 0.0}
