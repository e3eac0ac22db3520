import pytest
import torch
from direct import direct_sum

from sfo.bases import multi_index, tied_index, usb_modes
from sfo.factored_mix import (
    factored_mix,
    factored_spectrum,
    mix_by_definition,
    mix_with_kernel,
)

SHAPES = [(8,), (7,), (4, 6), (5, 3), (4, 3, 5), (3, 4, 4)]


def problem(shape, tied, channels=3, batch=2, n_modes=3):
    axes = [usb_modes(n, n_modes) for n in shape]
    phi = (tied_index if tied else multi_index)(axes)
    v = torch.randn(batch, channels, *shape, dtype=torch.float64)
    theta = torch.randn(channels, len(phi), dtype=torch.float64)
    return v, theta, phi, factored_spectrum(axes, tied=tied)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tied", [True, False])
def test_equals_the_direct_sum_with_diagonal_matrices(shape, tied):
    v, theta, phi, spectrum = problem(shape, tied)
    truth = direct_sum(v, torch.diag_embed(theta.T), phi)
    kernel = spectrum.kernel(theta)
    for out in (
        factored_mix(v, theta, spectrum),
        mix_by_definition(v, theta, spectrum),
        mix_with_kernel(v, kernel, spectrum),
    ):
        assert (out - truth).abs().max() <= 1e-12 * truth.abs().max()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tied", [True, False])
def test_gradients(shape, tied):
    v, theta, _, spectrum = problem(shape, tied, channels=2, n_modes=2)
    inputs = (v.requires_grad_(), theta.requires_grad_())

    def mix(v, theta):
        return factored_mix(v, theta, spectrum)

    torch.autograd.gradcheck(mix, inputs, fast_mode=True, check_forward_ad=True)
    torch.autograd.gradgradcheck(mix, inputs, fast_mode=True)


@pytest.mark.parametrize("tied", [True, False])
def test_zeros_between_a_field_and_its_image_make_the_product_linear(tied):
    """On a grid of twice the points, no point sees another through the edge."""
    shape = (5, 4)
    axes = [torch.nn.functional.pad(usb_modes(n, 2), (0, n)) for n in shape]
    phi = (tied_index if tied else multi_index)(axes)
    v = torch.randn(2, 3, *shape, dtype=torch.float64)
    theta = torch.randn(3, len(phi), dtype=torch.float64)
    around = torch.nn.functional.pad(v, (0, 4, 0, 5))
    truth = direct_sum(around, torch.diag_embed(theta.T), phi)[..., :5, :4]
    out = factored_mix(v, theta, factored_spectrum(axes, tied=tied))
    torch.testing.assert_close(out, truth)


def test_transforms_of_torch_func():
    """Per-sample gradients and ensembles by vmap equal loops; jvp equals differences."""
    v, theta, _, spectrum = problem((4, 6), tied=False)

    def loss(theta, sample):
        return factored_mix(sample[None], theta, spectrum).square().sum()

    per_sample = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(theta, v)
    torch.testing.assert_close(
        per_sample, torch.stack([torch.func.grad(loss)(theta, s) for s in v])
    )
    ensemble = torch.stack([theta, 2 * theta])
    together = torch.func.vmap(lambda t: factored_mix(v, t, spectrum))(ensemble)
    torch.testing.assert_close(together[1], 2 * together[0])
    dv = torch.randn_like(v)
    _, tangent = torch.func.jvp(lambda v: factored_mix(v, theta, spectrum), (v,), (dv,))
    torch.testing.assert_close(tangent, factored_mix(dv, theta, spectrum))
