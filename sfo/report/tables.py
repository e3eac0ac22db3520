"""From what was found for a study to its tables."""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from statistics import fmean
from typing import Any

from sfo.evaluation.statistics import Interval, mean_interval
from sfo.experiments import paper
from sfo.experiments.record import Record
from sfo.experiments.results import Results, name
from sfo.experiments.study import PROTOCOLS
from sfo.registry import BENCHMARKS
from sfo.report.blocks import Entry, Row, Table, ranked
from sfo.report.found import CellResults, StudyResults, first_line, percent, trusted

TITLES = {
    "sfo": "SFO",
    "sfo_recommended": "SFO recom\u00admended",
    "svd_no": "SVD-NO",
    "fno": "FNO",
    "mno": "MNO",
    "uno": "UNO",
    "pino": "PINO",
    "mpnn": "MPNN",
    "transolver": "Transolver",
    "deeponet": "DeepONet",
    "neuralop_fno": "neural\u00adoperator FNO",
    "usb": "USB",
    "usb_dense": "USB, dense eigensolver",
    "fourier": "Fourier",
    "chebyshev": "Chebyshev",
    "mlp": "MLP",
    "glu": "GLU",
    "tied": "tied index",
    "multi": "multi-index",
    "paper": "as in the paper",
    "two_sided": "two-sided",
    "zero": "zero beyond the edge",
    "reflect": "reflected",
    "skip": "pointwise path",
    "no_lift_norm": "lift not normalised",
    "no_norm": "no normalisation",
    "mixed": "components mixed",
}
"""Of columns, where the name is not title enough. A soft hyphen is where a narrow one may break."""

NOTHING = Entry("–")
UNCOMPARED = ("subsample",)
"""Studies whose columns are not alternatives, so that none of them is the best."""


def title(column: str) -> str:
    """Of a column."""
    return TITLES.get(column, column)


def plain_title(column: str) -> str:
    """The same, where no line is broken."""
    return title(column).replace("\u00ad", "")


def study_tables(found: StudyResults, results: Results) -> list[Table]:
    """All tables of a study."""
    own = SPECIAL.get(found.study.name)
    tables = own(found) if own else [error_table(found)]
    if any(f.cell.tuned for f in found.cells.values()):
        tables.append(protocol_table(found, results))
    return tables


def error_table(found: StudyResults) -> Table:
    """Errors in per cent: a row a benchmark, a column for what is varied."""
    lines = []
    for row in found.rows:
        entries = [
            error_entry(f, found.seeds, published(found.study.published(row, column)))
            if (f := found.cells.get((row, column)))
            else Entry("")
            for column in found.columns
        ]
        marked = entries if found.study.name in UNCOMPARED else ranked(entries)
        lines.append(Row(BENCHMARKS[row].title, tuple(marked)))
    columns = ("", *map(title, found.columns))
    return Table(found.study.title, columns, tuple(lines), error_notes(found))


def error_entry(
    found: CellResults,
    seeds: int,
    published: str = "",
    value: Callable[[Record], float | None] = percent,
) -> Entry:
    """The mean over the seeds, or why there is none."""
    interval = found.interval(value)
    if interval is None:
        return Entry("failed" if found.failures else "–", published=published, runs=found.names)
    return Entry(number(interval, seeds), interval.mean, published, runs=found.names)


def number(interval: Interval, seeds: int) -> str:
    """As printed, with the number of seeds where it is not the table's."""
    if interval.n == seeds:
        return str(interval)
    return f"{interval} ({interval.n} {'seed' if interval.n == 1 else 'seeds'})"


def published(value: paper.Published | None) -> str:
    """The paper's number as text."""
    if value is None:
        return ""
    width = "" if value.half_width is None else f" ± {value.half_width:.4g}"
    return f"{value.mean:.4g}{width}"


def error_notes(found: StudyResults) -> tuple[str, ...]:
    """What a reader must know of the numbers, and why some are not there."""
    notes = [
        "One seed a cell: nothing is said about the spread."
        if found.seeds == 1
        else f"Mean over {found.seeds} seeds ± half of the 95 % interval by Student's t; where "
        "there are fewer seeds the cell says so."
    ]
    missing = [f for f in found.cells.values() if not f.records and not f.failures]
    if missing:
        notes.append(f"–: not at hand, {len(missing)} of {len(found.cells)} cells.")
    return (*notes, *failure_notes(found))


def failure_notes(found: StudyResults) -> list[str]:
    """Which runs failed, and why."""
    return [
        f"{BENCHMARKS[row].title}, {plain_title(column)}: {why}"
        for (row, column), f in found.cells.items()
        for why in f.failures
    ]


def protocol_table(found: StudyResults, results: Results) -> Table:
    """What the trials have chosen for each cell."""
    notes = [
        "Chosen among " + "; ".join(map(protocol, PROTOCOLS)) + ": the lowest validation error."
    ]
    lines = []
    for row in found.rows:
        entries = []
        for column in found.columns:
            f = found.cells.get((row, column))
            if f is None:
                entries.append(Entry(""))
                continue
            trials = f.cell.trials()
            names = tuple(name(trial) for trial in trials)
            text = protocol(f.choice) if f.choice else "–"
            entries.append(Entry(text, runs=names))
            for trial, choice in zip(trials, PROTOCOLS, strict=bool(trials)):
                if why := trusted(results.failure, trial):
                    where = f"{BENCHMARKS[row].title}, {plain_title(column)}"
                    notes.append(
                        f"{where}: the trial with {protocol(choice)} failed: {first_line(why)}"
                    )
        lines.append(Row(BENCHMARKS[row].title, tuple(entries)))
    columns = ("", *map(title, found.columns))
    return Table("Schedule and learning rate", columns, tuple(lines), tuple(notes), kind="words")


def protocol(choice: Mapping[str, Any]) -> str:
    """A protocol in few words."""
    return f"{choice['schedule'].replace('_', ' ')} {choice['learning_rate']:g}"


def tune_tables(found: StudyResults) -> list[Table]:
    """The errors, and which settings validation chooses beside the paper's."""
    lines = []
    for row in found.rows:
        validation, test = (
            {
                column: interval.mean
                for column in found.columns
                if (f := found.cells.get((row, column)))
                and (interval := f.interval(value)) is not None
            }
            for value in (lambda record: 100 * record.validation, percent)
        )
        rank, width = paper.SELECTED[row]
        selected = f"L={rank}, d={width}"
        if not validation:
            lines.append(
                Row(BENCHMARKS[row].title, (Entry("–", published=selected), *2 * (NOTHING,)))
            )
            continue
        chosen, best = min(validation, key=validation.__getitem__), min(test, key=test.__getitem__)
        cells = sum(r == row for r, _ in found.cells)
        of = "" if len(validation) == cells else f" (of {len(validation)} at hand)"
        entries = (
            Entry(f"{chosen}{of}", published=selected),
            Entry(f"{test[chosen]:.3g}"),
            Entry(f"{best}: {test[best]:.3g}"),
        )
        lines.append(Row(BENCHMARKS[row].title, entries))
    columns = ("", "chosen by validation", "its test error, %", "lowest test error, %")
    return [error_table(found), Table("The choice", columns, tuple(lines))]


REGIONS: dict[str, Callable[[Record], float | None]] = {
    "full": percent,
    "boundary": lambda record: _hundred(record.errors.get("boundary_l2")),
    "interior": lambda record: _hundred(record.errors.get("interior_l2")),
}


def boundary_tables(found: StudyResults) -> list[Table]:
    """Three numbers a column: on the whole grid, along its sides, and within."""
    lines = []
    for row in found.rows:
        entries = []
        for column in found.columns:
            for region, value in REGIONS.items():
                theirs = paper.BOUNDARY[row][region] if column == "sfo" else None
                text = published(None if theirs is None else paper.Published(theirs))
                entries.append(error_entry(found.cells[row, column], found.seeds, text, value))
        lines.append(Row(BENCHMARKS[row].title, tuple(entries)))
    columns = ("", *(f"{title(c)}, {region}" for c in found.columns for region in REGIONS))
    return [Table(found.study.title, columns, tuple(lines), error_notes(found))]


def coefficient_curve(found: CellResults) -> list[float]:
    """‖Θₗ‖_F by mode: the mean over layers and seeds; empty where none was measured."""
    layers = [layer for analysis in found.analyses for layer in analysis.values["norms"]]
    return [fmean(norms) for norms in zip(*layers, strict=True)]


def halves(curve: Sequence[float]) -> float:
    """Mean of the lower half of the modes by that of the upper half: above 1 where it decays."""
    middle = len(curve) // 2
    return fmean(curve[:middle]) / fmean(curve[-middle:])


def coefficient_tables(found: StudyResults) -> list[Table]:
    """How the norms decay with the mode."""
    lines, ours, theirs = [], [], []
    for row in found.rows:
        curve = coefficient_curve(found.cells[row, "sfo"])
        published_curve = [norm for _, norm in paper.COEFFICIENTS[row]]
        theirs.append(halves(published_curve))
        texts = _decay(published_curve)
        if len(curve) < 2:
            entries = tuple(Entry("–", published=text) for text in texts)
        else:
            ours.append(halves(curve))
            both = zip(_decay(curve), texts, strict=True)
            entries = tuple(Entry(text, published=other) for text, other in both)
        lines.append(Row(BENCHMARKS[row].title, entries))
    note = (
        "The lower half of the modes outweighs the upper half on "
        f"{sum(h > 1 for h in ours)} of {len(ours)} benchmarks at hand; in the paper's curves on "
        f"{sum(h > 1 for h in theirs)} of {len(theirs)}."
    )
    columns = ("", "first mode", "last mode", "largest at", "lower half / upper half")
    return [Table(found.study.title, columns, tuple(lines), (note,))]


def _decay(curve: Sequence[float]) -> list[str]:
    largest = max(range(len(curve)), key=curve.__getitem__) + 1
    return [
        f"{curve[0]:.3g}",
        f"{curve[-1]:.3g}",
        f"l = {largest} of {len(curve)}",
        f"{halves(curve):.2f}",
    ]


WAYS = {
    ("sfo", "rebuild"): "SFO, modes rebuilt",
    ("sfo", "restrict"): "SFO, modes restricted",
    ("fno", "evaluate"): "FNO",
    ("sfo_recommended", "restrict"): "SFO recommended",
    ("neuralop_fno", "evaluate"): "neuraloperator FNO",
}


def transfer_curve(found: CellResults, way: str) -> dict[int, Interval]:
    """Errors on other grids in per cent, by the number of points along the first axis."""
    tables = [analysis.values["percent"].get(way, {}) for analysis in found.analyses]
    sizes = sorted({int(size) for table in tables for size in table})
    curve = {}
    for size in sizes:
        values = [v for table in tables if (v := table.get(str(size))) is not None and isfinite(v)]
        if values:
            curve[size] = mean_interval(values)
    return curve


def trained_points(found: StudyResults, row: str) -> int | None:
    """Points along the first axis of the grid that the models of a row were trained on."""
    kept = [
        f.values["trained"]
        for (r, _), cell in found.cells.items()
        if r == row
        for f in cell.analyses
    ]
    return kept[0] if kept else None


def transfer_tables(found: StudyResults) -> list[Table]:
    """For each benchmark a line for each way, by the size of the grid against the trained one."""
    curves: dict[tuple[str, str, str], dict[float, Interval]] = {}
    trained: dict[str, int] = {}
    for row in found.rows:
        n = trained_points(found, row)
        if n is None:
            continue
        trained[row] = n
        for column, way in WAYS:
            by_size = transfer_curve(found.cells[row, column], way)
            curves[row, column, way] = {size / n: error for size, error in by_size.items()}
    ratios = sorted({ratio for curve in curves.values() for ratio in curve})
    lines = []
    for row, n in trained.items():
        grid = []
        for column, way in WAYS:
            curve, runs = curves[row, column, way], found.cells[row, column].names
            grid.append(
                [
                    Entry(number(curve[r], found.seeds), curve[r].mean, runs=runs)
                    if r in curve
                    else NOTHING
                    for r in ratios
                ]
            )
        # Ways are compared on the same grid: down the columns.
        marked = zip(*[ranked(column) for column in zip(*grid, strict=True)], strict=True)
        for label, entries in zip(WAYS.values(), marked, strict=True):
            lines.append(Row(f"{BENCHMARKS[row].title}, {n} points: {label}", tuple(entries)))
    columns = ("", *(_ratio(ratio) for ratio in ratios))
    note = (
        "Marked: the best and the second best on the same grid. –: more modes "
        "than points, or not at hand. The paper prints no numbers of this experiment."
    )
    return [Table(found.study.title, columns, tuple(lines), (note, *error_notes(found)))]


def _ratio(ratio: float) -> str:
    if ratio == 1:
        return "as trained"
    return f"{ratio:g} × the points" if ratio > 1 else f"1/{1 / ratio:g} of the points"


SPECIAL: dict[str, Callable[[StudyResults], list[Table]]] = {
    "tune": tune_tables,
    "boundary": boundary_tables,
    "coefficients": coefficient_tables,
    "zero-shot": transfer_tables,
}


def _hundred(value: float | None) -> float | None:
    return None if value is None else 100 * value
