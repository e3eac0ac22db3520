from itertools import product

import pytest
import torch

from sfo.models import DeepONet, deeponet

SMALL = dict(n_functions=5, hidden_channels=6, branch_layers=2, trunk_layers=2)
QUERIES = ["space", "space_time", "first_axis"]
SHAPES = [(7,), (5, 4), (3, 4, 2)]


def double(*arguments, **settings):
    """In double precision, with biases that are not zero."""
    model = DeepONet(*arguments, **{**SMALL, **settings}).double()
    for name, p in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(p)
    return model


def parameters(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("shape", SHAPES)
def test_solution_is_the_sum_point_by_point(query, shape):
    """Σ_k b_ck(a) t_ck(y) + β_c, for one time, place and channel after the other."""
    fields, n_times = 2, 3
    settings = dict(train_shape=shape, query=query, fields=fields, harmonics=2, activation="tanh")
    model = double(2, fields * n_times, len(shape), **settings)
    a = torch.randn(2, 2, *shape, dtype=torch.float64)
    u = model(a)
    p = model.n_functions
    b = model.branch(a.flatten(1)).view(2, -1, p)
    for field, time in product(range(fields), range(n_times)):
        channel = field * n_times + time
        for place in product(*map(range, shape)):
            x = [i / (n - 1) for i, n in zip(place, shape, strict=True)]
            if query == "space":
                y, c = x, channel
            elif query == "space_time":
                y, c = [time / (n_times - 1), *x], field
            else:
                y, c = x[:1], channel
                for i, n in zip(place[1:], shape[1:], strict=True):
                    c = c * n + i
            y = torch.tensor(y, dtype=torch.float64)
            waves = [torch.cos(torch.pi * k * y) for k in (1, 2)]
            t = model.trunk(torch.cat([y, torch.stack(waves, 1).flatten()])).view(-1, p)[c]
            truth = b[:, c] @ t + model.bias[c]
            torch.testing.assert_close(u[(slice(None), channel, *place)], truth)


@pytest.mark.parametrize("query", QUERIES)
def test_parts_of_the_points_add_up(query, monkeypatch):
    """A trunk that works on a few points at a time gives the same solution and gradients."""
    model = double(1, 3, 2, train_shape=(5, 4), query=query)
    a = torch.randn(2, 1, 5, 4, dtype=torch.float64)
    answers = []
    for size in (deeponet.CHUNK, 2 * model.n_sums * model.n_functions):
        monkeypatch.setattr(deeponet, "CHUNK", size)
        u = model(a)
        answers.append((u, *torch.autograd.grad(u.square().sum(), list(model.parameters()))))
    for whole, parts in zip(*answers, strict=True):
        torch.testing.assert_close(whole, parts)


@pytest.mark.parametrize(
    ("benchmark", "overrides", "count"),
    [
        ("allen_cahn", {}, 3_451_237),
        ("diffusion_sorption", {}, 3_451_237),
        ("cahn_hilliard", dict(query="space_time"), 148_865),
        ("shallow_water", dict(query="first_axis"), 429_143_808),
        ("shallow_water", dict(query="space_time"), 2_229_889),
        ("shallow_water", {}, 5_532_261),
        ("maxwell", {}, 52_016_560),
        ("maxwell", dict(harmonics=5, trunk_layers=5), 52_034_992),
    ],
)
def test_parameters_as_printed(benchmark, overrides, count):
    """In the SFO paper, by PDENNEval (space and time), or stated as our own."""
    with torch.device("meta"):
        model = DeepONet.from_paper(benchmark, **overrides)
    assert parameters(model) == count


def test_zero_biases_and_one_axis_start_as_a_straight_line():
    """Rectified lines through the origin stay lines on x > 0: all kinks must be learned."""
    model = DeepONet(1, 2, train_shape=(9,)).double()
    u = model(torch.randn(1, 1, 9, dtype=torch.float64))
    torch.testing.assert_close(u, u[..., -1:] * torch.linspace(0, 1, 9, dtype=torch.float64))


def test_other_grids_are_refused():
    model = DeepONet(1, 1, 2, train_shape=(6, 5), **SMALL)
    with pytest.raises(ValueError, match=r"on the grid \(6, 5\) only, got \(5, 6\): resample"):
        model(torch.zeros(1, 1, 5, 6))
