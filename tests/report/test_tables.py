"""Tables say what the Records say, and what is not there."""

import math

import pytest
from synthetic import fill, measurements, record

from sfo.evaluation.statistics import mean_interval
from sfo.experiments import blocks, paper
from sfo.experiments.blocks import Table
from sfo.experiments.measurement_tables import parameter_table, runtime_table
from sfo.experiments.present import study_blocks
from sfo.experiments.results import Results
from sfo.experiments.studies import STUDIES
from sfo.experiments.study_results import study_results, table


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """They take most of the time."""
    monkeypatch.setattr(blocks, "png", lambda figure: b"")


def study_tables(found):
    return [block for block in study_blocks(found) if isinstance(block, Table)]


def tables(results, study, seeds=1, scale="smoke"):
    return study_tables(study_results(STUDIES[study], results, scale, seeds))


def entry(made, row, column):
    found = next(r for r in made.rows if r.title == row)
    return found.entries[made.columns.index(column) - 1]


def allen_cahn(cell):
    return cell.row == "allen_cahn"


def test_mean_over_seeds_in_per_cent(tmp_path):
    errors = {0: 0.01, 1: 0.02, 2: 0.03}
    results = fill(
        tmp_path, "fixed", seeds=3, only=allen_cahn, error=lambda cell, run: errors[run.seed]
    )
    found = entry(tables(results, "fixed", 3)[0], "1D Allen–Cahn", "SFO")
    assert found.text == str(mean_interval([1, 2, 3])) == "2 ± 2"
    assert found.value == pytest.approx(2)
    assert found.published == "0.05 ± 0.012"
    assert len(found.runs) == 3


def test_one_seed_has_no_spread(tmp_path):
    results = fill(tmp_path, "fixed", only=allen_cahn, error=lambda cell, run: 0.00531)
    made = tables(results, "fixed")[0]
    assert entry(made, "1D Allen–Cahn", "FNO").text == "0.531"
    assert "One seed" in made.notes[0]


def test_fewer_seeds_are_counted(tmp_path):
    results = fill(
        tmp_path,
        "fixed",
        seeds=2,
        only=lambda cell: allen_cahn(cell) and cell.column == "fno",
        error=lambda cell, run: 0.01,
    )
    fill(tmp_path, "fixed", only=allen_cahn, error=lambda cell, run: 0.0053)
    made = tables(results, "fixed", 2)[0]
    assert entry(made, "1D Allen–Cahn", "SFO").text == "0.53 (1 seed)"
    assert entry(made, "1D Allen–Cahn", "FNO").text == "1 ± 0"


def test_missing_and_failed(tmp_path):
    """A cell without a Record says so; one that failed says why, below the table."""
    results = fill(tmp_path, "fixed", only=lambda cell: cell.row == "maxwell")
    failed = STUDIES["fixed"].cells("smoke", 1)[0]
    results.keep_failure(failed.experiment, "The loss is nan at step 3.\nTraceback …")
    made = tables(results, "fixed")[0]
    assert entry(made, "1D Allen–Cahn", "SFO").text == "failed"
    assert entry(made, "1D Allen–Cahn", "FNO").text == "–"
    assert "1D Allen–Cahn, SFO: seed 0 failed: The loss is nan at step 3." in made.notes
    assert any("9 of 12 cells" in note for note in made.notes)


def test_diverged_seed_is_counted_apart(tmp_path):
    """An infinite error has no place in a mean."""
    errors = {0: 0.01, 1: math.inf}
    results = fill(
        tmp_path, "fixed", seeds=2, only=allen_cahn, error=lambda cell, run: errors[run.seed]
    )
    made = tables(results, "fixed", 2)[0]
    assert entry(made, "1D Allen–Cahn", "SFO").text == "1 (1 seed)"
    assert any("seed 1 diverged" in note for note in made.notes)


def test_protocol_is_the_one_with_the_lowest_validation(tmp_path):
    results = Results(tmp_path)
    cell = STUDIES["main"].cells("desk", 1)[0]
    for trial, validation in zip(cell.trials(), (0.3, 0.1, 0.2, 0.15), strict=True):
        results.keep(record(trial, validation=validation))
    errors, protocols = tables(results, "main", scale="desk")
    assert entry(protocols, "1D Allen–Cahn", "SFO").text == "muon one cycle 0.01"
    assert entry(protocols, "1D Allen–Cahn", "FNO").text == "–"
    assert entry(errors, "1D Allen–Cahn", "SFO").text == "–"


def test_choice_by_validation_beside_the_papers(tmp_path):
    """The lowest validation error decides, also where another has the lower test error."""
    results = Results(tmp_path)
    for cell in filter(allen_cahn, STUDIES["tune"].cells("smoke", 1)):
        chosen, best = cell.column == "L=20, d=32", cell.column == "L=16, d=128"
        results.keep(record(cell.experiment, 0.01 if best else 0.02, 0.1 if chosen else 0.2))
    choice = tables(results, "tune")[1]
    found = entry(choice, "1D Allen–Cahn", "chosen by validation")
    assert (found.text, found.published) == ("L=20, d=32", "L=16, d=64")
    assert entry(choice, "1D Allen–Cahn", "its test error, %").text == "2"
    assert entry(choice, "1D Allen–Cahn", "lowest test error, %").text == "L=16, d=128: 1"
    assert entry(choice, "2D Shallow Water", "chosen by validation").text == "–"


def test_boundary_and_interior(tmp_path):
    results = fill(tmp_path, "boundary", error=lambda cell, run: 0.01)
    made = tables(results, "boundary")[0]
    texts = [
        entry(made, "1D Diffusion–Sorption", f"SFO, {region}")
        for region in ("full", "boundary", "interior")
    ]
    assert [e.text for e in texts] == ["1", "2", "0.5"]
    assert [float(e.published) for e in texts] == pytest.approx(
        list(paper.BOUNDARY["diffusion_sorption"].values()), rel=1e-3
    )


def test_coefficients_are_means_over_layers(tmp_path):
    results = fill(tmp_path, "coefficients", only=allen_cahn)
    made = tables(results, "coefficients")[0]
    row = next(r for r in made.rows if r.title == "1D Allen–Cahn")
    assert [e.text for e in row.entries] == ["3", "0.5", "l = 1 of 4", f"{5 / 1.5:.2f}"]
    assert row.entries[2].published == "l = 2 of 16"
    assert "on 1 of 1 available benchmarks" in made.notes[0]


def test_zero_shot_compares_ways_on_the_same_grid(tmp_path):
    results = fill(tmp_path, "zero-shot", only=allen_cahn)
    made = tables(results, "zero-shot")[0]
    assert made.columns[1:] == ("1/4 of the points", "1/2 of the points", "as trained")
    texts = {row.title.split(": ")[1]: [e.text for e in row.entries] for row in made.rows}
    assert texts == {
        "SFO, modes rebuilt": ["–", "2", "1"],
        "SFO, modes restricted": ["–", "1.5", "1"],
        "FNO": ["9", "3", "1.25"],
        "SFO recommended": ["–", "1.5", "1"],
        "neuraloperator FNO": ["–", "–", "–"],
    }
    assert [row.entries[1].mark for row in made.rows] == ["second", "best", "", "best", ""]
    assert [row.entries[2].mark for row in made.rows] == ["best", "best", "second", "best", ""]


def test_seeds_without_a_finding_are_not_missing(tmp_path):
    """The main table may train more seeds of the models that are taken to other grids."""
    fill(tmp_path, "main", seeds=3, only=allen_cahn)
    results = fill(tmp_path, "zero-shot", only=allen_cahn)
    found = study_results(STUDIES["zero-shot"], results, "smoke", 3)
    assert found.command.endswith("--seeds 1")
    assert study_tables(found)[0].rows[0].entries[-1].text == "1"
    assert {len(f.records) for (row, _), f in found.cells.items() if row == "allen_cahn"} == {1}
    assert study_results(STUDIES["main"], results, "smoke", 3).seeds == 3


def test_parameters_by_dimension(tmp_path):
    results = Results(tmp_path)
    counts = {"allen_cahn": 100, "diffusion_sorption": 200, "maxwell": 5000}
    results.keep_table("params", {"counts": {b: {"sfo": n} for b, n in counts.items()}})
    made = parameter_table(table(results, "params"))
    assert entry(made, "Mean in 1D", "SFO").text == "150"
    assert entry(made, "Mean in 1D", "SFO").published == "283,413"
    assert entry(made, "Mean in 3D", "SFO").text == "5,000"


def test_times_as_multiples_of_sfo(tmp_path):
    results = Results(tmp_path)
    measurements(results)
    made = runtime_table(table(results, "runtime"))
    found = entry(made, "1D Allen–Cahn", "SVD-NO")
    assert found.text == "1.5 (3×)"
    assert found.published == f"5.87 ({5.87 / 2.09:.2g}×)"


@pytest.mark.parametrize("study", STUDIES.names())
def test_an_empty_folder_raises_nothing(tmp_path, study):
    for made in tables(Results(tmp_path), study):
        assert all(e.value is None for row in made.rows for e in row.entries)
