"""The committed report is what the committed Records make."""

import json
import shutil
from pathlib import Path

import pytest

from sfo.experiments.measurements import parameters
from sfo.experiments.record import Record
from sfo.experiments.results import Results
from sfo.report.build import write

RESULTS = sorted((Path(__file__).parents[2] / "results").glob("*/"))


def rewritten(folder, place):
    """The files of the report that the committed Records make, and those that are committed."""
    for kind in ("records", "findings", "tables", "failures"):
        if (folder / kind).is_dir():
            shutil.copytree(folder / kind, place / kind)
    made = {path.relative_to(place): path.read_bytes() for path in write(place)}
    kept = [p for p in folder.iterdir() if p.suffix in (".html", ".md")]
    kept += sorted((folder / "figures").glob("*.png"))
    return made, {path.relative_to(folder): path.read_bytes() for path in kept}


@pytest.mark.slow
@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_the_committed_report_is_made_from_the_committed_records(folder, tmp_path):
    made, kept = rewritten(folder, tmp_path)
    assert kept.keys() == made.keys()
    for path, content in kept.items():
        assert content == made[path], (
            f"{path} is not of these Records; run `sfo report {folder.name}` and commit it"
        )


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_the_committed_text_is_made_from_the_committed_records(folder, tmp_path, monkeypatch):
    """Drawing the figures takes most of the time: they are compared in the slow test."""
    monkeypatch.setattr("sfo.experiments.blocks.png", lambda figure: b"")
    made, kept = rewritten(folder, tmp_path)
    assert kept.keys() == made.keys()
    text = next(path for path in kept if path.suffix == ".md")
    assert kept[text] == made[text], f"run `sfo report {folder.name}` and commit what it writes"


@pytest.mark.parametrize("folder", RESULTS, ids=lambda folder: folder.name)
def test_findings_are_of_the_weights_that_the_records_are_of(folder):
    """On its own grid a transferred model has the Record's error."""
    results = Results(folder)
    for path in (folder / "findings").glob("transfer-*.json"):
        record = Record.load(folder / "records" / path.name.removeprefix("transfer-"))
        found = results.analysis("transfer", record.experiment).values
        for errors in found["percent"].values():
            assert errors[str(found["trained"])] == pytest.approx(record.errors.percent, rel=1e-4)


def test_the_committed_counts_are_those_of_the_package():
    """After a change of a preset: delete the table, `sfo reproduce params`, `sfo report`."""
    (desk,) = (folder for folder in RESULTS if folder.name == "desk")
    kept = json.loads((desk / "tables" / "params.json").read_text())["values"]["counts"]
    counted = parameters("desk", lambda line: None, Results(desk))["counts"]
    assert counted.keys() == kept.keys()
    for benchmark, counts in counted.items():  # Without a peer its column is not counted.
        assert counts == {name: kept[benchmark][name] for name in counts}, benchmark
