from math import ceil

import pytest
import torch
from torch.nn import functional as F

from sfo.models import MNO
from sfo.models.blocks import coordinates
from sfo.models.mno import SpectralHead, StateSpaceMixer

SMALL = dict(hidden_channels=8, n_layers=2, n_states=3)


def parameters(inputs, outputs, d, layers, ratio):
    """Lift, layers (mixer, two norms, two linear maps), norm and head, term by term."""
    inner, rank, states = 2 * d, ceil(d / 16), 16
    direction = inner * (rank + 2 * states) + inner * rank + inner + inner * states + inner
    mixer = 2 * inner * d + 2 * inner + 2 * direction + inner * d
    hidden = ratio * d
    layer = mixer + 4 * d + (d + 1) * hidden + (hidden + 1) * d
    return (inputs + 1) * d + layers * layer + 2 * d + (d + 1) * outputs


@pytest.mark.parametrize(
    ("benchmark", "formula", "count"),
    [
        ("allen_cahn", parameters(2, 101, d=96, layers=3, ratio=1), 305_765),
        ("diffusion_sorption", parameters(2, 101, d=96, layers=3, ratio=1), 305_765),
        ("diffusion_reaction", parameters(2, 101, d=96, layers=3, ratio=1), 305_765),
        ("cahn_hilliard", parameters(2, 101, d=96, layers=3, ratio=1), 305_765),
        ("shallow_water", parameters(3, 101, d=96, layers=6, ratio=2), 712_517),
        ("maxwell", parameters(12, 48, d=512, layers=4, ratio=1), 9_375_280),
    ],
)
def test_presets_have_these_parameters(benchmark, formula, count):
    with torch.device("meta"):
        model = MNO.from_paper(benchmark)
    assert sum(p.numel() for p in model.parameters()) == formula == count


def test_mixer_is_the_formula_point_by_point():
    mixer = StateSpaceMixer(5, expansion=2, n_states=3, rank=2).double()
    for p in mixer.parameters():
        torch.nn.init.normal_(p, std=0.5)
    v = torch.randn(9, 2, 5, dtype=torch.float64)
    u, z = F.silu(v @ mixer.enter.weight.T).split(10, dim=-1)
    y = torch.zeros_like(u)
    for k, order in enumerate([range(9), reversed(range(9))]):
        h = torch.zeros(2, 10, 3, dtype=torch.float64)
        rates = -torch.exp(mixer.log_rates[k]).T
        for t in order:
            low, b, c = (u[t] @ mixer.select[k].weight.T).split([2, 3, 3], dim=-1)
            delta = torch.log1p(torch.exp(low @ mixer.step[k].weight.T + mixer.step[k].bias))
            drive = (delta * u[t])[..., None] * b[:, None]
            h = torch.exp(delta[..., None] * rates) * h + drive
            y[t] += (h * c[:, None]).sum(-1) + mixer.skip[k] * u[t]
    normal = F.layer_norm(y, (10,), mixer.norm.weight, mixer.norm.bias)
    torch.testing.assert_close(mixer(v), (normal * z) @ mixer.leave.weight.T)


def test_swapping_the_directions_turns_the_sequence_around():
    mixer = StateSpaceMixer(6)
    v = torch.randn(11, 2, 6)
    forwards = mixer(v.flip(0)).flip(0)
    with torch.no_grad():
        for name, p in mixer.named_parameters():
            if name in ("log_rates", "skip"):
                p.copy_(p.flip(0).clone())
    mixer.select, mixer.step = mixer.select[::-1], mixer.step[::-1]
    torch.testing.assert_close(mixer(v), forwards)


@pytest.mark.parametrize("shape", [(4, 6), (2, 4, 3)])
def test_grid_is_read_row_by_row(shape):
    """With the same weights, a field is the sequence of its rows."""
    model = MNO(1, 2, len(shape), coordinates=False, **SMALL)
    line = MNO(1, 2, 1, coordinates=False, **SMALL)
    line.load_state_dict(model.state_dict())
    a = torch.randn(2, 1, *shape)
    torch.testing.assert_close(model(a).flatten(2), line(a.flatten(2)))


def test_every_point_sees_every_other():
    model = MNO(1, 1, **SMALL)
    a = torch.randn(1, 1, 20, requires_grad=True)
    for point in (0, 10, 19):
        (gradient,) = torch.autograd.grad(model(a)[0, 0, point], a)
        assert (gradient != 0).all()


def test_steps_start_between_a_thousandth_and_a_tenth():
    """Evenly on a logarithmic scale: half of them below a hundredth."""
    delta = torch.cat([F.softplus(step.bias) for step in StateSpaceMixer(512).step])
    assert 1e-3 <= delta.min() < 2e-3
    assert 5e-2 < delta.max() <= 1e-1
    assert 0.45 < (delta < 1e-2).double().mean() < 0.55


def test_upstream_normalises_after_each_sum():
    """v ← N(v + mix(v)), v ← N(v + W₂ max(0, W₁ v)), and no norm before Q."""
    model = MNO(1, 2, **SMALL, upstream=True).double()
    v = torch.randn(6, 2, 8, dtype=torch.float64)
    layer = model.layers[0]
    truth = F.layer_norm(v + layer.mixer(v), (8,))
    inner, _, outer = layer.update
    truth = F.layer_norm(truth + outer(torch.relu(inner(truth))), (8,))
    torch.testing.assert_close(layer(v), truth)
    assert isinstance(model.norm, torch.nn.Identity)


@pytest.mark.parametrize("shape", [(30,), (26, 25)])
def test_upstream_head_is_the_formula_in_plain_torch(shape):
    n_dim = len(shape)
    head = SpectralHead(5, 3, n_dim, hidden_channels=4, n_modes=6).double()
    v = torch.randn(2, 5, *shape, dtype=torch.float64)

    def mix(v, part):
        return F.linear(v.movedim(1, -1), part.weight, part.bias).movedim(-1, 1)

    truth = mix(torch.cat([v, coordinates(v)], 1), head.enter.mix)
    axes = tuple(range(2, v.ndim))
    for spectral, local in zip(head.spectral, head.local, strict=True):
        torch.nn.init.normal_(torch.view_as_real(spectral.weight.detach()))
        v_hat = torch.fft.rfftn(truth, dim=axes, norm="ortho")
        out_hat = torch.zeros_like(v_hat)
        rows = [slice(6), slice(-6, None)] if n_dim == 2 else [None]
        for rows_of, weights in zip(rows, spectral.weight.split(6), strict=True):
            block = (..., slice(6)) if rows_of is None else (..., rows_of, slice(6))
            out_hat[block] = torch.einsum("bi...,...io->bo...", v_hat[block], weights)
        k = torch.fft.irfftn(out_hat, s=shape, dim=axes, norm="ortho")
        truth = F.silu(k + mix(truth, local))
    truth = mix(F.silu(mix(truth, head.leave[0])), head.leave[2])
    torch.testing.assert_close(head(v), truth)


def test_upstream_model_has_the_parameters_of_its_parts():
    """The authors' configuration for Shallow Water: d 256, 6 layers, head of 32 channels."""
    with torch.device("meta"):
        model = MNO(10, 91, 2, hidden_channels=256, n_layers=6, norm=False, upstream=True)
    complex_weights = 2 * 2 * 12 * 12 * 32 * 32
    head = (258 + 1) * 32 + complex_weights + 2 * 33 * 32 + 33 * 128 + 129 * 91
    assert sum(p.numel() for p in model.project.parameters()) == head
