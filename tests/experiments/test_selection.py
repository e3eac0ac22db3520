"""Which cells and runs a call of `sfo reproduce` is about."""

import pytest

from sfo.experiments.results import Results
from sfo.experiments.selection import Selection
from sfo.experiments.studies import MAIN_MODELS, PAPER_BENCHMARKS
from sfo.experiments.studies.main import ADAM_PROTOCOLS


def test_a_benchmark_takes_all_rows_of_it():
    """The rows of the study of data are a benchmark and a model each."""
    chosen = Selection.of(["data"], rows=["allen_cahn"])
    ((_, cells),) = chosen.tables()
    assert {cell.experiment.data.benchmark for cell in cells} == {"allen_cahn"}
    assert len({cell.row for cell in cells}) > 1


def test_rows_and_columns_are_a_part_of_the_table():
    chosen = Selection.of(["main"], rows=["maxwell"], columns=["fno", "sfo"])
    ((study, cells),) = chosen.tables()
    assert study.name == "main"
    assert [(cell.row, cell.column) for cell in cells] == [("maxwell", "sfo"), ("maxwell", "fno")]


def test_runs_that_wait_for_trials_are_counted(tmp_path):
    """Three trials and two seeds for a tuned cell, none of which is done."""
    chosen = Selection.of(["main"], seeds=2, rows=["maxwell"], columns=["fno"])
    kinds = [kind for kind, _ in chosen.open_runs(Results(tmp_path))]
    assert kinds == len(ADAM_PROTOCOLS) * ["trial"] + 2 * ["run"]


def test_a_model_that_is_not_installed_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr("sfo.models.neuralop.find_spec", lambda name: None)
    chosen = Selection.of(["main", "params"], scale="smoke")
    ((_, cells),) = chosen.tables()
    assert len(cells) == len(PAPER_BENCHMARKS) * (len(MAIN_MODELS) - 1)
    assert chosen.missing_models(Results(tmp_path)) == ["neuralop_fno"]
    done = Results(tmp_path)
    done.keep_table("params", {"counts": {}})
    assert Selection.of(["params"]).missing_models(done) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(names=[]), "Name a study: "),
        (dict(names=["mian"]), "Unknown study 'mian'; known: basis, "),
        (dict(names=["main"], seeds=0), "`seeds` must be at least 1, got 0"),
        (dict(names=["glu"], columns=["gul"]), "`column` must be some of mlp, glu, got 'gul'"),
        (dict(names=["index"], rows=["burgers"]), "some of shallow_water, maxwell, got 'burgers'"),
    ],
)
def test_wrong_names_are_answered_with_the_right_ones(arguments, message):
    with pytest.raises(ValueError, match=message):
        Selection.of(**arguments)
