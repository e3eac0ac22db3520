"""Records survive versions, options and metrics; a raised revision voids those that it is for."""

import json
from pathlib import Path

import pytest

import sfo
from sfo.experiments.record import Analysis, Record, RecordError, seal
from sfo.experiments.results import Results, name
from sfo.experiments.seconds import step_key
from sfo.registry import BENCHMARKS, METRICS, MODELS
from sfo.training.config import Experiment

COMMITTED = Results(Path(__file__).parents[2] / "results" / "desk")
OLD = "relative_l2 per_sample per_time boundary_l2 interior_l2 max_error pdenneval_l2re "
OLD += "pdenneval_max pdebench_rmse pdebench_nrmse pdebench_max neuralop_l2 zero_targets"


@pytest.fixture
def later(monkeypatch):
    """The package of a later version, with one metric more."""
    monkeypatch.setattr(sfo, "__version__", "9.9.9")
    METRICS.register("of_a_later_version")(lambda prediction, truth, context: prediction[:, 0])
    yield
    del METRICS._entries["of_a_later_version"]


def test_all_committed_records_read_in_a_later_version(later):
    """Each number of their files is where it was, and nothing is added to them."""
    assert COMMITTED.problems() == []
    paths = sorted((COMMITTED.folder / "records").glob("*.json"))
    assert len(paths) >= 476
    for path in paths:
        record = Record.load(path)
        stored = json.loads(path.read_text())["errors"]
        assert set(OLD.split()) <= {*stored}
        assert record.errors == stored or "nan" in path.read_text() or "inf" in path.read_text()
        assert record.errors.percent == 100 * float(stored["relative_l2"])
        assert record.errors.get("of_a_later_version") is None


def test_a_metric_of_a_plugin_is_carried(tmp_path):
    """A Record keeps what today's registry does not know, to the byte."""
    experiment = Experiment.of("allen_cahn", "fno", scale="smoke")
    text = seal(
        {
            "version": "9.9.9",
            "revisions": {"model": 1, "benchmark": 1, "training": 1},
            "experiment": experiment.model_dump(mode="json"),
            "parameters": 1,
            "best_epoch": 0,
            "validation": 0.5,
            "epochs": 1,
            "errors": {"relative_l2": 0.5, "of_a_plugin": {"left": 1.0, "right": 2.0}},
        }
    )
    record = Record.from_json(text)
    assert record.errors.of_a_plugin == {"left": 1.0, "right": 2.0}
    assert record.to_json() == text


@pytest.mark.parametrize("kind", ["model", "benchmark"])
def test_a_raised_revision_voids_what_was_made_before(kind, tmp_path, monkeypatch):
    """And nothing else: FNO's Records of Allen–Cahn, not those of another model or benchmark."""
    from sfo.evaluation import Errors

    made = Experiment.of("allen_cahn", "fno", scale="smoke")
    other = Experiment.of("maxwell", "sfo", scale="smoke")
    for experiment in (made, other):
        Results(tmp_path).keep(Record(experiment, Errors(relative_l2=0.1), 1, 0, 0.1, 1))
        Results(tmp_path).keep(Analysis(experiment, "transfer", {}))
    Results(tmp_path).keep_failure(made, "no memory")
    changed = MODELS["fno"] if kind == "model" else type(BENCHMARKS["allen_cahn"])
    monkeypatch.setattr(changed, "revision", 2, raising=False)
    results = Results(tmp_path)
    sentence = f"made with revision 1 of the {kind} {'fno' if kind == 'model' else 'allen_cahn'}"
    with pytest.raises(RecordError, match=sentence):
        results.record(made)
    with pytest.raises(RecordError, match=sentence):
        results.analysis("transfer", made)
    assert results.failure(made) is None, "it may be tried again"
    assert results.record(other) is not None
    assert len(results.problems()) == 2
    assert all(name(made) in problem for problem in results.problems())
    again = Record(made, Errors(relative_l2=0.2), 1, 0, 0.2, 1)
    assert again.revisions[kind] == 2
    assert Record.from_json(again.to_json()) == again


def test_a_measured_table_shows_models_as_they_are_today(tmp_path, monkeypatch):
    """The report had the seconds of a recommended SFO that had been another model."""
    results = Results(tmp_path)
    assert not results.is_whole("runtime")
    models = {"sfo": ["sfo", "paper", 1], "sfo_recommended": ["sfo", "recommended", 2]}
    seconds = {"allen_cahn": {"sfo": 1.0, "sfo_recommended": 2.0}}
    results.keep_table("runtime", {"seconds": seconds, "models": models, "rounds": 5})
    assert results.table("runtime")["seconds"] == seconds
    assert results.is_whole("runtime")
    steps = [Experiment.of("allen_cahn", preset=preset) for preset in ("paper", "recommended")]
    before = [step_key(step) for step in steps]
    monkeypatch.setattr(MODELS["sfo"], "recommended_revision", {"all": 2, "maxwell": 9})
    assert results.table("runtime")["seconds"] == seconds
    assert results.is_whole("runtime")
    assert [step_key(step) for step in steps] == before
    monkeypatch.setattr(MODELS["sfo"], "recommended_revision", {"all": 2, "allen_cahn": 3})
    assert results.table("runtime")["seconds"] == {"allen_cahn": {"sfo": 1.0}}
    assert not results.is_whole("runtime")
    assert [step_key(step) == key for step, key in zip(steps, before, strict=True)] == [True, False]


def test_committed_tables_say_which_models_they_measured():
    for kind, numbers in (("params", "counts"), ("runtime", "seconds")):
        values = COMMITTED.table(kind)
        assert COMMITTED.is_whole(kind)
        assert all({*row} <= {*values["models"]} for row in values[numbers].values())
