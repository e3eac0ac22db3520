"""What the figures of studies have in common: panels, legends, curves and logarithmic axes."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from sfo.plot.colours import COLOURS
from sfo.titles import drawn, title

MARKERS = "osD^vP*Xph<"


class Interval(Protocol):
    """A mean over seeds, and half the width of its confidence interval if it has one."""

    @property
    def mean(self) -> float: ...

    @property
    def half_width(self) -> float | None: ...


def panels(rows: Sequence[str], height: float = 2.6) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each benchmark, three in a line."""
    across = min(3, len(rows))
    down = -(-len(rows) // across)
    figure = Figure(figsize=(1.2 + 3.1 * across, height * down + 0.5), layout="constrained")
    grid = figure.subplots(down, across, squeeze=False)
    for axes in grid.flat[len(rows) :]:
        axes.set_axis_off()
    for row, axes in zip(rows, grid.flat, strict=False):
        axes.set_title(drawn(title(row)), fontsize="medium")
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


def draw_curve(axes: Axes, points: Mapping[int, Interval], label: str, colour: str) -> None:
    """Means, with intervals where there are some."""
    xs = sorted(points)
    means = [points[x].mean for x in xs]
    widths = [points[x].half_width or 0 for x in xs]
    axes.errorbar(xs, means, widths, fmt="o-", ms=4, capsize=2, color=colour, label=label)


def draw_error_bars(axes: Axes, points: Sequence[tuple[Interval, int]]) -> None:
    """Means at their heights, with intervals where there are some."""
    means = [interval.mean for interval, _ in points]
    widths = [interval.half_width or 0 for interval, _ in points]
    heights = [y for _, y in points]
    style = dict(fmt="o", ms=5, capsize=2, color=COLOURS[0], label="here")
    axes.errorbar(means, heights, xerr=widths, **style)  # type: ignore[arg-type]


def log_axes(axes: Axes, which: str) -> None:
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


def log_limits(axes: Axes, intervals: Sequence[Interval], others: Sequence[float]) -> None:
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
    log_axes(axes, "x")
