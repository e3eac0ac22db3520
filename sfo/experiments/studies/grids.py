"""Grids: trained on fewer points, and tested on grids that a model was not trained on."""

from math import isfinite
from typing import TYPE_CHECKING

from sfo.data.benchmarks import ScaleName
from sfo.evaluation.statistics import Interval, mean_interval
from sfo.experiments import paper
from sfo.experiments.blocks import Block, Entry, Row, Table, pictures, ranked
from sfo.experiments.present import EMPTY_ENTRY, error_notes, number, protocol_tables
from sfo.experiments.studies.cells import MODEL_TITLES, PAPER_BENCHMARKS, points, printed_in
from sfo.experiments.studies.main import fixed_cells, main_adam_cells, main_limits
from sfo.experiments.study import Cell, Study
from sfo.experiments.study_results import CellResults, StudyResults
from sfo.registry import BENCHMARKS, STUDIES
from sfo.training.config import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUBSAMPLES = (2, 4, 6, 8, 10)


def subsample_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """Trained and tested on every s-th point; at least four of them must be left."""
    return [
        Cell(
            benchmark,
            f"s={s}",
            Experiment.of(
                benchmark,
                scale=scale,
                data={} if s == 1 else dict(stride=s * BENCHMARKS[benchmark].scale(scale).stride),
            ),
            seeds,
        )
        for benchmark in PAPER_BENCHMARKS
        for s in (1, *SUBSAMPLES)
        if points(benchmark, scale) >= 4 * s
    ]


def zero_shot_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """SFO and FNO by the paper's protocol, and those of version 0.3 that users would pick."""
    picked = ("sfo_recommended", "neuralop_fno")
    adam = main_adam_cells(scale, seeds)
    return fixed_cells(scale, seeds) + [cell for cell in adam if cell.column in picked]


TRANSFERS = {
    ("sfo", "rebuild"): "SFO, modes rebuilt",
    ("sfo", "restrict"): "SFO, modes restricted",
    ("fno", "evaluate"): "FNO",
    ("sfo_recommended", "restrict"): "SFO recommended",
    ("neuralop_fno", "evaluate"): "neuraloperator FNO",
}


def transfer_curve(cell: CellResults, method: str) -> dict[int, Interval]:
    """Errors on other grids in percent, by the number of points along the first axis."""
    tables = [analysis.values["percent"].get(method, {}) for analysis in cell.analyses]
    sizes = sorted({int(size) for table in tables for size in table})
    curve = {}
    for size in sizes:
        values = [v for table in tables if (v := table.get(str(size))) is not None and isfinite(v)]
        if values:
            curve[size] = mean_interval(values)
    return curve


def trained_points(results: StudyResults, row: str) -> int | None:
    """Points along the first axis of the grid that the models of a row were trained on."""
    kept = [
        f.values["trained"]
        for (r, _), cell in results.cells.items()
        if r == row
        for f in cell.analyses
    ]
    return kept[0] if kept else None


def transfer_table(results: StudyResults) -> Table:
    """For each benchmark a line for each way, by the size of the grid against the trained one."""
    curves: dict[tuple[str, str, str], dict[float, Interval]] = {}
    trained: dict[str, int] = {}
    for row in results.rows:
        n = trained_points(results, row)
        if n is None:
            continue
        trained[row] = n
        for column, method in TRANSFERS:
            by_size = transfer_curve(results.cells[row, column], method)
            curves[row, column, method] = {size / n: error for size, error in by_size.items()}
    ratios = sorted({ratio for curve in curves.values() for ratio in curve})
    lines = []
    for row, n in trained.items():
        grid = []
        for column, method in TRANSFERS:
            curve, runs = curves[row, column, method], results.cells[row, column].names
            grid.append(
                [
                    Entry(number(curve[r], results.seeds), curve[r].mean, runs=runs)
                    if r in curve
                    else EMPTY_ENTRY
                    for r in ratios
                ]
            )
        # Ways are compared on the same grid: down the columns.
        marked = zip(*[ranked(column) for column in zip(*grid, strict=True)], strict=True)
        for label, entries in zip(TRANSFERS.values(), marked, strict=True):
            lines.append(Row(f"{results.title(row)}, {n} points: {label}", tuple(entries)))
    columns = ("", *(_ratio(ratio) for ratio in ratios))
    note = (
        "Marked: the best and the second best on the same grid. –: more modes "
        "than points, or not available. The paper prints no numbers of this experiment."
    )
    return Table(results.study.title, columns, tuple(lines), (note, *error_notes(results)))


def _ratio(ratio: float) -> str:
    if ratio == 1:
        return "as trained"
    return f"{ratio:g} × the points" if ratio > 1 else f"1/{1 / ratio:g} of the points"


def transfer_figure(results: StudyResults) -> "Figure | None":
    """Zero-shot: error against the points of a grid that the model was not trained on."""
    from sfo.plot.colours import COLOURS, GUIDE
    from sfo.plot.panels import draw_curve, legend, log_axes, panels

    trained = {row: trained_points(results, row) for row in results.rows}
    rows = [row for row, n in trained.items() if n is not None]
    if not rows:
        return None
    figure, axes = panels(rows)
    for row, one in axes.items():
        one.axvline(trained[row] or 0, color=GUIDE, lw=3, label="trained")
        for k, ((column, method), label) in enumerate(TRANSFERS.items()):
            curve = transfer_curve(results.cells[row, column], method)
            if curve:
                draw_curve(one, curve, label, COLOURS[k])
        one.set(xlabel="points along an axis", ylabel="error, %")
        log_axes(one, "y")
        one.set_xscale("log", base=2)
        one.xaxis.set_major_formatter("{x:.0f}")
    legend(figure, axes)
    return figure


def present_transfer(results: StudyResults) -> list[Block]:
    """The table, the chosen protocols, and the curves."""
    caption = (
        "Error on grids that the models were not trained on, against the points along an axis; the "
        "grey line is the trained grid."
    )
    drawn = pictures(("zero-shot", transfer_figure(results), caption))
    return [transfer_table(results), *protocol_tables(results), *drawn]


STUDIES.register("subsample")(
    Study(
        "subsample",
        "Trained on every s-th point, %",
        "Fewer modes where fewer points are left, as in the paper. Below four points an axis, "
        "no run.",
        subsample_cells,
        printed_in(paper.SUBSAMPLE, {f"s={s}": s for s in SUBSAMPLES}),
        compared=False,
        least_columns=2,
    )
)
STUDIES.register("zero-shot")(
    Study(
        "zero-shot",
        "Zero-shot: trained on one grid, tested on others, %",
        "The paper's SFO by its own protocol, with the modes rebuilt on the new grid, as the paper "
        "does, or those of the trained grid restricted to it, and FNO likewise; our recommended "
        "settings, which restrict, and neuraloperator's FNO as in the main table. Finer grids "
        "only where the solver has them.",
        zero_shot_cells,
        analyses=("transfer",),
        titles=MODEL_TITLES,
        present=present_transfer,
        limits=main_limits,
    )
)
