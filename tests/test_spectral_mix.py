import pytest
import torch
from direct import direct_sum

from sfo import spectral_mix as module
from sfo.bases import multi_index, tied_index, usb_modes
from sfo.spectral_mix import mix_by_definition, mode_spectrum, spectral_mix

GRIDS = [
    ((8,), ()),
    ((7,), ()),
    ((4, 6), ()),
    ((5, 5), [(0, 1)]),
    ((6, 6), [(0, 1)]),
    ((4, 3, 4), [(0, 2)]),
    ((4, 4, 4), [(0, 1, 2)]),
    ((3, 3, 3), [(0, 1, 2)]),
]


def problem(shape, dtype=torch.float64, batch=2, channels=(3, 2), n_modes=3):
    phi = tied_index([usb_modes(n, n_modes) for n in shape]).to(dtype)
    v = torch.randn(batch, channels[1], *shape, dtype=dtype)
    theta = torch.randn(n_modes, *channels, dtype=dtype)
    return v, theta, phi


@pytest.mark.parametrize(("shape", "exchange"), GRIDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_equals_the_direct_sum(shape, exchange, dtype, tolerance):
    v, theta, phi = problem(shape, dtype)
    truth = direct_sum(v.double(), theta.double(), phi.double())
    for groups in ((), exchange):
        spectrum = mode_spectrum(phi, groups)
        for mix in (spectral_mix, mix_by_definition):
            assert (mix(v, theta, spectrum) - truth).abs().max() <= tolerance * truth.abs().max()


@pytest.mark.parametrize(("shape", "exchange"), GRIDS)
def test_gradients(shape, exchange):
    v, theta, phi = problem(shape, batch=1, channels=(2, 2), n_modes=2)
    spectrum = mode_spectrum(phi, exchange)
    inputs = (v.requires_grad_(), theta.requires_grad_())
    torch.autograd.gradcheck(lambda v, t: spectral_mix(v, t, spectrum), inputs, fast_mode=True)
    torch.autograd.gradgradcheck(lambda v, t: spectral_mix(v, t, spectrum), inputs, fast_mode=True)


@pytest.mark.parametrize(("shape", "exchange"), [((16,), ()), ((8, 8), [(0, 1)])])
def test_many_small_chunks_give_the_same(shape, exchange, monkeypatch):
    v, theta, phi = problem(shape)
    v.requires_grad_()
    theta.requires_grad_()
    spectrum = mode_spectrum(phi, exchange)

    def run():
        out = spectral_mix(v, theta, spectrum)
        return out, *torch.autograd.grad(out.square().sum(), (v, theta))

    whole = run()
    monkeypatch.setattr(module, "CHUNK", 40)
    for a, b in zip(whole, run(), strict=True):
        torch.testing.assert_close(a, b)


def test_orbits_share_matrices():
    """Under exchange and conjugation 32³ points have 3,534 distinct K̂, not 17,408."""
    phi = tied_index([usb_modes(32, 2)] * 3)
    spectrum = mode_spectrum(phi, [(0, 1, 2)])
    assert len(spectrum.phi_hat) < 17_408 / 4
    assert sorted(spectrum.order.tolist()) == list(range(17_408))
    for part, truth in zip(spectrum.full(), mode_spectrum(phi).full(), strict=True):
        torch.testing.assert_close(part, truth)


def test_multi_index_modes():
    shape = (4, 5)
    phi = multi_index([usb_modes(n, 2) for n in shape])
    v, theta = torch.randn(2, 2, *shape).double(), torch.randn(4, 2, 2).double()
    torch.testing.assert_close(
        spectral_mix(v, theta, mode_spectrum(phi)), direct_sum(v, theta, phi)
    )


def test_a_shift_of_the_input_shifts_the_output():
    v, theta, phi = problem((9, 6))
    spectrum = mode_spectrum(phi)
    shifted = spectral_mix(v.roll((2, -1), (2, 3)), theta, spectrum)
    torch.testing.assert_close(shifted, spectral_mix(v, theta, spectrum).roll((2, -1), (2, 3)))


def test_backward_keeps_no_kernel_spectrum():
    """What is saved is of the field's size: the input and its spectrum, nothing L times it."""
    v, theta, phi = problem((64,), n_modes=16, channels=(8, 8))
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: saved.append(x) or x, lambda x: x)
    with hooks:
        spectral_mix(v.requires_grad_(), theta.requires_grad_(), mode_spectrum(phi))
    assert sum(x.numel() for x in saved) <= 2.1 * v.numel() + theta.numel()
