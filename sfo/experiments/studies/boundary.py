"""The error along the boundary, and away from it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sfo.experiments import paper
from sfo.experiments.blocks import Block, Row, Table, pictures
from sfo.experiments.present import error_entry, error_notes, published
from sfo.experiments.record import Record
from sfo.experiments.studies.cells import AS_PAPER, MODEL_TITLES, sfo_cells
from sfo.experiments.study import Study
from sfo.experiments.study_results import StudyResults, percent
from sfo.registry import STUDIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


REGIONS: dict[str, Callable[[Record], float | None]] = {
    "full": percent,
    "boundary": lambda record: _percent(record.errors.get("boundary_l2")),
    "interior": lambda record: _percent(record.errors.get("interior_l2")),
}


def boundary_table(results: StudyResults) -> Table:
    """Three numbers a column: on the whole grid, along its sides, and within."""
    lines = []
    for row in results.rows:
        entries = []
        for column in results.columns:
            for region, value in REGIONS.items():
                theirs = paper.BOUNDARY[row][region] if column == "sfo" else None
                text = published(None if theirs is None else paper.Published(theirs))
                entries.append(error_entry(results.cells[row, column], results.seeds, text, value))
        lines.append(Row(results.title(row), tuple(entries)))
    columns = (
        "",
        *(f"{results.title(c)}, {region}" for c in results.columns for region in REGIONS),
    )
    return Table(results.study.title, columns, tuple(lines), error_notes(results))


def boundary_figure(results: StudyResults) -> "Figure | None":
    """The error on the whole grid, along its sides and within."""
    from sfo.plot.colours import COLOURS, PAPER
    from sfo.plot.panels import legend, log_axes, panels

    rows = [
        row
        for row in results.rows
        if any(f.records for (r, _), f in results.cells.items() if r == row)
    ]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        one.plot(
            list(paper.BOUNDARY[row]), list(paper.BOUNDARY[row].values()), "d", mfc="none", **PAPER
        )
        for k, column in enumerate(results.columns):
            intervals = [results.cells[row, column].interval(value) for value in REGIONS.values()]
            known = [(interval, j) for j, interval in enumerate(intervals) if interval]
            if known:
                x = [j + 0.15 * (k - 0.5) for _, j in known]
                heights = [interval.half_width or 0 for interval, _ in known]
                means = [interval.mean for interval, _ in known]
                style = dict(fmt="o", ms=5, color=COLOURS[k], capsize=2)
                one.errorbar(x, means, heights, label=results.plain_title(column), **style)  # type: ignore[arg-type]
        one.set_ylabel("error, %")
        log_axes(one, "y")
        one.margins(y=0.12)
    legend(figure, axes)
    return figure


def present_boundary(results: StudyResults) -> list[Block]:
    """The table and the picture."""
    caption = "Error on the whole grid, in the band along its sides, and within."
    return [boundary_table(results), *pictures(("boundary", boundary_figure(results), caption))]


STUDIES.register("boundary")(
    Study(
        "boundary",
        "Boundary and interior, %",
        "The error in a band of a tenth of the points along every side, and in the rest.",
        sfo_cells({"sfo": AS_PAPER, "reflect": dict(support="two_sided", boundary="reflect")}),
        titles={**MODEL_TITLES, "reflect": "reflected"},
        present=present_boundary,
    )
)
