import pytest
import torch

from sfo import fft


def test_half_weights_make_parseval():
    for n in (7, 8):
        v = torch.randn(n, dtype=torch.float64)
        energy = (fft.half_weights((n,)) * torch.fft.rfft(v).abs() ** 2).sum() / n
        torch.testing.assert_close(energy, v.square().sum())


@pytest.mark.parametrize("shape", [(6,), (5, 4), (3, 4, 7)])
def test_back_axis_by_axis_is_the_inverse_too(shape):
    v = torch.randn(2, *shape, dtype=torch.float64)
    v_hat = fft.rfftn(v, len(shape))
    kept = v_hat.clone()
    torch.testing.assert_close(fft.irfftn_by_axis(v_hat, shape), v)
    assert torch.equal(v_hat, kept)


def test_resampled_kernel_acts_the_same_on_band_limited_fields():
    """Filtering on 16 points and looking at 12, or filtering on 12: the same numbers."""
    x16 = torch.arange(16, dtype=torch.float64) / 16
    x12 = torch.arange(12, dtype=torch.float64) / 12
    kernel = torch.randn(16, dtype=torch.float64)

    def field(x):
        return 1 + torch.cos(2 * torch.pi * 3 * x + 0.3) + torch.sin(2 * torch.pi * 5 * x)

    def convolve(kernel, v):
        return torch.fft.irfft(torch.fft.rfft(kernel) * torch.fft.rfft(v), n=len(v))

    def at(v_on_16, x):
        v_hat = torch.fft.rfft(v_on_16) / 16
        k = torch.arange(9, dtype=torch.float64)
        weights = fft.half_weights((16,))
        waves = torch.exp(2j * torch.pi * (k * x[:, None]).to(torch.complex128))
        return (waves * (weights * v_hat)).real.sum(dim=1)

    coarse = convolve(fft.resample(kernel, 12), field(x12))
    torch.testing.assert_close(coarse, at(convolve(kernel, field(x16)), x12))
    fine = convolve(fft.resample(kernel, 48), field(torch.arange(48, dtype=torch.float64) / 48))
    torch.testing.assert_close(fine[::3], convolve(kernel, field(x16)))
