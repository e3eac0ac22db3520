"""Every command trains the run that it stands beside."""

import re
import shlex

import numpy as np
import pytest
from synthetic import fill

import sfo
from sfo import cli
from sfo.commands import training
from sfo.experiments.results import Results, name
from sfo.experiments.studies import STUDIES
from sfo.experiments.study import with_changes
from sfo.experiments.study_results import study_results
from sfo.report.build import write
from sfo.report.provenance import provenance, train_command
from sfo.training.config import Experiment


@pytest.fixture
def parse(monkeypatch):
    """The experiment that a command would train."""
    caught = []
    monkeypatch.setattr(
        training, "_run", lambda experiment, folder, **how: caught.append(experiment)
    )

    def parse(command):
        program, *words = shlex.split(command)
        assert program == "sfo"
        cli.main(words)
        return caught.pop()

    return parse


@pytest.mark.parametrize("study", STUDIES.names())
def test_commands_of_all_columns(parse, study):
    """Of every study, on one benchmark of one axis and on one of three."""
    cells = [
        cell
        for cell in STUDIES[study].cells("desk", 1)
        if cell.experiment.data.benchmark in ("allen_cahn", "maxwell")
    ]
    assert cells
    for cell in cells:
        run = (cell.trials() or [with_changes(cell.experiment, seed=2)])[0]
        assert parse(train_command(run)) == run


def test_command_of_an_unusual_run(parse):
    """Options of data, text that looks like a number, and nothing where something is usual."""
    run = Experiment.of(
        "cahn_hilliard",
        scale="smoke",
        seed=3,
        preset="default",
        settings=dict(norm=None, skip=True),
        data=dict(samples=12, seed=4, options=dict(gamma=1e-5), time_stride=2, scheme="paper"),
        train=dict(ema=0.9, epochs=7),
    )
    assert parse(train_command(run)) == run


def test_command_of_a_run_on_own_data(parse, tmp_path):
    """`sfo report` on two such runs ended with "Unknown benchmark 'arrays'"."""
    a = np.random.default_rng(0).normal(size=(20, 1, 16)).astype("float32")
    np.savez(tmp_path / "mine.npz", a=a, u=2 * a)
    for label, width in (("one", 4), ("two", 8)):
        settings = dict(hidden_channels=width, n_modes=4, n_layers=1)
        run = sfo.fit(a, 2 * a, epochs=1, settings=settings, seed=3, out=tmp_path / label)
    text = re.fullmatch(
        r"sfo train --config <\(echo (.*)\) --data FILE", train_command(run.experiment)
    )[1]
    (tmp_path / "config.json").write_text(*shlex.split(text))
    again = f"sfo train --config {tmp_path}/config.json --data {tmp_path}/mine.npz"
    assert parse(again) == run.experiment
    write(tmp_path / "one", tmp_path / "two", out=tmp_path / "both")
    report = (tmp_path / "both" / "report.md").read_text()
    assert "arrays, data of your own" in report
    assert "--data FILE" in report


def test_what_no_option_can_say_is_a_configuration():
    """The paper's scale halves the rate every 100 epochs; no option says "never mind"."""
    run = Experiment.of("allen_cahn", scale="paper", train=dict(decay_every=None))
    command = train_command(run)
    assert command.startswith("sfo train --config <(echo ")
    assert Experiment.from_json(shlex.split(command)[-1].rstrip(")")) == run


def test_every_run_is_listed_with_its_record(tmp_path):
    fill(tmp_path, "main", scale="desk", seeds=2, only=lambda c: c.row == "maxwell")
    found = study_results(STUDIES["main"], Results(tmp_path), "desk", 2)
    table = provenance(found).blocks[1]
    listed = {row.entries[3].text for row in table.rows}
    assert listed == {f"records/{path.name}" for path in (tmp_path / "records").iterdir()}
    for row in table.rows:
        assert f"records/{row.entries[0].runs[0]}.json" == row.entries[3].text
    trained = [f.runs[0] for f in found.cells.values() if f.runs]
    assert {name(run) for run in trained} <= {row.entries[0].runs[0] for row in table.rows}
