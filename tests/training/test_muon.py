"""Muon against the singular value decomposition that it stands for, and against AdamW."""

from copy import deepcopy
from math import sqrt
from typing import ClassVar

import pytest
import torch
from small_runs import small
from torch import nn

from sfo.models import FNO, MNO
from sfo.models.matrices import as_matrices, from_matrices, matrix_layouts
from sfo.training.fit import fit
from sfo.training.muon import Muon, orthogonalise
from sfo.training.tree import flatten, unflatten


def five_times(s):
    """What the iteration makes of a singular value."""
    for _ in range(5):
        s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
    return s


def by_svd(g):
    """The iteration on the singular values alone."""
    u, s, vh = torch.linalg.svd(g, full_matrices=False)
    s = s / torch.linalg.vector_norm(s, dim=-1, keepdim=True)
    return (u * five_times(s)[..., None, :]) @ vh


def test_singular_values_end_near_1():
    s = five_times(torch.linspace(0.0015, 1, 100_000, dtype=torch.float64))
    assert s.min() > 0.679
    assert s.max() < 1.21


# The widest, and the tallest, go by the products of the rows.
@pytest.mark.parametrize("shape", [(1, 6, 6), (4, 5, 9), (4, 9, 5), (3, 4, 30), (3, 30, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_orthogonalise_is_what_the_svd_says(shape, dtype):
    """Where no singular value is tiny, so it is U Vᴴ up to the spread of the singular values."""
    g = torch.randn(shape, dtype=dtype)
    x = orthogonalise(g)
    torch.testing.assert_close(x, by_svd(g), rtol=0, atol=1e-10)
    u, s, vh = torch.linalg.svd(g, full_matrices=False)
    assert (s / torch.linalg.vector_norm(s, dim=-1, keepdim=True)).min() > 0.0015
    middle = u.mH @ x @ vh.mH
    values = middle.diagonal(dim1=-2, dim2=-1).real
    torch.testing.assert_close(middle, torch.diag_embed(values).to(dtype), rtol=0, atol=1e-10)
    assert values.min() > 0.679
    assert values.max() < 1.21


@pytest.mark.parametrize("shape", [(2, 16, 20), (2, 16, 80)])
def test_single_precision_is_enough(shape):
    """For matrices that are nearly singular, as gradients are, and in half precision too."""
    u, _, vh = torch.linalg.svd(torch.randn(shape, dtype=torch.float64), full_matrices=False)
    g = (u * torch.logspace(0, -8, 16, dtype=torch.float64)) @ vh
    assert (orthogonalise(g.float()) - by_svd(g)).abs().max() < 2e-3
    g = g.bfloat16()
    assert (orthogonalise(g) - by_svd(g.double())).abs().max() < 2e-2


def test_nothing_stays_nothing():
    """Where a frequency is not on the grid its matrix has no gradient."""
    g = torch.zeros(2, 3, 4)
    g[1] = 1e-30
    assert orthogonalise(g).abs().max() < 1e-18


class Parts(nn.Module):
    """Matrices of equal and of other sizes, real and complex, wide and tall, and vectors."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(5, 3, dtype=torch.float64)
        self.tall = nn.Linear(3, 5, dtype=torch.float64)
        self.batch = nn.Parameter(torch.randn(2, 2, 3, 5, dtype=torch.float64))
        self.square = nn.Parameter(torch.randn(4, 4, dtype=torch.float64))
        self.complex = nn.Parameter(torch.randn(2, 5, 3, dtype=torch.complex128))
        self.phase = nn.Parameter(torch.randn(3, dtype=torch.complex128))


def set_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    for p in parameters:
        p.grad = torch.randn(p.shape, dtype=p.dtype, generator=generator)


def test_steps_are_those_of_the_definition():
    """Whatever is stacked with what, each matrix goes its own way; vectors that of AdamW."""
    model = Parts()
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    vectors = ("wide.bias", "tall.bias", "phase")
    copies = [nn.Parameter(expected[name].clone()) for name in vectors]
    adam = torch.optim.AdamW(copies, lr=0.02, weight_decay=0.3)
    muon = Muon(model, lr=0.02, weight_decay=0.3)
    means = {name: torch.zeros_like(p) for name, p in expected.items()}
    for step in range(3):
        set_gradients(model.parameters(), seed=step)
        gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
        for name, copy in zip(vectors, copies, strict=True):
            copy.grad = gradients[name].clone()
        muon.step()
        adam.step()
        for name in expected.keys() - set(vectors):
            g = gradients[name]
            means[name] = 0.95 * means[name] + 0.05 * g
            direction = by_svd(0.05 * g + 0.95 * means[name])
            size = 0.2 * sqrt(max(g.shape[-2:]))
            expected[name] = (1 - 0.02 * 0.3) * expected[name] - 0.02 * size * direction
    expected |= {name: copy.detach() for name, copy in zip(vectors, copies, strict=True)}
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), expected[name], rtol=0, atol=1e-12)


def test_many_matrices_go_in_chunks(monkeypatch):
    models = [nn.Linear(3, 5, bias=False) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model, chunk in zip(models, (10**6, 16), strict=True):
        monkeypatch.setattr("sfo.training.muon.CHUNK", chunk)
        model.more = nn.Parameter(torch.ones(7, 5, 3))
        set_gradients(model.parameters(), seed=0)
        Muon(model, lr=0.1).step()
    torch.testing.assert_close(models[0].more, models[1].more)
    torch.testing.assert_close(models[0].weight, models[1].weight)


def test_a_convolution_is_one_matrix():
    """Out × (in · kernel), in whatever order its numbers lie in memory."""
    conv = nn.Conv2d(3, 4, kernel_size=(2, 5), bias=False).to(memory_format=torch.channels_last)
    before = conv.weight.detach().clone()
    linear = nn.Linear(30, 4, bias=False)
    with torch.no_grad():
        linear.weight.copy_(conv.weight.flatten(1))
    conv.weight.grad = torch.randn_like(conv.weight)
    linear.weight.grad = conv.weight.grad.flatten(1)
    for model in (conv, linear):
        Muon(model, lr=0.1).step()
    torch.testing.assert_close(conv.weight.flatten(1), linear.weight)
    steps = torch.linalg.svdvals((conv.weight - before).flatten(1)) / (0.1 * 0.2 * sqrt(30))
    assert 0.6 < steps.min() <= steps.max() < 1.21


@pytest.mark.parametrize("layout", ["last_two", "first_two", "first_by_rest"])
def test_layouts_there_and_back(layout):
    values = torch.randn(2, 3, 4, 5)
    first, by = values.numel(), as_matrices(values, layout)
    matrix = {
        "last_two": values[1, 2],
        "first_two": values[:, :, 3, 4],
        "first_by_rest": values.flatten(1),
    }[layout]
    assert torch.equal(by[-1], matrix)
    assert by.numel() == first
    assert torch.equal(from_matrices(by, layout, values.shape), values)


class Kernel(nn.Module):
    matrix_layouts: ClassVar = {"theta": "first_by_rest", "table": None}

    def __init__(self):
        super().__init__()
        self.theta = nn.Parameter(torch.ones(4, 3, 3))
        self.table = nn.Parameter(torch.ones(4, 3))


class Around(nn.Module):
    matrix_layouts: ClassVar = {"*.theta": "last_two", "inner.*": "first_two"}

    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleList([Kernel(), nn.Bilinear(2, 3, 4)])


def test_modules_say_what_their_matrices_are():
    """The innermost first, and the first pattern of each."""
    layouts = matrix_layouts(nn.Sequential(Around(), Kernel()))
    assert layouts == {
        "0.inner.0.theta": "first_by_rest",
        "0.inner.0.table": None,
        "0.inner.1.weight": "first_two",
        "0.inner.1.bias": None,
        "1.theta": "first_by_rest",
        "1.table": None,
    }


@pytest.mark.parametrize(
    "model",
    [
        nn.Conv1d(8, 8, 3, groups=8),
        nn.Embedding(5, 3),
        nn.LayerNorm((4, 4)),
        nn.Linear(1, 8),
        nn.ParameterList([torch.ones(8, 1, 3), torch.ones(1, 4, 1, 1), torch.ones(8, 1)]),
    ],
    ids=["depthwise convolution", "table", "norm", "from one channel", "sides of length 1"],
)
def test_what_is_no_linear_map_goes_to_adam(model):
    assert not any(matrix_layouts(model).values())


def test_which_parameters_of_models_go_to_adam():
    """Those of a scan are of each channel on its own, though they have two axes or three."""
    layouts = matrix_layouts(MNO(1, 2, hidden_channels=24, n_layers=1, n_states=4))
    adam = {name.rpartition(".")[2] for name, layout in layouts.items() if layout is None}
    matrices = {name.rpartition(".")[2] for name, layout in layouts.items() if layout is not None}
    assert adam == {"log_rates", "skip", "weight", "bias"}
    assert matrices == {"weight"}
    layouts = matrix_layouts(FNO(1, 2, n_dim=2, n_modes=2, hidden_channels=4, n_layers=1))
    assert all((layout is None) == name.endswith("bias") for name, layout in layouts.items())


def test_state_goes_through_a_checkpoint():
    models = [Parts() for _ in range(2)]
    first = Muon(models[0], weight_decay=0.1)
    for step in range(2):
        set_gradients(models[0].parameters(), seed=step)
        first.step()
    second = Muon(models[1])
    second.load_state_dict(unflatten(*flatten(deepcopy(first.state_dict()))))
    models[1].load_state_dict(models[0].state_dict())
    for model, muon in zip(models, (first, second), strict=True):
        set_gradients(model.parameters(), seed=9)
        muon.step()
    for one, two in zip(*(model.parameters() for model in models), strict=True):
        assert torch.equal(one, two)


def test_a_parameter_without_a_gradient_stays():
    model = Parts()
    before = [p.detach().clone() for p in model.parameters()]
    muon = Muon(model)
    muon.step()
    assert all(torch.equal(p, b) for p, b in zip(model.parameters(), before, strict=True))
    assert not muon.state


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_it_solves_least_squares(dtype):
    """Ill-conditioned ones, to a thousandth of the loss: steps are as short as the rate."""
    x = torch.randn(64, 8, dtype=dtype) * torch.logspace(0, -1, 8, dtype=torch.float64)
    truth = nn.Linear(8, 6, dtype=dtype)
    y = truth(x).detach()
    model = nn.Linear(8, 6, dtype=dtype)
    muon = Muon(model)
    losses = []
    for step in range(150):
        muon.param_groups[0]["lr"] = 0.1 * (1 - step / 150)
        muon.zero_grad()
        loss = (model(x) - y).abs().square().mean()
        loss.backward()
        muon.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 1e-3 * losses[0]


def test_a_closure_is_called():
    model = nn.Linear(2, 2)

    def closure():
        model(torch.ones(1, 2)).square().sum().backward()
        return 3.0

    before = model.weight.detach().clone()
    assert Muon(model).step(closure) == 3.0
    assert not torch.equal(model.weight, before)


def test_gradients_may_be_scaled():
    """As half precision needs it on a GPU; clipping wants them as they were before the step."""
    models = [nn.Linear(4, 3) for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    for model, scale in zip(models, (1.0, 1024.0), strict=True):
        muon = Muon(model, lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        scaler.scale(model(torch.ones(1, 4)).square().sum()).backward()
        scaler.unscale_(muon)
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        scaler.step(muon)
    torch.testing.assert_close(list(models[0].parameters()), list(models[1].parameters()))


@pytest.mark.parametrize(
    "settings",
    [
        dict(precision="bf16-true", epochs=15),
        dict(rollout=1, normaliser="standard", clip=1.0, ema=0.5, epochs=6),
    ],
    ids=["half precision", "wrapped"],
)
def test_it_trains(tmp_path, settings):
    common = dict(optimizer="muon", learning_rate=0.02, schedule="one_cycle")
    history = fit(small(**common, **settings), tmp_path).history
    assert history[-1]["validation"] < 0.6 * history[0]["validation"]
