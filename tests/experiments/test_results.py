"""Results: what is kept, what is refused, and what a study asks for next."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from sfo.evaluation.errors import Errors
from sfo.experiments.record import Analysis, Record, RecordError
from sfo.experiments.results import Results, name
from sfo.experiments.runner import plan
from sfo.experiments.studies import STUDIES
from sfo.experiments.studies.main import ADAM_PROTOCOLS
from sfo.experiments.study import Cell, Study, with_changes
from sfo.training.config import Experiment


def errors(value=0.1):
    return Errors(
        relative_l2=value,
        per_sample=[value],
        per_time=[value],
        boundary_l2=value,
        interior_l2=value,
        max_error=value,
        pdenneval_l2re=[value],
        pdenneval_max=[value],
        pdebench_rmse=value,
        pdebench_nrmse=value,
        pdebench_max=value,
        neuralop_l2=value,
        zero_targets=0,
    )


def record(experiment, validation=0.1, **changes):
    made = Record(experiment, errors(validation), 10, 0, validation, 1)
    return replace(made, **changes)


@pytest.fixture
def smoke():
    return Experiment.of("allen_cahn", "fno", scale="smoke")


def test_a_record_comes_back_equal(tmp_path, smoke):
    Results(tmp_path).keep(record(smoke))
    assert Results(tmp_path).record(smoke) == record(smoke)
    assert Results(tmp_path).record(with_changes(smoke, seed=1)) is None


def test_an_analysis_comes_back_equal(tmp_path, smoke):
    analysis = Analysis(smoke, "coefficients", {"norms": [[1.0, float("inf")]]})
    Results(tmp_path).keep(analysis)
    assert Results(tmp_path).analysis("coefficients", smoke) == analysis
    assert Results(tmp_path).analysis("transfer", smoke) is None


def test_a_record_is_never_replaced(tmp_path, smoke):
    results = Results(tmp_path)
    results.keep(record(smoke, 0.1))
    with pytest.raises(RecordError, match="is there already"):
        results.keep(record(smoke, 0.2))
    assert Results(tmp_path).record(smoke).validation == 0.1


def test_an_edited_record_is_reported(tmp_path, smoke):
    results = Results(tmp_path)
    results.keep(record(smoke))
    (path,) = (tmp_path / "records").iterdir()
    path.write_text(path.read_text().replace("0.1", "0.01"))
    with pytest.raises(RecordError, match="was changed after it was written"):
        Results(tmp_path).record(smoke)
    (problem,) = Results(tmp_path).problems()
    assert path.name in problem


def test_a_record_of_another_version_reads(tmp_path, smoke):
    Results(tmp_path).keep(record(smoke, version="0.0.1"))
    assert Results(tmp_path).record(smoke).version == "0.0.1"
    assert Results(tmp_path).problems() == []


def test_a_renamed_record_is_reported(tmp_path, smoke):
    Results(tmp_path).keep(record(smoke))
    (path,) = (tmp_path / "records").iterdir()
    other = with_changes(smoke, seed=1)
    path.rename(path.with_name(f"{name(other)}.json"))
    with pytest.raises(RecordError, match="another experiment"):
        Results(tmp_path).record(other)
    (problem,) = Results(tmp_path).problems()
    assert name(smoke) in problem


def table(cells, analyses=()):
    study = Study("mine", "", "", lambda scale, seeds: cells, analyses=analyses)
    return [(study, cells)]


@pytest.mark.parametrize(("epochs", "of_a_trial"), [(6, 2), (18, 3)])
def test_trials_come_first_and_the_best_protocol_is_taken(epochs, of_a_trial, tmp_path, smoke):
    results, long = Results(tmp_path), with_changes(smoke, epochs=epochs)
    cell = Cell("allen_cahn", "fno", long, seeds=2, protocols=ADAM_PROTOCOLS)
    trials = [job.experiment for job in plan(table([cell]), results)]
    assert trials == cell.trials()
    assert {trial.train.epochs for trial in trials} == {of_a_trial}
    for trial, error in zip(trials, (0.3, 0.1, 0.2), strict=True):
        results.keep(record(trial, error))
    runs = [job.experiment for job in plan(table([cell]), results)]
    assert [run.seed for run in runs] == [0, 1]
    for run in runs:
        assert run.train.learning_rate == ADAM_PROTOCOLS[1]["learning_rate"]
        assert run.train.schedule == ADAM_PROTOCOLS[1]["schedule"]
        assert run.train.epochs == epochs


def test_a_trial_that_failed_is_not_chosen(tmp_path, smoke):
    results, cell = Results(tmp_path), Cell("allen_cahn", "fno", smoke, protocols=ADAM_PROTOCOLS)
    first, second, third = cell.trials()
    results.keep_failure(first, "diverged")
    results.keep(record(second, 0.5))
    assert cell.choice(results) is None, "the third is not done"
    results.keep(record(third, 0.7))
    assert cell.choice(results) == ADAM_PROTOCOLS[1]


def test_what_is_done_or_failed_is_not_done_again(tmp_path, smoke):
    results, cell = Results(tmp_path), Cell("allen_cahn", "fno", smoke, seeds=3)
    runs = cell.runs(results)
    results.keep(record(runs[0]))
    results.keep_failure(runs[1], "diverged")
    assert [job.experiment for job in plan(table([cell]), results)] == runs[2:]
    results.forget_failures()
    assert [job.experiment for job in plan(table([cell]), results)] == runs[1:]


def test_two_studies_share_a_run_and_its_analyses_are_joined(tmp_path, smoke):
    results, cell = Results(tmp_path), Cell("allen_cahn", "fno", smoke)
    both = table([cell], ("transfer",)) + table([cell], ("coefficients",))
    (job,) = plan(both, results)
    assert job.analyses == ("transfer", "coefficients")
    results.keep(record(smoke))
    assert plan(both, results) == [job], "a Record alone is not all that is asked for"


@pytest.mark.parametrize("scale", ["smoke", "desk", "paper"])
@pytest.mark.parametrize("study", STUDIES.names())
def test_every_study_is_a_table_of_different_runs(study, scale):
    cells = STUDIES[study].cells(scale, 2)
    places = [(cell.row, cell.column) for cell in cells]
    assert len({*places}) == len(places) >= 4
    assert len({name(cell.experiment) for cell in cells}) == len(cells)
    # Maxwell's smoke grid does not take the 16 modes that are the least of the grid search.
    rows = 2 if study == "index" else 5 if (study, scale) == ("tune", "smoke") else 6
    assert len({cell.row for cell in cells}) == rows


def test_the_paper_has_a_number_for_every_cell_of_its_tables():
    for study, missing in {"main": 12, "basis": 6, "glu": 0, "index": 0, "width": 0}.items():
        cells = STUDIES[study].cells("paper", 1)
        published = [STUDIES[study].published(cell.row, cell.column) for cell in cells]
        assert published.count(None) == missing, study


def test_an_unknown_study_is_answered_with_the_known_ones():
    command = [sys.executable, "-m", "sfo", "reproduce", "mian"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 2
    assert "Unknown study 'mian'; known: " in found.stderr
    assert "main" in found.stderr
    assert "Traceback" not in found.stderr


def test_a_key_does_not_change_when_a_default_is_spelled_out(smoke):
    entries = json.loads(smoke.to_json())
    entries["model"].pop("settings")
    assert Experiment(**entries).key == smoke.key


def test_studies_share_the_runs_that_they_have_in_common():
    """The paper's SFO on Allen-Cahn has 16 modes and 64 channels."""
    wanted = {
        "fixed": "sfo",
        "basis": "usb",
        "glu": "mlp",
        "rank": "L=16",
        "width": "d=64",
        "tune": "L=16, d=64",
        "subsample": "s=1",
        "design": "paper",
    }
    runs = set()
    for study, column in wanted.items():
        cells = STUDIES[study].cells("desk", 1)
        (cell,) = [c for c in cells if (c.row, c.column) == ("allen_cahn", column)]
        runs.add(name(cell.experiment))
    assert len(runs) == 1
