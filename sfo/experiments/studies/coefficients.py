"""Learned coefficients: how the norms of an SFO's matrices decay with the mode."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from sfo.experiments import paper
from sfo.experiments.blocks import Block, Entry, Row, Table, pictures
from sfo.experiments.studies.cells import AS_PAPER, MODEL_TITLES, sfo_cells
from sfo.experiments.study import Study
from sfo.experiments.study_results import CellResults, StudyResults
from sfo.registry import STUDIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def coefficient_curve(cell: CellResults) -> list[float]:
    """‖Θₗ‖_F by mode: the mean over layers and seeds; empty where none was measured."""
    layers = [layer for analysis in cell.analyses for layer in analysis.values["norms"]]
    return [fmean(norms) for norms in zip(*layers, strict=True)]


def halves(curve: Sequence[float]) -> float:
    """Mean of the lower half of the modes by that of the upper half: above 1 where it decays."""
    middle = len(curve) // 2
    return fmean(curve[:middle]) / fmean(curve[-middle:])


def coefficient_table(results: StudyResults) -> Table:
    """How the norms decay with the mode."""
    lines, ours, theirs = [], [], []
    for row in results.rows:
        curve = coefficient_curve(results.cells[row, "sfo"])
        published_curve = [norm for _, norm in paper.COEFFICIENTS[row]]
        theirs.append(halves(published_curve))
        texts = _decay(published_curve)
        if len(curve) < 2:
            entries = tuple(Entry("–", published=text) for text in texts)
        else:
            ours.append(halves(curve))
            both = zip(_decay(curve), texts, strict=True)
            entries = tuple(Entry(text, published=other) for text, other in both)
        lines.append(Row(results.title(row), entries))
    note = (
        "The lower half of the modes outweighs the upper half on "
        f"{sum(h > 1 for h in ours)} of {len(ours)} available benchmarks; in the paper's curves on "
        f"{sum(h > 1 for h in theirs)} of {len(theirs)}."
    )
    columns = ("", "first mode", "last mode", "largest at", "lower half / upper half")
    return Table(results.study.title, columns, tuple(lines), (note,))


def _decay(curve: Sequence[float]) -> list[str]:
    largest = max(range(len(curve)), key=curve.__getitem__) + 1
    return [
        f"{curve[0]:.3g}",
        f"{curve[-1]:.3g}",
        f"l = {largest} of {len(curve)}",
        f"{halves(curve):.2f}",
    ]


def coefficient_figure(results: StudyResults) -> "Figure | None":
    """The norm of each mode's matrix, the mean over layers."""
    from sfo.plot.colours import COLOURS, PAPER
    from sfo.plot.panels import legend, panels

    curves = {row: coefficient_curve(results.cells[row, "sfo"]) for row in results.rows}
    rows = [row for row, curve in curves.items() if curve]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        one.plot(*zip(*paper.COEFFICIENTS[row], strict=True), ls="--", **PAPER)
        index = range(1, len(curves[row]) + 1)
        one.plot(index, curves[row], "o-", ms=3, color=COLOURS[0], label="here")
        one.set(xlabel="mode l", ylabel="‖Θₗ‖", ylim=(0, None))
    legend(figure, axes)
    return figure


def present_coefficients(results: StudyResults) -> list[Block]:
    """The table and the curves."""
    caption = "Norm of each mode's matrix, mean over the layers, beside the paper's curve."
    drawn = pictures(("coefficients", coefficient_figure(results), caption))
    return [coefficient_table(results), *drawn]


STUDIES.register("coefficients")(
    Study(
        "coefficients",
        "Learned coefficients: the norm of each mode's matrix",
        "‖Θₗ‖_F of each mode, the mean over the layers.",
        sfo_cells({"sfo": AS_PAPER}),
        analyses=("coefficients",),
        titles=MODEL_TITLES,
        present=present_coefficients,
    )
)
