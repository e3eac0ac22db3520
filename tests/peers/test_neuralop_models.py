"""neuraloperator's FNO and UNO as models of this package, and beside our own."""

import sys

import pytest
import torch
from torch.nn import functional as F

from sfo.models import FNO, NeuralopFNO, NeuralopUNO
from sfo.models.spectral_conv import FourierModes, SpectralConv
from sfo.registry import MODELS
from sfo.training.config import Experiment
from sfo.training.fit import fit, load_best
from sfo.training.loss import relative_l2
from sfo.training.muon import Muon, orthogonalise
from sfo.training.prepare import load_pairs

PEERS = {
    "neuralop_fno": dict(n_modes=8, hidden_channels=16, n_layers=2),
    "neuralop_uno": dict(n_modes=(8, 4, 4, 4, 8), hidden_channels=16),
}


def copy_weight(ours, theirs):
    """theirs has (in, out, *frequencies), the frequencies of both signs in ascending order."""
    weight = theirs.weight.to_tensor().detach()
    for axis in range(2, weight.ndim - 1):
        weight = torch.fft.ifftshift(weight, dim=axis)
    with torch.no_grad():
        ours.weight.copy_(weight.movedim((0, 1), (-2, -1)))


@pytest.mark.parametrize("name", PEERS)
def test_missing_library_is_named(name, monkeypatch):
    """The names are listed all the same."""
    monkeypatch.setitem(sys.modules, "neuralop", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[peers\]' in the clone"):
        MODELS[name](1, 1)


@pytest.mark.peers
@pytest.mark.parametrize(
    ("grid", "shape"),
    [
        ((16,), (16,)),
        ((17,), (17,)),
        ((16,), (9,)),
        ((12,), (31,)),
        ((16, 13), (16, 13)),
        ((8, 10, 7), (8, 10, 7)),
    ],
)
def test_spectral_convolutions_agree(grid, shape):
    """Not on odd axes but the last, nor to another grid on several axes: there theirs errs."""
    layers = pytest.importorskip("neuralop.layers.spectral_convolution")
    m = 3
    # They count both signs, and keep half of that number and one more along the last axis.
    counts = (*[2 * m] * (len(grid) - 1), 2 * (m - 1))
    theirs = layers.SpectralConv(2, 3, counts, bias=False)
    ours = SpectralConv(2, 3, FourierModes((m,) * len(grid)))
    copy_weight(ours, theirs)
    v = torch.randn(2, 2, *grid)
    torch.testing.assert_close(ours(v, shape), theirs(v, output_shape=shape))


@pytest.mark.peers
@pytest.mark.parametrize("n_dim", [1, 2, 3])
def test_models_agree_on_copied_weights(n_dim):
    """Their FNO without its channel MLPs is ours without padding."""
    models = pytest.importorskip("neuralop.models")
    m, d = 3, 6
    # Where there is no MLP between, they apply the activation twice: let the second do nothing.
    activations = iter([*[F.gelu, torch.Tensor.clone] * 3, F.gelu])
    ours = FNO(
        2,
        3,
        n_dim,
        n_modes=m,
        hidden_channels=d,
        projection_channels=12,
        padding=0,
        coordinates=False,
    )
    theirs = models.FNO(
        n_modes=(*[2 * m] * (n_dim - 1), 2 * (m - 1)),
        in_channels=2,
        out_channels=3,
        hidden_channels=d,
        lifting_channel_ratio=0,
        projection_channel_ratio=2,
        positional_embedding=None,
        use_channel_mlp=False,
        non_linearity=lambda v: next(activations)(v),
    )
    state = ours.state_dict()
    pairs = [
        ("lift.0.mix", theirs.lifting.fcs[0]),
        ("project.1", theirs.projection.fcs[0]),
        ("project.3", theirs.projection.fcs[1]),
    ]
    for name, part in pairs:
        state[f"{name}.weight"].copy_(part.weight.detach().flatten(1))
        state[f"{name}.bias"].copy_(part.bias.detach())
    blocks = theirs.fno_blocks
    for layer, conv, skip in zip(ours.layers, blocks.convs, blocks.fno_skips, strict=True):
        copy_weight(layer.spectral, conv)
        with torch.no_grad():
            layer.skip.weight.copy_(skip.conv.weight.flatten(1))
            layer.skip.bias.copy_(conv.bias.flatten())
    a = torch.randn(2, 2, *[10] * n_dim)
    torch.testing.assert_close(ours(a), theirs(a), rtol=1e-4, atol=1e-5)


@pytest.mark.peers
@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("shape", [(17,), (8, 11), (6, 8, 7)])
def test_wrapped_models_are_operators(name, shape, tmp_path, capsys):
    """Samples are independent, every weight has a gradient, nothing is printed, disk works."""
    pytest.importorskip("neuralop")
    model = MODELS[name](2, 3, len(shape), **PEERS[name])
    a = torch.randn(3, 2, *shape)
    u = model(a)
    assert u.shape == (3, 3, *shape)
    torch.testing.assert_close(model(a[1:2]), u[1:2])
    u.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    loaded = MODELS[name].from_pretrained(model.save_pretrained(tmp_path))
    assert torch.equal(loaded(a), u)
    assert capsys.readouterr().out == ""


@pytest.mark.peers
@pytest.mark.parametrize("name", PEERS)
def test_wrapped_models_learn_two_samples(name):
    pytest.importorskip("neuralop")
    torch.manual_seed(1)
    model = MODELS[name](1, 2, **PEERS[name])
    a, u = torch.randn(2, 1, 32), torch.randn(2, 2, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
    for _ in range(400):
        optimizer.zero_grad()
        loss = ((model(a) - u).norm(dim=(1, 2)) / u.norm(dim=(1, 2))).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    assert loss < 0.01


@pytest.mark.peers
@pytest.mark.parametrize("name", PEERS)
def test_wrapped_models_are_trained_and_found_again(name, tmp_path):
    """As `test_every_model_is_trained_and_found_again` has it of our own models."""
    pytest.importorskip("neuralop")
    train = dict(epochs=2, ema=0.9, normaliser="standard")
    settings = dict(PEERS[name], hidden_channels=8)
    experiment = Experiment.of("allen_cahn", name, scale="smoke", settings=settings, train=train)
    run = fit(experiment, tmp_path)
    assert run.history[1]["loss"] < run.history[0]["loss"]
    validation = load_pairs(experiment, "validation")
    with torch.no_grad():
        errors = relative_l2(load_best(tmp_path)(validation.a), validation.u)
    assert float(errors.mean()) == pytest.approx(min(r["validation"] for r in run.history))


@pytest.mark.peers
@pytest.mark.parametrize("model", [NeuralopFNO, NeuralopUNO])
def test_presets_are_of_the_size_of_our_own(model):
    """Same widths and modes: within a factor of two of the paper's parameters."""
    pytest.importorskip("neuralop")
    own = MODELS[{NeuralopFNO: "fno", NeuralopUNO: "uno"}[model]]
    for benchmark in ("allen_cahn", "shallow_water"):
        theirs, ours = (
            sum(p.numel() for p in kind.from_paper(benchmark).parameters()) for kind in (model, own)
        )
        assert 0.5 < theirs / ours < 2


@pytest.mark.peers
@pytest.mark.parametrize("name", PEERS)
def test_muon_sees_a_matrix_per_frequency(name):
    """Its first step is the gradient of that frequency, in × out, orthogonalised."""
    pytest.importorskip("neuralop")
    model = MODELS[name](1, 2, 2, **PEERS[name])
    spectral = [p for p in model.parameters() if p.is_complex()]
    before = [p.detach().clone() for p in spectral]
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    Muon(model, lr=1.0).step()
    assert len(spectral) == (2 if name == "neuralop_fno" else 5)
    for p, first in zip(spectral, before, strict=True):
        for k, m in (0, 0), (1, 3), (-1, -1):
            step = (first - p.detach())[:, :, k, m] / (0.2 * max(p.shape[:2]) ** 0.5)
            expected = orthogonalise(p.grad[None, :, :, k, m])[0]
            torch.testing.assert_close(step, expected, rtol=0, atol=1e-4)
