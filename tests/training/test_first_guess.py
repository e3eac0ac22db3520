"""The least squares guess from which an SFO starts."""

from dataclasses import replace

import pytest
import torch

import sfo.data.rows
from sfo.data.pairs import Pairs
from sfo.data.rows import array_rows
from sfo.grid import Grid
from sfo.training.config import Experiment
from sfo.training.first_guess import first_guess
from sfo.training.loss import relative_l2
from sfo.training.muon import Muon
from sfo.training.prepare import DataShape, build

N = 16


def pairs(a, u, *, names=("p",), inputs=("p",)):
    times = tuple(float(t) for t in range(u.shape[1] // len(names)))
    grid = Grid((N,), (0.0,), (1.0,), periodic=True)
    return Pairs(a, u, grid, tuple(range(len(a))), times, names, inputs)


def test_it_is_the_least_squares_fit(monkeypatch):
    """Against `lstsq` over all samples and points, with rows that are read a few at a time."""
    a, noise = 200 + 3 * torch.randn(40, 2, N), torch.randn(40, 4, N)
    u = 1000 + torch.randn(4, 2) @ a + noise
    monkeypatch.setattr(sfo.data.rows, "READ_NUMBERS", 7 * u[0].numel())
    data = pairs(array_rows(a), array_rows(u), names=("p", "q"), inputs=("p", "q"))
    guess = first_guess(data)
    table = torch.cat([a, torch.ones_like(a[:, :1])], 1).transpose(1, 2).flatten(0, 1).double()
    truth = u.transpose(1, 2).flatten(0, 1).double()
    fit = torch.linalg.lstsq(table, truth).solution
    torch.testing.assert_close(guess.weight, fit[:2].T, rtol=1e-7, atol=1e-7)
    torch.testing.assert_close(guess.offset, fit[2][:, None], rtol=1e-6, atol=1e-6)
    left = (truth - table @ fit).view(-1, 2, 2).square().mean((0, 2)).sqrt()
    torch.testing.assert_close(guess.scale, left, rtol=1e-6, atol=0)
    torch.testing.assert_close(guess.mean, a.double().mean((0, 2)))
    torch.testing.assert_close(guess.deviation, a.double().std((0, 2), correction=0))


def test_an_offset_of_its_own_at_every_point_where_places_differ():
    """A front that is alike in all samples: what is left is what the input does not explain."""
    x = torch.linspace(0, 1, N)
    size, noise = torch.randn(40, 1, 1), 0.01 * torch.randn(40, 2, N)
    front = torch.stack([(-5 * x).exp(), (-2 * x).exp()])
    data = pairs(size.expand(-1, 1, N), 5 * front + 0.1 * size + noise)
    guess = first_guess(data, places_differ=True)
    torch.testing.assert_close(guess.offset, 5 * front.double(), rtol=0, atol=0.02)
    torch.testing.assert_close(guess.weight, torch.full((2, 1), 0.1).double(), rtol=0, atol=0.01)
    assert guess.scale.item() == pytest.approx(0.01, rel=0.1)
    # The same problem everywhere: chance alone tells places apart.
    assert first_guess(data).offset.shape == (2, 1)
    # Fields that differ between samples as much as between places have one offset.
    scattered = replace(data, u=torch.randn(40, 2, N))
    assert first_guess(scattered, places_differ=True).offset.shape == (2, 1)
    assert first_guess(data, from_input=False, places_differ=True).weight.abs().max() == 0


def test_components_are_samples_of_one_map():
    """The guess of two components is that of one, from twice the samples."""
    a, u = torch.randn(20, 4, N), torch.randn(20, 6, N)
    both = first_guess(pairs(a, u, names=("p", "q"), inputs=("p", "q")), components=2)
    one = first_guess(pairs(a.view(40, 2, N), u.view(40, 3, N)))
    for name, value in vars(one).items():
        torch.testing.assert_close(getattr(both, name), value)


def test_what_the_guess_explains_in_full_has_still_a_size():
    """A solution that is its input leaves rounding, by which nothing may be divided."""
    a = torch.randn(20, 1, N)
    guess = first_guess(pairs(a, a.repeat(1, 3, 1)))
    assert guess.scale.item() == pytest.approx(1e-6, rel=0.2)
    assert first_guess(pairs(a, torch.full_like(a, 3.0))).offset.item() == pytest.approx(3.0)


@pytest.mark.parametrize("normaliser", [None, "standard"])
def test_a_new_model_answers_with_the_guess(normaliser):
    """With what the network adds taken away, in the units of the data, with a normaliser too."""
    experiment = Experiment.of(
        "diffusion_sorption", preset="recommended", scale="smoke", train=dict(normaliser=normaliser)
    )
    shape = DataShape.of_benchmark(experiment)
    front = torch.rand(shape.out_channels, *shape.grid.shape)
    a = torch.randn(20, 1, 1).expand(-1, -1, *shape.grid.shape)
    u = front + 0.1 * a + 0.01 * torch.randn(20, *front.shape)
    train = Pairs(a, u, shape.grid, tuple(range(20)), shape.times, shape.names, shape.inputs)
    model = build(experiment, shape, train)
    operator = model if normaliser is None else model.model
    operator.standardise.scale.zero_()
    guess = first_guess(train, places_differ=True)
    assert guess.offset.shape == train.u.shape[1:]
    truth = guess.offset + guess.weight @ train.a.double()
    torch.testing.assert_close(model(train.a).double(), truth, rtol=1e-4, atol=1e-4)


def test_training_is_the_same_in_all_units():
    """Inputs in thousands and solutions in thousandths: the same operator, but for rounding."""
    experiment = Experiment.of("allen_cahn", preset="recommended")
    size = torch.randn(8, 2, 1) * torch.tensor([[1.0], [5.0]])
    a = size + torch.rand(8, 2, N)
    u = torch.cat([a[:, :1] * a[:, 1:], a.cumsum(2)], 1)

    def trained(a_unit, u_unit):
        data = pairs(a * a_unit, u * u_unit, inputs=("q", "r"))
        model = build(experiment, DataShape.of(data), data)
        optimizer = Muon(model, lr=1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            relative_l2(model(data.a), data.u).mean().backward()
            optimizer.step()
        return model(data.a).detach() / u_unit

    torch.testing.assert_close(trained(2.0**17, 2.0**-9), trained(1, 1), rtol=1e-4, atol=1e-4)


def test_the_guess_around_a_model_is_the_one_inside_of_an_sfo():
    """An SFO that starts from a guess by itself, and one without that has the guess around it."""
    settings = dict(hidden_channels=8, n_modes=4, n_layers=2)
    bare = dict(settings, standardise=False, output_skip=False)
    inside = Experiment.of("allen_cahn", preset="recommended", scale="smoke", settings=settings)
    around = Experiment.of(
        "allen_cahn",
        preset="recommended",
        scale="smoke",
        settings=bare,
        train=dict(normaliser="first_guess"),
    )
    shape = DataShape.of_benchmark(inside)
    a = 3 + torch.randn(8, 1, *shape.grid.shape)
    u = torch.rand(shape.out_channels, 1) * a + a.square().flip(2)
    train = Pairs(a, u, shape.grid, tuple(range(8)), shape.times, shape.names, shape.inputs)

    def trained(experiment):
        model = build(experiment, shape, train)
        optimizer = Muon(model, lr=1e-2)
        for _ in range(3):
            optimizer.zero_grad()
            relative_l2(model(a), u).mean().backward()
            optimizer.step()
        return model(a).detach()

    assert torch.equal(trained(around), trained(inside))


def test_any_model_starts_from_the_guess():
    """An FNO whose last map is 0 answers with the guess: 1 % off, where the mean is 30 % off."""
    experiment = Experiment.of(
        "diffusion_sorption", "fno", scale="smoke", train=dict(normaliser="first_guess")
    )
    shape = DataShape.of_benchmark(experiment)
    front = 1 + torch.rand(shape.out_channels, *shape.grid.shape)
    a = torch.randn(40, 1, 1).expand(-1, -1, *shape.grid.shape)
    u = front * (1 + 0.01 * torch.randn(40, 1, 1)) + 0.5 * a
    train = Pairs(a, u, shape.grid, tuple(range(40)), shape.times, shape.names, shape.inputs)
    model = build(experiment, shape, train)
    for weight in list(model.model.parameters())[-2:]:
        torch.nn.init.zeros_(weight)
    assert relative_l2(model(a), u).mean() < 0.02
    assert relative_l2(u.mean(0).expand_as(u), u).mean() > 0.2


def test_a_guess_that_cannot_be_made_is_refused():
    with pytest.raises(ValueError, match="all frames at once"):
        Experiment.of("allen_cahn", train=dict(normaliser="first_guess", rollout=1))
    twice = Experiment.of(
        "allen_cahn", preset="recommended", scale="smoke", train=dict(normaliser="first_guess")
    )
    with pytest.raises(ValueError, match="this SFO does"):
        build(twice, DataShape.of_benchmark(twice))
