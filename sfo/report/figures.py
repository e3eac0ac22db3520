"""Figures from what was found; each is None where there is nothing to draw."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sfo.evaluation.statistics import Interval
from sfo.experiments import paper
from sfo.registry import BENCHMARKS
from sfo.report.found import StudyResults
from sfo.report.tables import (
    REGIONS,
    WAYS,
    coefficient_curve,
    plain_title,
    trained_points,
    transfer_curve,
)

COLOURS = (*(f"C{k}" for k in range(10)), "black")
PAPER: dict[str, Any] = dict(color="0.55", label="paper")
"""The paper's numbers, in every figure."""
MARKERS = "osD^vP*Xph<"


def panels(rows: Sequence[str], height: float = 2.6) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each benchmark, three in a line."""
    across = min(3, len(rows))
    down = -(-len(rows) // across)
    figure = Figure(figsize=(1.2 + 3.1 * across, height * down + 0.5), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(rows) :]:
        axes.set_axis_off()
    for row, axes in zip(rows, grid.flat, strict=False):
        axes.set_title(BENCHMARKS[row].title, fontsize="medium")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    return figure, dict(zip(rows, grid.flat, strict=False))


def legend(figure: Figure, axes: Mapping[str, Axes]) -> None:
    """One for all panels, each label once."""
    handles: dict[str, Artist] = {}
    for one in axes.values():
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=2 * min(3, len(axes)),
        frameon=False,
        fontsize="small",
    )


def main_figure(found: StudyResults) -> Figure | None:
    """The main table: our means with their intervals, and the paper's."""
    columns = found.columns[::-1]
    intervals = _intervals(found)
    rows = _rows(found, intervals)
    if not rows:
        return None
    figure, axes = panels(rows, height=3.0)
    for k, (row, one) in enumerate(axes.items()):
        theirs = {c: p.mean for c, p in paper.MAIN[row].items() if c in columns}
        one.plot(
            list(theirs.values()), [columns.index(c) for c in theirs], "d", mfc="none", **PAPER
        )
        ours = [(intervals[row, c], j) for j, c in enumerate(columns) if (row, c) in intervals]
        _error_bars(one, ours)
        _log_limits(one, [interval for interval, _ in ours], list(theirs.values()))
        one.set_yticks(range(len(columns)), [plain_title(c) for c in columns] if k % 3 == 0 else [])
        one.set_ylim(-0.6, len(columns) - 0.4)
        one.set_xlabel("error, %")
    legend(figure, axes)
    return figure


def cost_figure(found: StudyResults) -> Figure | None:
    """The main table's errors against the number of parameters."""
    intervals = _intervals(found)
    rows = _rows(found, intervals)
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        for k, column in enumerate(found.columns):
            if (row, column) not in intervals:
                continue
            size = found.cells[row, column].records[0].parameters
            style = dict(
                marker=MARKERS[k % len(MARKERS)], color=COLOURS[k % len(COLOURS)], ls="none"
            )
            mean = intervals[row, column].mean
            one.plot([size], [mean], label=plain_title(column), **style)  # type: ignore[arg-type]
        one.set(xlabel="parameters", ylabel="error, %")
        _log(one, "xy")
    legend(figure, axes)
    return figure


def rank_figure(found: StudyResults) -> Figure | None:
    """Error against the number of modes, where there are two ranks or more."""
    curves: dict[str, dict[int, Interval]] = {row: {} for row in found.rows}
    for (row, column), interval in _intervals(found).items():
        curves[row][int(column.removeprefix("L="))] = interval
    rows = [row for row, curve in curves.items() if len(curve) > 1]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        if row in paper.RANK:
            one.plot(*zip(*sorted(paper.RANK[row].items()), strict=True), ls="--", **PAPER)
        _curve(one, curves[row], "here", "C0")
        one.set(xlabel="modes L", ylabel="error, %")
        _log(one, "y")
    legend(figure, axes)
    return figure


def coefficient_figure(found: StudyResults) -> Figure | None:
    """The norm of each mode's matrix, the mean over layers."""
    curves = {row: coefficient_curve(found.cells[row, "sfo"]) for row in found.rows}
    rows = [row for row, curve in curves.items() if curve]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        one.plot(*zip(*paper.COEFFICIENTS[row], strict=True), ls="--", **PAPER)
        one.plot(range(1, len(curves[row]) + 1), curves[row], "o-", ms=3, color="C0", label="here")
        one.set(xlabel="mode l", ylabel="‖Θₗ‖", ylim=(0, None))
    legend(figure, axes)
    return figure


def transfer_figure(found: StudyResults) -> Figure | None:
    """Zero-shot: error against the points of a grid that the model was not trained on."""
    trained = {row: trained_points(found, row) for row in found.rows}
    rows = [row for row, n in trained.items() if n is not None]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        one.axvline(trained[row] or 0, color="0.8", lw=3, label="trained")
        for k, ((column, way), label) in enumerate(WAYS.items()):
            curve = transfer_curve(found.cells[row, column], way)
            if curve:
                _curve(one, curve, label, f"C{k}")
        one.set(xlabel="points along an axis", ylabel="error, %")
        _log(one, "y")
        one.set_xscale("log", base=2)
        one.xaxis.set_major_formatter("{x:.0f}")
    legend(figure, axes)
    return figure


def boundary_figure(found: StudyResults) -> Figure | None:
    """The error on the whole grid, along its sides and within."""
    rows = [
        row for row in found.rows if any(f.records for (r, _), f in found.cells.items() if r == row)
    ]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        one.plot(
            list(paper.BOUNDARY[row]), list(paper.BOUNDARY[row].values()), "d", mfc="none", **PAPER
        )
        for k, column in enumerate(found.columns):
            intervals = [found.cells[row, column].interval(value) for value in REGIONS.values()]
            known = [(interval, j) for j, interval in enumerate(intervals) if interval]
            if known:
                x = [j + 0.15 * (k - 0.5) for _, j in known]
                heights = [interval.half_width or 0 for interval, _ in known]
                means = [interval.mean for interval, _ in known]
                style = dict(fmt="o", ms=5, color=f"C{k}", capsize=2)
                one.errorbar(x, means, heights, label=plain_title(column), **style)  # type: ignore[arg-type]
        one.set_ylabel("error, %")
        _log(one, "y")
        one.margins(y=0.12)
    legend(figure, axes)
    return figure


def _rows(found: StudyResults, intervals: Mapping[tuple[str, str], Interval]) -> list[str]:
    """Those with an interval in any column."""
    filled = {row for row, _ in intervals}
    return [row for row in found.rows if row in filled]


def _intervals(found: StudyResults) -> dict[tuple[str, str], Interval]:
    """Of the cells that have a number."""
    known = ((place, f.interval()) for place, f in found.cells.items())
    return {place: interval for place, interval in known if interval is not None}


def _curve(axes: Axes, points: Mapping[int, Interval], label: str, colour: str) -> None:
    """Means, with intervals where there are some."""
    xs = sorted(points)
    means = [points[x].mean for x in xs]
    widths = [points[x].half_width or 0 for x in xs]
    axes.errorbar(xs, means, widths, fmt="o-", ms=4, capsize=2, color=colour, label=label)


def _error_bars(axes: Axes, points: Sequence[tuple[Interval, int]]) -> None:
    """Means at their heights, with intervals where there are some."""
    means = [interval.mean for interval, _ in points]
    widths = [interval.half_width or 0 for interval, _ in points]
    heights = [y for _, y in points]
    axes.errorbar(means, heights, xerr=widths, fmt="o", ms=5, capsize=2, color="C0", label="here")


def _log(axes: Axes, which: str) -> None:
    """Logarithmic, with ticks that do not run into one another; call it when all is drawn."""
    for letter in which:
        axis = axes.xaxis if letter == "x" else axes.yaxis
        axes.set(**{f"{letter}scale": "log"})
        low, high = axis.get_view_interval()
        subs = (1, 2, 5) if high < 30 * low else (1, 3) if high < 300 * low else (1,)
        # Between 60 and 105 there is one power of ten, and none of its double or fivefold.
        narrow = high < 4 * low
        axis.set_major_locator(
            MaxNLocator(5, steps=[1, 2, 5, 10]) if narrow else LogLocator(subs=subs)
        )
        axis.set_major_formatter(FuncFormatter(_short))
        axis.set_minor_formatter(NullFormatter())


def _short(value: float, position: int) -> str:
    """200k, 5M, 0.02."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _log_limits(axes: Axes, intervals: Sequence[Interval], others: Sequence[float]) -> None:
    """Around all means, and around the intervals as far as a third and three times of the means.

    An interval of few seeds may be wide, or reach zero, which has no logarithm.
    """
    means = [m for m in (*(i.mean for i in intervals), *others) if m > 0]
    if means:
        low, high = min(means), max(means)
        ends = [i.mean + sign * (i.half_width or 0) for i in intervals for sign in (-1, 1)]
        axes.set_xlim(
            max(low / 3, min([low / 1.6, *(0.9 * end for end in ends)])),
            min(high * 3, max([high * 1.6, *(1.1 * end for end in ends)])),
        )
    _log(axes, "x")
