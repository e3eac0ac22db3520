"""What every registered model promises."""

from inspect import signature
from resource import RUSAGE_SELF, getrusage

import pytest
import torch

from sfo.experiments.run import run
from sfo.models.build import build_model
from sfo.registry import BENCHMARKS, MODELS
from sfo.training.config import Experiment
from sfo.training.loss import relative_l2
from sfo.training.prepare import DataShape, build

SMALL = {
    "deeponet": dict(harmonics=8, n_functions=32, hidden_channels=32, branch_layers=1),
    "fno": dict(n_modes=8, hidden_channels=16, n_layers=2),
    "mno": dict(hidden_channels=24, n_layers=1, n_states=4),
    "mpnn": dict(hidden_channels=32, n_layers=1, radius=1),
    "pino": dict(n_modes=8, hidden_channels=16, n_layers=2),
    "sfo": dict(n_modes=6, hidden_channels=16, n_layers=2),
    "svd_no": dict(n_modes=4, hidden_channels=64, n_layers=2, network_layers=1),
    "transolver": dict(hidden_channels=32, n_layers=1, n_heads=16, n_slices=32),
    # Batch normalisation mixes the samples of a batch in training.
    "unet": dict(hidden_channels=8, n_levels=2, norm="group"),
    "uno": dict(n_modes=(12, 6, 6, 6, 12), hidden_channels=16),
}
# Models of other libraries are tested where these are installed, in tests/peers.
NAMES = [name for name in MODELS.names() if MODELS[name].extra is None]


def small(name, in_channels, out_channels, shape):
    """A small model; one that must know its grid is told."""
    kind = MODELS[name]
    grid = {"train_shape": shape} if "train_shape" in signature(kind).parameters else {}
    return kind(in_channels, out_channels, len(shape), **grid, **SMALL[name])


@pytest.mark.parametrize("name", NAMES)
def test_learns_two_samples(name):
    """Two samples by heart."""
    learns_two_samples(name, points=16, steps=600, to=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_learns_two_longer_samples(name):
    learns_two_samples(name, points=32, steps=600, to=0.01)


def learns_two_samples(name, points, steps, to):
    """To a relative L2 error."""
    torch.manual_seed(1)
    model = small(name, 1, 2, (points,))
    a, u = torch.randn(2, 1, points), torch.randn(2, 2, points)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = relative_l2(model(a), u).mean()
        if loss < to:
            break
        loss.backward()
        optimizer.step()
        schedule.step()
    assert loss < to


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_weights(name):
    weights = []
    for _ in range(2):
        torch.manual_seed(7)
        weights.append(small(name, 1, 1, (32,)).state_dict())
    assert all(torch.equal(weights[0][k], weights[1][k]) for k in weights[0])


@pytest.mark.parametrize("benchmark", BENCHMARKS.names())
@pytest.mark.parametrize("name", NAMES)
def test_takes_a_step_on_every_benchmark(name, benchmark):
    """A preset is no permission: channels, grid and fields come from the data.

    On two samples, of random numbers in the shapes of the smoke scale, the loss falls along
    its gradient: its derivative is −‖g‖², so that a short step h changes it by −h ‖g‖², up to
    the curvature, which is large where a model has few and steep weights.
    """
    train = dict(physics=0.0, initial=0.0)
    experiment = Experiment.of(
        benchmark, name, scale="smoke", preset="default", settings=SMALL[name], train=train
    )
    shape = DataShape.of_benchmark(experiment)
    model = build(experiment, shape)
    torch.manual_seed(0)
    a = torch.randn(2, shape.in_channels, *shape.grid.shape)
    u = torch.randn(2, shape.out_channels, *shape.grid.shape)
    before = relative_l2(model(a), u).mean()
    before.backward()
    weights = [p for p in model.parameters() if p.grad is not None]
    squared = float(sum((p.grad.abs() ** 2).sum() for p in weights))
    assert squared > 0
    step = 1e-3 / squared
    with torch.no_grad():
        for p in weights:
            p -= step * p.grad
        after = relative_l2(model(a), u).mean()
    assert 2e-4 < float(before.detach() - after) < 1.3e-3


@pytest.fixture(scope="session")
def smoke_data(tmp_path_factory):
    """Where the smoke data of all benchmarks lie, each made once."""
    return tmp_path_factory.mktemp("smoke_data")


@pytest.mark.slow
@pytest.mark.parametrize("benchmark", BENCHMARKS.names())
@pytest.mark.parametrize("name", NAMES)
def test_trains_on_every_benchmark(name, benchmark, smoke_data, tmp_path, monkeypatch):
    """From data to a Record at the smoke scale, by our settings; PINO without its equation."""
    monkeypatch.setenv("SFO_DATA", str(smoke_data))
    train = dict(physics=0.0, initial=0.0, epochs=1)
    experiment = Experiment.of(benchmark, name, scale="smoke", preset="recommended", train=train)
    record = run(experiment, tmp_path / "run", cost=False, picture=False)
    assert 0 < record.errors.relative_l2 < 100


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("preset", ["recommended", "default"])
def test_presets_fit_coarse_grids(name, preset):
    """Modes, where a model has them, are no more than an axis has points."""
    shape = (8, 9)
    facts = dict(in_channels=2, out_channels=3, n_dim=2, train_shape=shape, out_fields=3)
    model = build_model(name, preset=preset, periodic=False, **facts)
    assert model(torch.randn(2, 2, *shape)).shape == (2, 3, *shape)


@pytest.mark.parametrize("name", ["mpnn", "transolver", "unet", "uno"])
def test_a_dimension_that_a_model_does_not_have(name):
    with pytest.raises(ValueError, match=r"^`n_dim` must be 1, 2 or 3( with .*)?, got 4"):
        build_model(name, preset="default", in_channels=1, out_channels=1, n_dim=4)


@pytest.mark.parametrize("name", NAMES)
def test_an_oversized_model_is_refused_before_it_is_allocated(name):
    """A million channels: terabytes, of which none is asked for."""
    experiment = Experiment.of(
        "shallow_water",
        name,
        scale="smoke",
        preset="default",
        settings=dict(hidden_channels=10**6),
        train=dict(physics=0.0, initial=0.0),
    )
    before = getrusage(RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match=f"The model {name} does not fit into memory .* TB, and"):
        build(experiment, DataShape.of_benchmark(experiment))
    assert getrusage(RUSAGE_SELF).ru_maxrss - before < 100 * 1024


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(17,), (8, 11), (6, 8, 7)])
def test_odd_and_unequal_axes(name, shape):
    """The output of a sample does not depend on the others in its batch."""
    model = small(name, 2, 3, shape)
    a = torch.randn(3, 2, *shape)
    u = model(a)
    assert u.shape == (3, 3, *shape)
    torch.testing.assert_close(model(a[1:2]), u[1:2])
