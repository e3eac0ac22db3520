"""The report runs, and its tables hold what the functions measure."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from sfo.report.theory import ROOTS, TABLE_STARTS, run
from sfo.theory import modes_needed, powers


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    out = tmp_path_factory.mktemp("theory")
    console = Console(file=io.StringIO(), width=200)
    return out, run(out, quick=True, console=console), console.file.getvalue()


def test_every_figure_is_written_and_small(quick):
    out, _, _ = quick
    names = {path.name for path in out.glob("*.png")}
    assert names == {
        "kernel_decay.png",
        "coefficient_decay.png",
        "error.png",
        "bases.png",
        "modes.png",
        "linearised.png",
    }
    for name in names:
        assert 5_000 < (out / name).stat().st_size < 150_000


def test_the_tables_hold_the_measured_numbers(quick):
    out, text, printed = quick
    assert (out / "tables.md").read_text(encoding="utf-8") == text
    g = powers(0.9, 256)
    norm = g.norm().item()
    row = next(line for line in text.splitlines() if line.startswith("| 256 | 0.9 |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    expected = [modes_needed(g, 10.0**-k * norm) for k in (2, 4, 6, 8, 10, 12)]
    assert [int(cell) for cell in cells[4:10]] == expected
    assert float(cells[2]) > float(cells[3])
    assert all(f"| {rho:g} |" in text for rho in ROOTS)
    assert "certified" in printed


def test_the_tables_are_rectangular(quick):
    _, text, _ = quick
    for table in text.split("\n\n"):
        if table.startswith("|"):
            assert len({line.count("|") for line in table.splitlines()}) == 1


def test_a_folder_of_tables_is_written_again(quick):
    """It is known by how tables.md begins; docs/theory has been written so."""
    _, text, _ = quick
    committed = Path(__file__).parents[2] / "docs" / "theory" / "tables.md"
    headings = [line for line in text.splitlines() if line.startswith("#")]
    there = [line for line in committed.read_text(encoding="utf-8").splitlines() if line[:1] == "#"]
    assert headings[:2] == there[:2]
    assert text.startswith(TABLE_STARTS)
