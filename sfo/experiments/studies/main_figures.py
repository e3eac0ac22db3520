"""The main table as pictures; each is None where there is nothing to draw."""

from matplotlib.figure import Figure

from sfo.experiments import paper
from sfo.experiments.study_results import StudyResults, filled_rows, intervals_of
from sfo.plot.colours import COLOURS, PAPER
from sfo.plot.panels import (
    MARKERS,
    draw_error_bars,
    legend,
    log_axes,
    log_limits,
    panels,
)


def main_figure(results: StudyResults) -> Figure | None:
    """The main table: our means with their intervals, and the paper's."""
    columns = results.columns[::-1]
    intervals = intervals_of(results)
    rows = filled_rows(results, intervals)
    if not rows:
        return None
    figure, axes = panels(rows, height=3.0)
    for k, (row, one) in enumerate(axes.items()):
        theirs = {c: p.mean for c, p in paper.MAIN[row].items() if c in columns}
        one.plot(
            list(theirs.values()), [columns.index(c) for c in theirs], "d", mfc="none", **PAPER
        )
        ours = [(intervals[row, c], j) for j, c in enumerate(columns) if (row, c) in intervals]
        draw_error_bars(one, ours)
        log_limits(one, [interval for interval, _ in ours], list(theirs.values()))
        one.set_yticks(
            range(len(columns)), [results.plain_title(c) for c in columns] if k % 3 == 0 else []
        )
        one.set_ylim(-0.6, len(columns) - 0.4)
        one.set_xlabel("error, %")
    legend(figure, axes)
    return figure


def parameter_figure(results: StudyResults) -> Figure | None:
    """The main table's errors against the number of parameters."""
    intervals = intervals_of(results)
    rows = filled_rows(results, intervals)
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        for k, column in enumerate(results.columns):
            if (row, column) not in intervals:
                continue
            size = results.cells[row, column].records[0].parameters
            style = dict(
                marker=MARKERS[k % len(MARKERS)], color=COLOURS[k % len(COLOURS)], ls="none"
            )
            mean = intervals[row, column].mean
            one.plot([size], [mean], label=results.plain_title(column), **style)  # type: ignore[arg-type]
        one.set(xlabel="parameters", ylabel="error, %")
        log_axes(one, "xy")
    legend(figure, axes)
    return figure
