import copy
from dataclasses import replace

import pytest
import torch
from direct import direct_sum, toeplitz

from sfo.bases import usb_modes
from sfo.models import SFO
from sfo.models.blocks import MLP, fused
from sfo.models.kernel import SpectralKernel
from sfo.models.kernel_modes import MAX_GRIDS, MAX_SPECTRA, KernelModes, KernelOptions
from sfo.registry import BASES


def kernel(channels, n_modes, n_dim=1, *, skip=False, gate=False, **options):
    modes = KernelModes(KernelOptions(n_modes, n_dim, **options))
    return SpectralKernel(channels, modes, skip=skip, gate=gate).double()


def two_sided(phi):
    """Even and odd extension of a mode on t ≥ 0, as functions of a signed offset."""

    def even(t):
        return phi[abs(t)] / 2**0.5 if abs(t) < len(phi) else 0.0

    def odd(t):
        return (t > 0) * even(t) - (t < 0) * even(t)

    return even, odd


@pytest.mark.parametrize("boundary", ["zero", "reflect"])
@pytest.mark.parametrize("n", [8, 9])
def test_one_sided_against_toeplitz(boundary, n):
    k = kernel(1, 3, boundary=boundary)
    phi = usb_modes(n, 3)
    v = torch.randn(2, 1, n, dtype=torch.float64)
    kappa = (k.theta[:, 0, 0, None] * phi).sum(0)
    matrix = toeplitz(lambda t: kappa[t] if t >= 0 else 0.0, n, boundary)
    torch.testing.assert_close(k(v), v @ matrix.T)


@pytest.mark.parametrize("boundary", ["zero", "reflect"])
@pytest.mark.parametrize("n", [8, 9])
def test_two_sided_against_toeplitz(boundary, n):
    k = kernel(1, 4, boundary=boundary, support="two_sided")
    modes = [f for phi in usb_modes(n, 2) for f in two_sided(phi)]
    matrix = sum(
        theta * toeplitz(mode, n, boundary)
        for theta, mode in zip(k.theta[:, 0, 0], modes, strict=True)
    )
    v = torch.randn(2, 1, n, dtype=torch.float64)
    torch.testing.assert_close(k(v), v @ matrix.T)


@pytest.mark.parametrize("n", [8, 9])
def test_two_sided_on_a_circle(n):
    """Offsets run from −n/2 to n/2; the even modes are symmetric, the odd antisymmetric."""
    phi = KernelModes(KernelOptions(6, support="two_sided")).modes((n,))
    mirrored = phi.flip(1).roll(1, 1)
    torch.testing.assert_close(phi[::2], mirrored[::2])
    torch.testing.assert_close(phi[1::2], -mirrored[1::2])
    half = usb_modes(n // 2 + 1, 3) / 2**0.5
    torch.testing.assert_close(phi[::2, : n // 2 + 1], half)
    assert torch.linalg.matrix_rank(phi) == 6


def test_two_sided_tied_modes_run_through_all_parities():
    """In 2D, a derivative along one axis is odd in x and even in y: such modes must exist."""
    phi = KernelModes(KernelOptions(8, 2, support="two_sided")).modes((8, 6))

    def parity(mode, axis):
        mirrored = mode.flip(axis).roll(1, axis)
        return 1 if torch.allclose(mode, mirrored) else -1 if torch.allclose(mode, -mirrored) else 0

    parities = [(parity(m, 0), parity(m, 1)) for m in phi]
    assert parities == [(1, 1), (-1, 1), (1, -1), (-1, -1)] * 2


@pytest.mark.parametrize("options", [{}, {"support": "two_sided"}, {"index": "multi"}])
def test_spatial_kernel_is_the_one_applied(options):
    k = kernel(2, 2, 2, **options)
    v = torch.randn(1, 2, 6, 6, dtype=torch.float64)
    kappa = k.spatial((6, 6))
    delta = torch.zeros(2, 2, 6, 6, dtype=torch.float64)
    delta[[0, 1], [0, 1], 0, 0] = 1
    torch.testing.assert_close(k(delta).transpose(0, 1), kappa)
    torch.testing.assert_close(k(v), direct_sum(v, k.theta, k.modes.modes((6, 6))))


def test_correlation_is_convolution_with_the_mirrored_kernel():
    conv, corr = kernel(2, 3), kernel(2, 3, product="correlation")
    corr.load_state_dict(conv.state_dict())
    v = torch.randn(1, 2, 9, dtype=torch.float64)
    torch.testing.assert_close(corr(v.flip(-1)), conv(v).flip(-1))
    # The public code's route: multiply by the conjugate spectrum.
    phi_hat = torch.fft.rfft(usb_modes(9, 3))
    k_hat = torch.einsum("lij,lk->ijk", conv.theta.to(phi_hat), phi_hat.conj())
    s_hat = torch.einsum("ijk,bjk->bik", k_hat, torch.fft.rfft(v))
    torch.testing.assert_close(corr(v), torch.fft.irfft(s_hat, n=9))


def test_skip_is_a_pointwise_map():
    with_skip, without = kernel(3, 4, skip=True), kernel(3, 4)
    without.theta.data.copy_(with_skip.theta)
    v = torch.randn(2, 3, 10, dtype=torch.float64)
    pointwise = torch.einsum("ij,bjx->bix", with_skip.skip, v)
    torch.testing.assert_close(with_skip(v), without(v) + pointwise)


@pytest.mark.parametrize("width", [2, 3, 5])
@pytest.mark.parametrize("gate", [False, True])
def test_a_pointwise_map_that_follows_can_be_merged(width, gate):
    """The fused maps of a layer, merged or not, equal the update of the kernel's output."""
    k, update = kernel(3, 4, skip=True, gate=gate), MLP(3, width).double()
    v = torch.randn(2, 3, 10, dtype=torch.float64)
    first, add = fused(k, update)
    assert (first is not k) == (width <= 3 and not gate)
    torch.testing.assert_close(add(v, first(v)), v + update(k(v)))


@pytest.mark.parametrize("observed", ["kernel", "update", "update.inner"])
def test_an_observed_module_of_a_layer_is_called_with_its_own_field(observed):
    layer = SFO(1, 1, n_modes=4, hidden_channels=8, n_layers=1).double().layers[0]
    v = torch.randn(2, 8, 10, dtype=torch.float64)
    before, seen = layer(v), []
    x = layer.norm(v)
    k = layer.kernel(x)
    expected = {"kernel": (x, k), "update": (k, before - v), "update.inner": (k, None)}[observed]
    layer.get_submodule(observed).register_forward_hook(lambda m, i, o: seen.append((i[0], o)))
    torch.testing.assert_close(layer(v), before)
    for found, field in zip(*seen, expected, strict=True):
        if field is not None:
            torch.testing.assert_close(found, field)


@pytest.mark.parametrize("n_dim", [1, 2])
@pytest.mark.parametrize("support", ["one_sided", "two_sided"])
def test_unit_gain(n_dim, support):
    """E‖K̂(k)v̂‖² = ‖v̂‖² at the most amplified frequency, whatever n, L and d."""
    for n, n_modes, d in ((16, 4, 4), (64, 20, 8), (32, 8, 32)):
        modes = KernelModes(KernelOptions(n_modes, n_dim, gain="unit", support=support))
        phi_hat = torch.fft.fftn(modes.modes((n,) * n_dim), dim=tuple(range(1, n_dim + 1)))
        variance = (2 / d**0.5) ** 2 / 12
        gain = d * variance * phi_hat.abs().square().sum(0)
        assert gain.max() == pytest.approx(1)


@pytest.mark.parametrize("boundary", ["circular", "zero", "reflect"])
def test_restricted_modes_keep_the_operator(boundary):
    """The same smooth input on n/2, n and 2n points gives the same smooth output."""
    k = kernel(1, 6, boundary=boundary, transfer="restrict", support="two_sided")

    def field(n):
        x = torch.arange(n, dtype=torch.float64) / n
        return torch.exp(-30 * (x - 0.4) ** 2)[None, None]

    out = {n: k(field(n)) for n in (128, 64, 256)}
    scale = out[128].norm()
    assert (out[64] - out[128][..., ::2]).norm() < 0.02 * scale
    assert (out[256][..., ::2] - out[128]).norm() < 0.02 * scale


@pytest.mark.parametrize("n_dim", [1, 2])
def test_on_the_trained_grid_nothing_is_restricted(n_dim):
    """Bit for bit: how a model would be taken to other grids does not matter on its own."""
    shape = (24, 15)[:n_dim]
    modes = [
        KernelModes(KernelOptions(5, n_dim, gain="unit", transfer=way))
        for way in ("rebuild", "restrict")
    ]
    assert torch.equal(*(m.modes(shape) for m in modes))


def test_rebuilt_modes_keep_the_scale():
    """On another grid √(n₀/n) keeps the sum over points at the integral's size.

    Not exactly: φ₁ itself drifts with n, 6 % a doubling.
    """
    k = kernel(1, 1)
    ones = {n: torch.ones(1, 1, n, dtype=torch.float64) for n in (256, 128, 512)}
    at_256, at_128, at_512 = (k(v).mean().item() for v in ones.values())
    assert at_128 == pytest.approx(at_256, rel=0.08)
    assert at_512 == pytest.approx(at_256, rel=0.08)
    fresh = kernel(1, 1)
    fresh.load_state_dict(k.state_dict())
    assert abs(fresh(ones[128]).mean().item() / at_256 - 1) > 0.2


def test_modes_are_built_once(monkeypatch):
    k = SpectralKernel(2, KernelModes(KernelOptions(3)))
    calls = []
    monkeypatch.setitem(BASES._entries, "usb", lambda *a: calls.append(a) or usb_modes(*a))
    for _ in range(3):
        k(torch.zeros(1, 2, 12))
    assert calls == [(12, 3)]


def test_more_modes_than_points():
    with pytest.raises(ValueError, match=r"20 one_sided modes do not fit an axis of 16 points"):
        kernel(1, 20)(torch.zeros(1, 1, 16, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"at most 9 independent ones do, 10 are needed"):
        kernel(1, 20, support="two_sided")(torch.zeros(1, 1, 16, dtype=torch.float64))


def test_a_bounded_number_of_grids_is_kept():
    k = kernel(1, 3)
    for n in range(8, 40):
        k(torch.zeros(1, 1, n, dtype=torch.float64))
    assert len(k.modes._prepared) == MAX_GRIDS


def test_other_precisions_and_options_do_not_pile_up():
    """What is kept for one grid is bounded as well."""
    k = kernel(1, 3)
    for n in range(4, 40):
        k.modes.train_shape = (n,)
        k(torch.zeros(1, 1, 64, dtype=torch.float64))
    assert len(k.modes._prepared) == MAX_SPECTRA


@pytest.mark.parametrize("basis", BASES.names())
def test_every_process_has_the_same_modes(basis):
    """To the bit, whatever its random numbers, threads, precision and the grids of before."""
    v = torch.randn(1, 2, 24)

    def prepared(seed, dtype, first):
        torch.manual_seed(seed)
        with_dtype = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            modes = KernelModes(KernelOptions(5, basis=basis), train_shape=(24,))
            for n in first:
                modes.modes((n,))
            k = SpectralKernel(2, modes).float()
            with torch.no_grad():
                k.theta.copy_(torch.arange(k.theta.numel()).reshape(k.theta.shape))
            return modes.modes((24,)), k(v)
        finally:
            torch.set_default_dtype(with_dtype)

    first = prepared(0, torch.float32, ())
    second = prepared(1, torch.float64, (32, 12))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_a_forward_pass_in_eval_mode_changes_nothing():
    """Another grid first, then the training grid: as if the first had never been."""
    torch.manual_seed(0)
    k = kernel(2, 4)
    fresh = copy.deepcopy(k)
    v = torch.randn(1, 2, 32, dtype=torch.float64)
    k.eval()(torch.randn(1, 2, 16, dtype=torch.float64))
    torch.testing.assert_close(k.train()(v), fresh(v), rtol=0, atol=0)


def test_a_changed_option_is_seen():
    """What was prepared for other options is not used."""
    k = kernel(1, 4)
    v = torch.randn(1, 1, 16, dtype=torch.float64)
    k(v)
    k.modes.options = replace(k.modes.options, product="correlation")
    torch.testing.assert_close(k(v.flip(-1)).flip(-1), k_convolution(k, v))
    with pytest.raises(AttributeError, match="product"):  # It would change nothing.
        k.modes.product = "convolution"


def k_convolution(k, v):
    twin = copy.deepcopy(k)
    twin.modes.options = replace(k.modes.options, product="convolution")
    return twin(v)


@pytest.mark.parametrize("support", ["one_sided", "two_sided"])
@pytest.mark.parametrize("boundary", ["circular", "zero"])
def test_low_modes_complete_the_basis(support, boundary):
    """They are orthonormal to it, and constants and the lowest waves are now in its span."""
    n, low = 32, 2
    options = KernelOptions(6, support=support, boundary=boundary)
    phi = KernelModes(options).modes((n,))
    more = KernelModes(replace(options, low_modes=low)).modes((n,))
    torch.testing.assert_close(more[:6], phi)
    extra = more[6:]
    torch.testing.assert_close(extra @ extra.T, torch.eye(1 + 2 * low, dtype=phi.dtype))
    assert (extra @ phi.T).abs().max() < 1e-12
    period = phi.shape[1]
    reached = slice(0, n) if support == "one_sided" else slice(0, period)
    t = torch.arange(period, dtype=torch.float64)
    waves = [torch.ones(period, dtype=torch.float64)]
    for k in range(1, low + 1):
        waves += [
            torch.cos(2 * torch.pi * k * t / period),
            torch.sin(2 * torch.pi * k * t / period),
        ]
    for wave in waves:
        inside = torch.zeros_like(wave)
        inside[reached] = wave[reached]
        if support == "two_sided" and boundary == "zero":
            inside[n] = 0
        error = inside - torch.linalg.lstsq(more.T, inside[:, None]).solution[:, 0] @ more
        assert error.norm() < 1e-10
        missed = inside - torch.linalg.lstsq(phi.T, inside[:, None]).solution[:, 0] @ phi
        assert missed.norm() > 1e-3


def test_low_modes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"`low_modes` = 3 adds 7 modes to the 10 .* at most 16"):
        kernel(1, 10, low_modes=3)(torch.zeros(1, 1, 16, dtype=torch.float64))


def test_gate_multiplies_what_enters_the_convolution():
    k = kernel(3, 4, skip=True, gate=True)
    v = torch.randn(2, 3, 10, dtype=torch.float64)
    g = 2 * torch.sigmoid(torch.einsum("ij,bjx->bix", k.gate.weight, v) + k.gate.bias[:, None])
    truth = direct_sum(g * v, k.theta, k.modes.modes((10,)))
    torch.testing.assert_close(k(v), truth + torch.einsum("ij,bjx->bix", k.skip, v))
