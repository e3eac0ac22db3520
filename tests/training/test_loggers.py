"""Loggers by name: what they hold is the history, also after a resume."""

import csv
import io
import sys
import time

import pytest
from rich.console import Console
from small_runs import dying_at, ended, in_child, small

from sfo.experiments.progress import training_bar
from sfo.training import checkpoint
from sfo.training.fit import fit


def fit_with(experiment, folder, *names):
    return fit(experiment, folder, loggers=names, resume="auto")


def fit_and_die(experiment, folder, *names):
    dying_at(checkpoint, "save", 3)
    fit_with(experiment, folder, *names)


def test_a_csv_has_a_row_per_epoch_whether_or_not_it_was_killed(tmp_path):
    experiment = small(validate_every=2)
    assert ended(in_child(fit_and_die, experiment, tmp_path, "csv")) == -9
    run = fit_with(experiment, tmp_path, "csv")
    with (tmp_path / "csv" / "metrics.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [row["step"] for row in run.history]
    assert [float(row["loss"]) for row in rows] == [row["loss"] for row in run.history]
    assert rows[0]["validation"] == "", "nothing was validated in the first epoch"


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_logger_that_is_not_installed_is_refused_before_anything(name, tmp_path, monkeypatch):
    monkeypatch.setattr("sfo.training.loggers.find_spec", lambda package: None)
    with pytest.raises(ValueError, match=r"pip install '.\[loggers\]' in the clone brings it"):
        fit_with(small(), tmp_path / "run", name)
    assert not (tmp_path / "run").exists()


def test_an_unknown_logger_names_the_others(tmp_path):
    with pytest.raises(ValueError, match="one of 'csv', 'mlflow', 'tensorboard', 'wandb', got 'x'"):
        fit_with(small(), tmp_path / "run", "x")


@pytest.mark.engines
def test_mlflow_keeps_one_run_of_a_folder_that_is_resumed(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="`make test-engines` installs it")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert ended(in_child(fit_and_die, small(), tmp_path, "mlflow")) == -9
    run = fit_with(small(), tmp_path, "mlflow")
    client = mlflow.MlflowClient(tracking_uri=(tmp_path / "mlflow").as_uri())
    place = client.get_experiment_by_name("sfo").experiment_id
    (found,) = client.search_runs([place])
    curve = {m.step: m.value for m in client.get_metric_history(found.info.run_id, "validation")}
    assert curve == {row["step"]: row["validation"] for row in run.history}
    assert found.data.params["model.name"] == "sfo"
    assert found.info.status == "FINISHED"


@pytest.mark.engines
def test_wandb_offline_keeps_the_curves_in_the_folder(tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="`make test-engines` installs it")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.delitem(sys.modules, "wandb.sdk", raising=False)
    fit_with(small(), tmp_path, "wandb")
    (log,) = (tmp_path / "wandb").glob("offline-run-*/*.wandb")
    # Written by a process of wandb's own.
    until = time.monotonic() + 30
    while b"validation" not in log.read_bytes():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_log_file_has_a_line_per_epoch(tmp_path):
    text = io.StringIO()
    with training_bar(Console(file=text, markup=False, highlight=False)) as show:
        run = fit(small(), tmp_path, progress=show)
    lines = text.getvalue().splitlines()
    assert [line.split("  ")[0] for line in lines] == ["epoch 1/3", "epoch 2/3", "epoch 3/3"]
    last = run.history[-1]
    assert f"loss {100 * last['loss']:.3g} %" in lines[-1]
    assert f"validation {100 * last['validation']:.3g} %" in lines[-1]
