from itertools import product
from math import prod

import pytest
import torch
from torch.nn import functional as F

from sfo.models import FNO, spectral_conv
from sfo.models.blocks import coordinates
from sfo.models.build import build_model
from sfo.models.spectral_conv import FourierModes, SpectralConv, low_pass


def convolution(in_channels, out_channels, n_modes):
    """In double precision, with weights of ordinary size."""
    conv = SpectralConv(in_channels, out_channels, FourierModes(n_modes)).double()
    torch.nn.init.normal_(conv.weight)
    return conv


def direct_sum(conv, v, shape):
    """Σ_k W(k) v̂(k) exp(2πi k·x/n), frequency by frequency, k and −k together."""
    grid = v.shape[2:]
    points = [torch.arange(n, dtype=torch.float64) / n for n in grid]
    new_points = [torch.arange(n, dtype=torch.float64) / n for n in shape]
    kept = conv.modes.kept([min(n) for n in zip(grid, shape, strict=True)])
    out = torch.zeros(len(v), conv.weight.shape[-1], *shape, dtype=torch.float64)
    for k in product(*kept):
        wave, new_wave = (
            torch.exp(2j * torch.pi * sum(torch.meshgrid(*axes, indexing="ij")))
            for axes in (
                [a * x for a, x in zip(k, points, strict=True)],
                [a * x for a, x in zip(k, new_points, strict=True)],
            )
        )
        v_hat = (v * wave.conj()).flatten(2).sum(-1) / prod(grid)
        s_hat = v_hat @ conv.weight[k]
        once = k[-1] == 0 or 2 * k[-1] == shape[-1]
        term = (s_hat.view(*s_hat.shape, *[1] * len(shape)) * new_wave).real
        out += term if once else 2 * term
    return out


CASES = [
    ((16,), (16,), (4,)),
    ((9,), (9,), (20,)),
    ((8,), (8,), (5,)),
    ((16,), (7,), (5,)),
    ((6,), (11,), (9,)),
    ((6, 7), (6, 7), (2, 3)),
    ((5, 6), (5, 6), (4, 4)),
    ((8, 9), (4, 11), (3, 4)),
    ((5, 4, 6), (5, 4, 6), (2, 3, 2)),
    ((6, 5, 4), (3, 7, 8), (3, 2, 2)),
]


@pytest.mark.parametrize(("grid", "shape", "n_modes"), CASES)
def test_convolution_is_the_sum_over_frequencies(grid, shape, n_modes):
    """Also where a grid has fewer frequencies than asked for, and from one grid to another."""
    conv = convolution(2, 3, n_modes)
    v = torch.randn(2, 2, *grid, dtype=torch.float64)
    torch.testing.assert_close(conv(v, shape), direct_sum(conv, v, shape))


@pytest.mark.parametrize(("grid", "shape", "n_modes"), CASES)
def test_matrices_and_fast_transforms_agree(grid, shape, n_modes, monkeypatch):
    conv = convolution(2, 3, n_modes)
    v = torch.randn(2, 2, *grid, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(2, 3, *shape, dtype=torch.float64)
    answers = []
    for limit in (spectral_conv.MATRIX_MODES, 0):
        monkeypatch.setattr(spectral_conv, "MATRIX_MODES", limit)
        u = conv(v, shape)
        answers.append((u, *torch.autograd.grad((u * direction).sum(), (v, conv.weight))))
    for by_matrix, by_fft in zip(*answers, strict=True):
        torch.testing.assert_close(by_matrix, by_fft)


@pytest.mark.parametrize("shape", [(24,), (12, 10), (8, 10, 9)])
def test_convolution_can_be_the_exact_derivative(shape):
    """W(k) = 2πi k along an axis differentiates every field of lower frequency."""
    n_modes = (3,) * len(shape)
    generator = torch.Generator().manual_seed(1)
    lines = [torch.arange(n, dtype=torch.float64) / n for n in shape]
    x = torch.stack(torch.meshgrid(*lines, indexing="ij"))
    for axis in range(len(shape)):
        conv = convolution(1, 1, n_modes)
        k = torch.tensor(list(product(*conv.modes.kept(shape))), dtype=torch.complex128)
        with torch.no_grad():
            conv.weight.copy_((2j * torch.pi * k[:, axis]).view_as(conv.weight))
        v, truth = torch.zeros(2, *shape, dtype=torch.float64)
        for _ in range(5):
            wave = torch.randint(-2, 3, (len(shape),), generator=generator).double()
            angle = 2 * torch.pi * torch.tensordot(wave, x, 1)
            v += angle.cos() + 0.5 * angle.sin()
            truth += 2 * torch.pi * wave[axis] * (0.5 * angle.cos() - angle.sin())
        torch.testing.assert_close(conv(v[None, None])[0, 0], truth, atol=1e-11, rtol=0)


def test_convolution_has_the_right_derivatives():
    conv = convolution(2, 1, (2, 2))
    v = torch.randn(1, 2, 5, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(conv, (v,))
    assert torch.autograd.gradgradcheck(conv, (v,))


def test_low_pass_keeps_slow_waves_and_drops_fast_ones():
    x = 2 * torch.pi * torch.arange(16, dtype=torch.float64) / 16
    slow = torch.cos(2 * x)[:, None] * torch.sin(x)
    fast = torch.cos(5 * x)[:, None] * torch.sin(x) + torch.cos(4 * x)
    kept = low_pass((slow + fast)[None, None], [4, 4])[0, 0]
    torch.testing.assert_close(kept, slow)


def test_weights_stay_complex_in_every_precision():
    """torch itself drops the imaginary part in `.to` and forgets the weights in `.double`."""
    model = FNO(1, 1, n_modes=3, hidden_channels=4, n_layers=1)
    weight = model.layers[0].spectral.weight.detach().clone()
    a = torch.randn(1, 1, 12)
    u = model(a)
    for convert in (model.double, lambda: model.to(torch.float64)):
        convert()
        assert model.layers[0].spectral.weight.dtype == torch.complex128
        torch.testing.assert_close(model(a.double()).float(), u)
        model.float()
    model.to(torch.bfloat16)
    rounded = torch.view_as_complex(torch.view_as_real(weight).bfloat16().float())
    assert torch.equal(model.layers[0].spectral.weight, rounded)


def test_only_the_norms_that_the_paper_counts_are_never_used():
    model = FNO(2, 3, 3, n_modes=2, hidden_channels=4, unused_norms=True)
    model(torch.randn(1, 2, 6, 5, 4)).square().sum().backward()
    unused = {name for name, p in model.named_parameters() if p.grad is None}
    assert unused == {name for name, p in model.named_parameters() if not p.requires_grad}
    assert unused == {f"unused_norms.{i}.{kind}" for i in range(4) for kind in ("weight", "bias")}


def test_model_is_the_formula_in_plain_torch():
    """Lift, pad, σ(K v + W v + b), crop, project: written out on two axes."""
    model = FNO(2, 3, 2, n_modes=(3, 2), hidden_channels=5, n_layers=3, padding=(1, 2)).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.spectral.weight)
    a = torch.randn(2, 2, 10, 9, dtype=torch.float64)

    def linear(v, part):
        return F.linear(v.movedim(1, -1), part.weight, part.bias).movedim(-1, 1)

    v = F.pad(linear(torch.cat([a, coordinates(a)], 1), model.lift[0].mix), (0, 2, 0, 1))
    for i, layer in enumerate(model.layers):
        v_hat = torch.fft.rfft2(v)
        out_hat = torch.zeros_like(v_hat)
        weight = layer.spectral.weight
        for rows, half in ((slice(0, 3), weight[:3]), (slice(-3, None), weight[3:])):
            out_hat[:, :, rows, :2] = torch.einsum("bixy,xyio->boxy", v_hat[:, :, rows, :2], half)
        v = torch.fft.irfft2(out_hat, s=v.shape[2:]) + linear(v, layer.skip)
        v = F.gelu(v) if i < 2 else v
    v = v[:, :, :10, :9]
    truth = linear(F.gelu(linear(v, model.project[1])), model.project[3])
    torch.testing.assert_close(model(a), truth)


@pytest.mark.parametrize("shape", [(20,), (12, 9), (6, 8, 7)])
def test_commutes_with_shifts(shape):
    """Without coordinates and padding every point of the periodic domain is like every other."""
    settings = dict(n_modes=3, hidden_channels=6, n_layers=2, padding=0, coordinates=False)
    model = FNO(1, 2, len(shape), **settings).double()
    a = torch.randn(2, 1, *shape, dtype=torch.float64)
    axes, steps = tuple(range(2, a.ndim)), tuple(range(3, 3 + len(shape)))
    torch.testing.assert_close(model(a.roll(steps, axes)), model(a).roll(steps, axes))


def test_refining_the_grid_does_not_change_the_solution():
    """What a grid cannot resolve are the nonlinearities' high frequencies, which fall off fast."""
    settings = dict(n_modes=4, hidden_channels=8, padding=0, coordinates=False)
    model = FNO(1, 1, **settings).double()
    for layer in model.layers:
        torch.nn.init.normal_(layer.spectral.weight, std=0.5)

    @torch.no_grad()
    def solve(n):
        x = 2 * torch.pi * torch.arange(n, dtype=torch.float64) / n
        return model(3 * (torch.sin(x) + torch.cos(3 * x))[None, None])

    reference = solve(512)
    errors = [(solve(n) - reference[..., :: 512 // n]).abs().max() for n in (32, 64, 128)]
    assert errors[0] < 0.1
    assert errors[1] < errors[0] / 20
    assert errors[2] < errors[1] / 200


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_complex_weights_survive_a_trip_to_disk(dtype, tmp_path):
    """safetensors stores complex64 in new versions only, and complex128 in none."""
    model = FNO(1, 2, n_modes=3, hidden_channels=4, n_layers=1).to(dtype)
    model.save_pretrained(tmp_path / "model")
    a = torch.randn(2, 1, 16, dtype=dtype)
    assert torch.equal(FNO.from_pretrained(tmp_path / "model")(a), model(a))


@pytest.mark.parametrize(
    ("shape", "modes"), [((64,), [16]), ((64, 10), [12, 6]), ((8, 32, 8), [5, 8, 5])]
)
def test_default_modes_on_several_axes_are_as_many_as_a_grid_uses(shape, modes):
    """An axis of n points has n // 2 + 1 frequencies; what is said stays as it is."""
    facts = dict(in_channels=1, out_channels=1, n_dim=len(shape), train_shape=shape)
    model = build_model("fno", preset="default", hidden_channels=2, **facts)
    assert model.arguments["n_modes"] == modes
    given = build_model("fno", preset="default", hidden_channels=2, n_modes=9, **facts)
    assert given.arguments["n_modes"] == [9] * len(shape)
    paper = build_model("fno", "maxwell", train_shape=(8, 8, 8))
    assert paper.arguments["n_modes"] == [8, 8, 8]
