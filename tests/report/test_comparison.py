"""Run folders side by side: the numbers of their Records, and what they differ in."""

import json

import pytest
from read_html import Tables
from synthetic import fill, record

from sfo.cli import main
from sfo.evaluation import Errors
from sfo.experiments.record import Record
from sfo.report.build import write
from sfo.training.config import Experiment


def run_folder(folder, model="sfo", error=0.1, *, finished=True, epochs=2, **extra):
    """A folder as `sfo train` leaves it, without training."""
    experiment = Experiment.of("allen_cahn", model, scale="smoke", train=dict(epochs=epochs))
    folder.mkdir(parents=True)
    (folder / "experiment.json").write_text(experiment.to_json())
    rows = [dict(epoch=e, loss=error, validation=2 * error, step=e) for e in range(epochs)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    if finished:
        errors = {**record(experiment, error).errors, **extra}
        Record(experiment, Errors(**errors), 1234, 1, 2 * error, epochs).save(
            folder / "record.json"
        )
        (folder / "cost.json").write_text(json.dumps({"seconds_per_epoch": 1.5, "flops": 2e9}))
    return folder


def tables(folder):
    return Tables((folder / "report.html").read_text()).sections["data-1"]


def test_runs_are_compared(tmp_path):
    """Errors of the Records with the best marked, costs, a plugin's metric, what differs."""
    first = run_folder(tmp_path / "first", error=0.02, of_a_plugin=3.0)
    second = run_folder(tmp_path / "second", "fno", error=0.01, epochs=4)
    begun = run_folder(tmp_path / "begun", finished=False, epochs=3)
    main(["report", str(first), str(second), str(begun), "--out", str(tmp_path / "out")])
    errors, metrics, differences = tables(tmp_path / "out")
    assert [cell[0] for cell in errors[0]][-2:] == ["seconds per epoch", "GFLOP per prediction"]
    assert [cell[0] for cell in errors[1]] == ["first", "2", "4", "2 of 2", "1,234", "1.5", "2"]
    assert [cell[0] for cell in errors[3]] == ["begun", "not finished"] + 5 * ["–"]
    assert (errors[1][1][2], errors[2][1][2], errors[3][1][2]) == ("second", "best", "")
    by_metric = {row[0][0]: [cell[0] for cell in row[1:]] for row in metrics[1:]}
    assert by_metric["relative L2 (the paper's), %"] == ["2", "1"]
    assert by_metric["of_a_plugin"] == ["3", "–"]
    assert by_metric["relative L2 by field, %"] == ["–", "–"], "made before there was the metric"
    by_key = {row[0][0]: [cell[0] for cell in row[1:]] for row in differences[1:]}
    assert by_key == {"model.name": ["sfo", "fno", "sfo"], "train.epochs": ["2", "4", "3"]}
    text = (tmp_path / "out" / "report.md").read_text()
    assert "begun has 3 of 3 epochs" in text
    assert "![Validation and training error" in text
    assert (tmp_path / "out" / "figures" / "curves-1.png").exists()


def test_one_run_is_reported_in_its_own_folder(tmp_path):
    written = write(run_folder(tmp_path / "mine"))
    assert tmp_path / "mine" / "report.html" in written
    assert "# The run mine" in (tmp_path / "mine" / "report.md").read_text()


def test_a_folder_of_runs_and_a_folder_of_results_are_taken_alike(tmp_path):
    """A results folder beside run folders adds its Records; other data have their own section."""
    run_folder(tmp_path / "runs" / "a")
    run_folder(tmp_path / "runs" / "b", "fno")
    fill(tmp_path / "results", "fixed", only=lambda cell: cell.row in ("allen_cahn", "maxwell"))
    write(tmp_path / "runs", tmp_path / "results", out=tmp_path / "out")
    sections = Tables((tmp_path / "out" / "report.html").read_text()).sections
    rows = [[row[0][0] for row in sections[f"data-{n}"][0][1:]] for n in (1, 2)]
    assert rows[0][:2] == ["a", "b"]
    assert [len(r) for r in rows] == [4, 2]
    assert all(label.startswith("maxwell-") for label in rows[1])


def test_a_damaged_record_is_left_out_and_named(tmp_path):
    """As it is in a folder of results; where nothing else is left, the report is refused."""
    run_folder(tmp_path / "runs" / "good")
    bad = run_folder(tmp_path / "runs" / "bad", "fno") / "record.json"
    bad.write_text(bad.read_text().replace("1234", "1235"))
    write(tmp_path / "runs")
    text = (tmp_path / "runs" / "report.md").read_text()
    assert "**Left out of this comparison:**" in text
    assert "bad/record.json" in text
    assert str(tmp_path) not in text
    assert [row[0][0] for row in tables(tmp_path / "runs")[0][1:]] == ["good"]
    with pytest.raises(ValueError, match=r"no run to report: bad/record\.json"):
        write(bad.parent)


def test_a_folder_without_runs_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path / "nothing")])
    assert stop.value.code == 2
    assert "holds no results and no run" in capsys.readouterr().err
    assert not (tmp_path / "nothing").exists()
