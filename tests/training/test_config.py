import json
import re
from types import SimpleNamespace

import pytest
from small_runs import small

from sfo.registry import BENCHMARKS, MODELS
from sfo.training.config import (
    ConfigError,
    DataConfig,
    Experiment,
    ModelConfig,
    TrainConfig,
    protocol,
)


def of(**changes):
    return Experiment.of("allen_cahn", **changes)


@pytest.mark.parametrize(
    "experiment",
    [
        of(),
        small(seed=3, ema=0.9, clip=1),
        of(settings=dict(train_shape=(64,)), data=dict(options=dict(unit=3.25))),
        *(Experiment.of(name, scale="paper") for name in BENCHMARKS),
    ],
    ids=lambda e: e.data.benchmark,
)
def test_json_and_back(experiment):
    again = Experiment.from_json(experiment.to_json())
    assert again == experiment
    assert again.key == experiment.key
    assert again.to_json() == experiment.to_json()


def test_keys_tell_experiments_apart():
    changed = [of(), of(seed=1), of(scale="smoke"), of(train=dict(clip=1.0)), of(data=dict(seed=1))]
    assert len({experiment.key for experiment in changed}) == 5
    assert of().key == of(train={}).key


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: of(train=dict(epoch=3)), "`epoch` is not a known key; known: epochs, batch_size"),
        (lambda: of(train=dict(epochs="3")), "`epochs` must be a valid integer, got '3'."),
        (lambda: of(train=dict(epochs=True)), "`epochs` must be a valid integer, got True."),
        (lambda: of(train=dict(epochs=0)), "`epochs` must be greater than or equal to 1, got 0."),
        (lambda: of(train=dict(clip=float("nan"))), "`clip` must be a finite number, got nan."),
        (lambda: of(train=dict(precision="32")), "`precision` must be '32-true', '64-true', '16-"),
        (
            lambda: of(train=dict(optimizer="mouon")),
            "`optimizer` must be 'adam', 'adamw' or 'muon', got 'mouon'.",
        ),
        (lambda: of(scale="huge"), "`scale` must be 'smoke', 'desk' or 'paper', got 'huge'."),
        (lambda: of(seed=-1), "`seed` must be greater than or equal to 0, got -1."),
        (lambda: Experiment.of("alen_cahn"), "Unknown benchmark 'alen_cahn'; known: allen_cahn, "),
        (lambda: of(model="sof"), "Unknown model 'sof'; known: "),
        (
            lambda: of(settings=dict(modes=3)),
            "Unknown setting 'modes' of sfo; known: activation, basis, ",
        ),
        (lambda: of(settings=dict(n_modes="3")), "`n_modes` of sfo must be a valid integer, got '"),
        (lambda: of(settings=dict(in_channels=3)), "Unknown setting 'in_channels' of sfo; known"),
        (lambda: of(settings=dict(norm={1})), "Settings must be what JSON can hold, got {'norm'"),
        (lambda: of(data=dict(options=dict(nu=1))), "Unknown option 'nu' of allen_cahn; known: "),
        (lambda: Experiment.from_json("[]"), "An experiment must be a JSON object, got []."),
        (lambda: Experiment.from_json("{"), "An experiment must be JSON: Expecting"),
        (lambda: Experiment.from_json("{}"), "`data` is missing."),
        (
            lambda: Experiment.from_json('{"data": {"benchmark": "maxwell", "scales": 1}}'),
            "`data.scales` is not a known key; known: benchmark, scale, ",
        ),
        (
            lambda: Experiment.from_json(of().to_json().replace('"epochs": 60', '"epochs": 1.5')),
            "`train.epochs` must be a valid integer, got 1.5.",
        ),
    ],
)
def test_what_is_wrong_in_one_sentence(make, sentence):
    with pytest.raises(ConfigError, match=f"^{re.escape(sentence)}") as caught:
        make()
    assert str(caught.value).endswith((".", "?"))
    assert "\n" not in str(caught.value)


def test_the_papers_preset_where_the_paper_has_none(monkeypatch):
    """It is refused before any data are made; other presets are not, and one is then the default.

    A preset is no permission: any model takes any benchmark.
    """
    monkeypatch.setattr(type(BENCHMARKS["allen_cahn"]), "paper_name", None)
    with pytest.raises(ValueError, match="The paper has no SFO for data of your own; it has alle"):
        of(preset="paper")
    assert of().model.preset == "recommended"
    monkeypatch.undo()
    monkeypatch.setattr(MODELS["sfo"], "PAPER", None)
    with pytest.raises(ValueError, match="The paper has no SFO, so it has no settings for it"):
        of(preset="paper")
    assert of(preset="default").model.preset == "default"


def test_a_file_and_its_faults(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(of().to_json())
    assert Experiment.load(path) == of()
    path.write_text(json.dumps(dict(data=dict(benchmark="maxwell"), train=dict(clip=-1))))
    with pytest.raises(
        ValueError, match=r"run\.json: `train\.clip` must be greater than 0, got -1"
    ):
        Experiment.load(path)


@pytest.mark.parametrize(
    "config", [of(), TrainConfig(), ModelConfig(), DataConfig(benchmark="maxwell")]
)
def test_nothing_can_be_changed(config):
    with pytest.raises(ValueError, match="frozen"):
        setattr(config, next(iter(type(config).model_fields)), 1)


def test_settings_are_copies():
    settings = dict(n_modes=4)
    experiment = of(settings=settings)
    settings["n_modes"] = 5
    assert experiment.model.settings == dict(n_modes=4)


def test_the_papers_protocol():
    """500 epochs in batches of 50, but 200 of 10 on shallow water and batches of 1 on Maxwell."""
    sizes = {
        name: (train.epochs, train.batch_size)
        for name in BENCHMARKS
        for train in [TrainConfig(**protocol(name, "paper"))]
    }
    assert sizes["allen_cahn"] == sizes["diffusion_sorption_rk45"] == (500, 50)
    assert sizes["shallow_water"] == sizes["shallow_water_rdb"] == (200, 10)
    assert sizes["maxwell"] == (500, 1)
    assert protocol("maxwell", "desk")["batch_size"] == 1


@pytest.mark.parametrize(
    ("benchmark", "model", "changes", "sentence"),
    [
        ("darcy", "pino", {}, "No residual is known for the equation Darcy"),
        ("darcy", "pino", dict(physics=0.0), "`initial` needs an input field that is also"),
        ("darcy", "sfo", dict(initial=0.1), "`initial` needs an input field that is also"),
        ("shallow_water_rdb", "pino", {}, "u, v are not among the outputs of shallow_water_rdb"),
    ],
)
def test_losses_that_the_data_cannot_have_are_refused_before_they_are_made(
    benchmark, model, changes, sentence
):
    with pytest.raises(ValueError, match=sentence):
        Experiment.of(benchmark, model, scale="smoke", train=changes)


def test_a_residual_of_two_frames_is_refused_before_there_is_one():
    """Eleven frames at the smoke scale, of which every fifth leaves three and every tenth two."""
    Experiment.of("allen_cahn", "pino", scale="smoke", data=dict(time_stride=5))
    with pytest.raises(ValueError, match="needs at least 3 frames, got 2"):
        Experiment.of("allen_cahn", "pino", scale="smoke", data=dict(time_stride=10))


def test_a_benchmark_without_an_equation_has_no_residual(monkeypatch):
    """As that of a plugin, which says how to solve it and nothing else."""
    monkeypatch.setattr(BENCHMARKS, "_entries", dict(BENCHMARKS._entries))
    solved = SimpleNamespace(name="mine", paper_name=None, names=("u",), inputs=("u",))
    solved.with_options = lambda: solved
    BENCHMARKS.register("mine")(solved)
    with pytest.raises(ValueError, match="The benchmark mine has no equation `pde`"):
        Experiment.of("mine", "pino", scale="smoke")
