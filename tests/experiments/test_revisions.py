"""Records survive versions, options and metrics; a raised revision voids those that it is for."""

import json
from pathlib import Path

import pytest

import sfo
from sfo.experiments.record import Analysis, Record, RecordError, seal
from sfo.experiments.results import Results, name
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
