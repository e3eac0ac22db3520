"""The size of an SFO: the number of modes L, the width d, and the choice of both."""

from typing import TYPE_CHECKING

from sfo.evaluation.statistics import Interval
from sfo.experiments import paper
from sfo.experiments.blocks import Block, Entry, Row, Table, pictures
from sfo.experiments.present import EMPTY_ENTRY, error_table, usual_blocks
from sfo.experiments.studies.cells import RANKS, WIDTHS, printed_in, sfo_cells
from sfo.experiments.study import Study
from sfo.experiments.study_results import StudyResults, intervals_of, percent
from sfo.registry import STUDIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rank_figure(results: StudyResults) -> "Figure | None":
    """Error against the number of modes, where there are two ranks or more."""
    from sfo.plot.colours import COLOURS, PAPER
    from sfo.plot.panels import draw_curve, legend, log_axes, panels

    curves: dict[str, dict[int, Interval]] = {row: {} for row in results.rows}
    for (row, column), interval in intervals_of(results).items():
        curves[row][int(column.removeprefix("L="))] = interval
    rows = [row for row, curve in curves.items() if len(curve) > 1]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        if row in paper.RANK:
            one.plot(*zip(*sorted(paper.RANK[row].items()), strict=True), ls="--", **PAPER)
        draw_curve(one, curves[row], "here", COLOURS[0])
        one.set(xlabel="modes L", ylabel="error, %")
        log_axes(one, "y")
    legend(figure, axes)
    return figure


def present_ranks(results: StudyResults) -> list[Block]:
    """The table and the curves."""
    caption = "Error against the number of modes L, beside the paper's where it has them."
    return [*usual_blocks(results), *pictures(("rank", rank_figure(results), caption))]


def present_choice(results: StudyResults) -> list[Block]:
    """The errors, and which settings validation chooses beside the paper's."""
    lines = []
    for row in results.rows:
        validation, test = (
            {
                column: interval.mean
                for column in results.columns
                if (f := results.cells.get((row, column)))
                and (interval := f.interval(value)) is not None
            }
            for value in (lambda record: 100 * record.validation, percent)
        )
        rank, width = paper.SELECTED[row]
        selected = f"L={rank}, d={width}"
        if not validation:
            lines.append(
                Row(results.title(row), (Entry("–", published=selected), *2 * (EMPTY_ENTRY,)))
            )
            continue
        chosen, best = min(validation, key=validation.__getitem__), min(test, key=test.__getitem__)
        cells = sum(r == row for r, _ in results.cells)
        of = "" if len(validation) == cells else f" (of {len(validation)} available)"
        entries = (
            Entry(f"{chosen}{of}", published=selected),
            Entry(f"{test[chosen]:.3g}"),
            Entry(f"{best}: {test[best]:.3g}"),
        )
        lines.append(Row(results.title(row), entries))
    columns = ("", "chosen by validation", "its test error, %", "lowest test error, %")
    return [error_table(results), Table("The choice", columns, tuple(lines))]


STUDIES.register("rank")(
    Study(
        "rank",
        "The number of modes L, %",
        "Ranks above the number of points along an axis are left out.",
        sfo_cells({f"L={rank}": dict(n_modes=rank) for rank in RANKS}),
        printed_in(paper.RANK, {f"L={rank}": rank for rank in RANKS}),
        present=present_ranks,
        least_columns=2,
    )
)
STUDIES.register("width")(
    Study(
        "width",
        "The lifting dimension d, %",
        "All other settings as in the paper.",
        sfo_cells({f"d={width}": dict(hidden_channels=width) for width in WIDTHS}),
        printed_in(paper.WIDTH, {f"d={width}": width for width in WIDTHS}),
        least_columns=2,
    )
)
STUDIES.register("tune")(
    Study(
        "tune",
        "Grid search over L and d, %",
        "The test error of each, and the choice by validation error beside the paper's choice.",
        sfo_cells(
            {
                f"L={rank}, d={width}": dict(n_modes=rank, hidden_channels=width)
                for rank in (16, 20)
                for width in WIDTHS
            }
        ),
        present=present_choice,
        least_columns=2,
    )
)
