"""The files that are written: the numbers of the Records, the same bytes every time."""

import ast
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from read_html import Tables
from synthetic import fill, record

from sfo.evaluation.statistics import mean_interval
from sfo.experiments import blocks, paper
from sfo.experiments.measurements import MEASUREMENTS
from sfo.experiments.record import seal
from sfo.experiments.results import Results
from sfo.experiments.studies import MAIN_MODELS, PAPER_BENCHMARKS, STUDIES
from sfo.report import build
from sfo.report.build import write


@pytest.fixture
def no_pictures(monkeypatch):
    """They take most of the time."""
    monkeypatch.setattr(blocks, "png", lambda figure: b"")


def main_table(folder):
    """By benchmark and column: text, small print and mark."""
    table = Tables((folder / "report.html").read_text()).sections["main"][0]
    rows = zip(MAIN_MODELS, table[1:], strict=True)
    return {
        (benchmark, model): cell
        for model, row in rows
        for benchmark, cell in zip(PAPER_BENCHMARKS, row[1:], strict=True)
    }


def test_main_table_is_the_records(folder):
    """Every number is the mean and the interval of the Records, the paper's beside it."""
    cells, results = main_table(folder), Results(folder)
    for cell in STUDIES["main"].cells("smoke", 2):
        text, small, _ = cells[cell.row, cell.column]
        found = [r for run in cell.runs(results) if (r := results.record(run))]
        percents = [r.errors.percent for r in found]
        assert text == (str(mean_interval(percents)) if percents else "–")
        theirs = paper.MAIN[cell.row].get(cell.column)
        assert small == (f"paper {theirs.mean:.4g} ± {theirs.half_width:.4g}" if theirs else "")


def test_marks_are_the_lowest_means(folder):
    cells, results = main_table(folder), Results(folder)
    for row in PAPER_BENCHMARKS:
        means = {}
        for cell in STUDIES["main"].cells("smoke", 2):
            found = [r for run in cell.runs(results) if (r := results.record(run))]
            if cell.row == row and found:
                means[cell.column] = sum(r.errors.percent for r in found) / len(found)
        assert cells[row, min(means, key=means.__getitem__)][2] == "best"
        assert cells[row, max(means, key=means.__getitem__)][2] == ""


def test_markdown_has_the_same_numbers(folder):
    text = (folder / "report.md").read_text()
    for (_, _), (number, small, mark) in main_table(folder).items():
        sign = {"best": "**", "second": "_", "": ""}[mark]
        paper_part = f" ({small})" if small else ""
        assert f"| {sign}{number}{sign}{paper_part} |" in text


def test_same_records_same_bytes(tmp_path):
    """In another folder, and written over an older report; all figures among them."""
    first, second = tmp_path / "first", tmp_path / "second"
    with_figures = ("main", "main-adam", "coefficients", "rank", "zero-shot", "boundary")
    fill(first, *with_figures, only=lambda cell: cell.row == "allen_cahn")
    written = [path.relative_to(first) for path in write(first)]
    shutil.copytree(first, second)
    (second / "figures" / "gone.png").touch()
    (second / "report.md").write_text((second / "report.md").read_text() + "![](figures/gone.png)")
    assert [path.relative_to(second) for path in write(second)] == written
    assert sum(path.suffix == ".png" for path in written) == 1 + len(with_figures)
    for path in written:
        assert (first / path).read_bytes() == (second / path).read_bytes(), path
    assert not (second / "figures" / "gone.png").exists()


def test_nothing_from_outside_and_no_script(folder):
    text = (folder / "report.html").read_text()
    assert not re.search(r'(src|href)\s*=\s*"(?!data:|#)', text)
    assert not re.search(r"<script|<link|<iframe|@import|url\(", text)
    assert text.count("data:image/png;base64,") == len(list((folder / "figures").iterdir()))
    assert str(folder) not in text


def test_edited_record_is_named_and_left_out(folder, tmp_path, no_pictures):
    copy = tmp_path / "edited"
    shutil.copytree(folder, copy)
    results = Results(folder)
    cell = next(c for c in STUDIES["main"].cells("smoke", 2) if c.column == "fno")
    first, second = cell.runs(results)
    path = next((copy / "records").glob(f"*{first.key}.json"))
    path.write_text(path.read_text().replace('"relative_l2": 0.', '"relative_l2": 0.0'))
    write(copy)
    text = (copy / "report.html").read_text()
    assert "One file left out of this report" in text
    assert f"records/{path.name} was changed after it was written" in text
    percent = results.record(second).errors.percent
    assert main_table(copy)[cell.row, "fno"][0] == f"{percent:.3g} (1 seed)"
    assert path.name not in Tables(text).folded["main"][0]


def test_edited_trial_leaves_its_cell_out(tmp_path, no_pictures):
    """Without its trials nobody knows which protocol was to be taken."""
    some = [c for c in STUDIES["main"].cells("desk", 1) if c.row == "allen_cahn"][:3]
    fill(tmp_path, "main", scale="desk", only=lambda cell: cell in some)
    path = next((tmp_path / "records").glob(f"*{some[0].trials()[0].key}.json"))
    path.write_text(path.read_text().replace('"parameters": ', '"parameters": 1'))
    write(tmp_path)
    cells = main_table(tmp_path)
    assert cells["allen_cahn", some[0].column][0] == "–"
    assert cells["allen_cahn", some[1].column][0] != "–"


def test_other_revisions_and_wrong_names_are_left_out(tmp_path, no_pictures):
    """A Record of another revision, an edited table, and a Record under another name."""
    results = fill(tmp_path, "fixed", only=lambda cell: cell.row == "maxwell")
    old, moved, *_ = [cell.experiment for cell in STUDIES["fixed"].cells("smoke", 1)]
    results.keep(replace(record(old), revisions={"model": 7}))
    (tmp_path / "records" / "moved.json").write_text(record(moved).to_json())
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "params.json").write_text(seal({"values": {}}).replace("{}", "0"))
    write(tmp_path)
    text = (tmp_path / "report.md").read_text()
    assert "3 files left out of this report" in text
    for problem in ("with revision 7 of the model", "records/moved.json holds the run"):
        assert problem in text
    assert "## Parameters" not in text
    table = Tables((tmp_path / "report.html").read_text()).sections["fixed"][0]
    assert [cell[0] for cell in table[1]] == ["1D Allen–Cahn", "–", "–"]


def test_limits_name_the_sizes(folder):
    table = Tables((folder / "report.html").read_text()).sections["limits"][0]
    assert table[1][0][0] == "1D Allen–Cahn"
    assert [cell[:2] for cell in table[1][1:5]] == [
        ("24", "paper 10,000"),
        ("64", "paper 256"),
        ("11", "paper 101"),
        ("2", "paper 500"),
    ]


def test_two_scales_have_a_section_each(tmp_path, no_pictures):
    one = lambda cell: cell.row == "allen_cahn"  # noqa: E731
    fill(tmp_path, "fixed", only=one)
    fill(tmp_path, "fixed", scale="desk", only=one)
    write(tmp_path)
    sections = Tables((tmp_path / "report.html").read_text()).sections
    assert {"smoke-fixed", "desk-fixed", "smoke-limits", "desk-limits"} <= sections.keys()


def test_folder_without_results_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no results"):
        write(tmp_path)


def test_only_failures(tmp_path):
    """Nothing to show is no reason to stop."""
    Results(tmp_path).keep_failure(STUDIES["fixed"].cells("smoke", 1)[0].experiment, "no memory")
    write(tmp_path)
    assert "no Record here that can be trusted" in (tmp_path / "report.md").read_text()


def test_the_report_knows_no_study_by_name():
    """What is said of a study is said in its own file."""
    folder = Path(build.__file__).parent
    for path in folder.glob("*.py"):
        strings = {
            node.value
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not strings & {*STUDIES.names(), *MEASUREMENTS.names()}, path.name
