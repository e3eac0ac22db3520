import pytest

from sfo.experiments import estimate
from sfo.experiments.estimate import Estimates
from sfo.training.config import Experiment
from sfo.training.muon import Muon


@pytest.fixture
def steps(monkeypatch):
    """Steps that take so many seconds, one after the other, on a clock of their own."""
    now, taken = [0.0], []

    def training_step(experiment):
        def step():
            now[0] += taken.pop(0)

        return step

    monkeypatch.setattr(estimate.time, "process_time", lambda: now[0])
    monkeypatch.setattr(estimate, "training_step", training_step)
    return taken


@pytest.mark.parametrize(
    ("taken", "step"),
    [
        ([20.0, 0.25], 0.25),  # the first one compiles
        ([90.0], 90.0),  # there is no time for a second one
    ],
)
def test_a_step_is_one_that_does_not_compile(taken, step, steps, tmp_path):
    """And measured once: there is none left for a second look."""
    steps += taken
    experiment = Experiment.of("allen_cahn", scale="desk")
    path = tmp_path / "known" / "seconds.json"
    assert Estimates(path).step(experiment) == step
    assert Estimates(path).step(experiment) == step


def test_a_run_is_its_steps(steps, tmp_path):
    """60 epochs of 500 training samples in batches of 10, half a second each."""
    steps += [0.5, 0.5]
    experiment = Experiment.of("allen_cahn", scale="desk")
    assert Estimates(tmp_path / "seconds.json").seconds(experiment) == 60 * 50 * 0.5


def test_each_optimizer_has_its_step(steps, tmp_path):
    steps += [0.5, 0.5, 2.0, 2.0]
    known = Estimates(tmp_path / "seconds.json")
    adam, muon = (
        Experiment.of("allen_cahn", scale="desk", train=dict(optimizer=name))
        for name in ("adam", "muon")
    )
    assert [known.step(e) for e in (adam, muon, adam)] == [0.5, 2.0, 0.5]


def test_a_step_is_that_of_the_optimizer(monkeypatch):
    used = []
    update = Muon.step
    monkeypatch.setattr(Muon, "step", lambda muon: used.append(muon) or update(muon))
    settings = dict(hidden_channels=8, n_modes=4)
    for name in ("muon", "adam"):
        train = dict(optimizer=name)
        step = estimate.training_step(
            Experiment.of("allen_cahn", scale="smoke", settings=settings, train=train)
        )
        step()
    assert len(used) == 1
