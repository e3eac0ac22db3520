import pytest
import torch

from sfo.training.loss import LOSSES, relative_h1, relative_l2


def test_a_wave_that_is_too_high_by_a_tenth():
    """û = 1.1 u is off by 10 % in every norm, whatever the wave, the size and the grid."""
    u = torch.stack([s * torch.randn(3, 8, 8, dtype=torch.float64) for s in (1, 1e-3, 1e3)])
    for loss in LOSSES.values():
        torch.testing.assert_close(loss(1.1 * u, u), torch.full((3,), 0.1, dtype=torch.float64))


def test_h1_of_a_sine():
    """e = ε sin 2πkx on top of u = sin 2πx: |e|₁ / |u|₁ = ε √((1 + 4π²k²) / (1 + 4π²))."""
    x = torch.arange(4096, dtype=torch.float64)[None, None] / 4096
    u, e = torch.sin(2 * torch.pi * x), 0.01 * torch.sin(2 * torch.pi * 5 * x)
    square = (2 * torch.pi) ** 2
    expected = 0.01 * ((1 + 25 * square) / (1 + square)) ** 0.5
    assert float(relative_h1(u + e, u)) == pytest.approx(expected, rel=1e-3)
    assert float(relative_l2(u + e, u)) == pytest.approx(0.01)


@pytest.mark.parametrize("name", LOSSES)
def test_nothing_is_lost_where_all_is_zero(name):
    """Not even where prediction and truth are both 0: the gradient is 0 there, not NaN."""
    prediction = torch.zeros(2, 1, 8, requires_grad=True)
    truth = torch.stack([torch.zeros(1, 8), torch.ones(1, 8)])
    errors = LOSSES[name](prediction, truth)
    assert errors.tolist() == [0, pytest.approx(1)]
    errors.sum().backward()
    assert prediction.grad.isfinite().all()
    assert prediction.grad[1].abs().max() > 0
