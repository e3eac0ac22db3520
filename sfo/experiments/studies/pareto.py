"""Error against training seconds: what a user with a deadline gets from each model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfo.data.benchmarks import ScaleName
from sfo.experiments.blocks import Block, Entry, Row, Table, pictures
from sfo.experiments.present import error_notes
from sfo.experiments.seconds import run_seconds
from sfo.experiments.studies.cells import PAPER_BENCHMARKS
from sfo.experiments.studies.main import main_cells, main_experiment, small_batches
from sfo.experiments.study import Cell, Study, with_changes
from sfo.experiments.study_results import StudyResults, trusted
from sfo.models.build import Preset
from sfo.registry import STUDIES
from sfo.training.config import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Family:
    """A model at several sizes.

    Args:
        title: Title of the curve.
        model: Name of the model.
        preset: Preset that the sizes change.
        sizes: What each size changes; the same key on all benchmarks.
    """

    title: str
    model: str
    preset: Preset
    sizes: Mapping[str, Settings]


NARROWER: Mapping[str, Settings] = {
    "small": dict(hidden_channels=10),
    "middle": dict(hidden_channels=32),
    "medium": {},
}
FAMILIES: dict[str, Family] = {
    "sfo_recommended": Family(
        "SFO recommended",
        "sfo",
        "recommended",
        {
            "small": dict(hidden_channels=16, rank=32),
            "medium": {},
            "large": dict(hidden_channels=64, rank=128),
        },
    ),
    "sfo": Family(
        "SFO as in the paper",
        "sfo",
        "paper",
        {"small": dict(hidden_channels=16), "middle": dict(hidden_channels=24), "medium": {}},
    ),
    "fno": Family(
        "FNO",
        "fno",
        "paper",
        NARROWER,
    ),
    "neuralop_fno": Family(
        "neuraloperator FNO",
        "neuralop_fno",
        "paper",
        NARROWER,
    ),
    "uno": Family(
        "UNO",
        "uno",
        "paper",
        {"small": dict(hidden_channels=8), "middle": dict(hidden_channels=16), "medium": {}},
    ),
}
"""Curves of the figure, and their sizes; "medium" is the main table's."""


def pareto_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """Every family at its sizes, by Muon at 1e-2 with 2/5 of the scale's batch."""
    cells = []
    for benchmark in PAPER_BENCHMARKS:
        train = small_batches(benchmark, scale)
        for column, family in FAMILIES.items():
            # UNO's large weights on several axes make Muon's step many times Adam's.
            if column == "uno" and benchmark in PAPER_BENCHMARKS[4:]:
                continue
            for size, settings in family.sizes.items():
                run = main_experiment(benchmark, family.model, scale, family.preset, settings)
                cells.append(Cell(benchmark, f"{column} {size}", with_changes(run, **train), seeds))
    return cells


@dataclass(frozen=True)
class Point:
    """One run on the plane of seconds and error.

    Args:
        family: Curve that it belongs to.
        seconds: Training seconds on one thread.
        error: Test error in percent.
    """

    family: str
    seconds: float
    error: float


def points_of(results: StudyResults) -> dict[str, list[Point]]:
    """All runs of the families per benchmark: the study's own, and the main table's with trials."""
    measured = results.measured("seconds")
    runs: dict[tuple[str, str], list[Experiment]] = {}
    for (row, column), own in results.cells.items():
        runs.setdefault((row, column.split()[0]), []).extend(own.runs)
    for cell in main_cells(results.scale, 1):
        if cell.column in FAMILIES:
            chosen = trusted(cell.runs, results.results) or []
            runs.setdefault((cell.row, cell.column), []).extend([*cell.trials(), *chosen])
    points: dict[str, list[Point]] = {}
    for (row, family), experiments in runs.items():
        for experiment in {e.key: e for e in experiments}.values():
            record = trusted(results.results.record, experiment)
            seconds = run_seconds(experiment, measured)
            if record is not None and seconds is not None:
                points.setdefault(row, []).append(Point(family, seconds, record.errors.percent))
    return points


def front(points: list[Point]) -> list[Point]:
    """Those that no other is better than in both: quicker ones first.

    Example:
        >>> runs = [Point("a", 1, 5), Point("b", 2, 6), Point("c", 3, 1)]
        >>> [point.family for point in front(runs)]
        ['a', 'c']
    """
    best: list[Point] = []
    for point in sorted(points, key=lambda p: (p.seconds, p.error)):
        if not best or point.error < best[-1].error:
            best.append(point)
    return best


def below(point: Point, curve: list[Point]) -> bool:
    """Whether a point lies below a curve of steps: less error than all that are as quick."""
    return all(other.error > point.error for other in curve if other.seconds <= point.seconds)


def front_table(results: StudyResults) -> Table:
    """Which models' runs are on the front, and whether any lies below SFO's curve."""
    lines = []
    for row, points in points_of(results).items():
        ours = front([p for p in points if p.family == "sfo_recommended"])
        if not ours:
            continue
        first = ours[0].seconds
        others = [p for p in points if not p.family.startswith("sfo")]
        better = [p for p in others if p.seconds >= first and below(p, ours)]
        quicker = [p for p in front(others) if p.seconds < first]
        entries = (
            Entry(f"{len(points)}"),
            Entry(f"{ours[-1].error:.3g} in {ours[-1].seconds:.3g} s"),
            Entry(", ".join(_named(results, p) for p in better) or "none"),
            Entry(", ".join(_named(results, p) for p in quicker) or "none"),
        )
        lines.append(Row(results.title(row), entries))
    columns = (
        "",
        "runs",
        "SFO's best, %",
        "other models' runs below SFO's curve",
        "quicker than any SFO",
    )
    return Table("The front", columns, tuple(lines), kind="words")


def _named(results: StudyResults, point: Point) -> str:
    return f"{FAMILIES[point.family].title} {point.error:.3g} in {point.seconds:.3g} s"


def pareto_figure(results: StudyResults) -> "Figure | None":
    """A panel per benchmark: every run, and each family's front as steps."""
    from sfo.plot.colours import COLOURS
    from sfo.plot.panels import MARKERS, legend, log_axes, panels

    points = {row: p for row, p in points_of(results).items() if len(p) > 1}
    if not points:
        return None
    figure, axes = panels([row for row in results.rows if row in points])
    for row, one in axes.items():
        for k, (name, family) in enumerate(FAMILIES.items()):
            own = [p for p in points[row] if p.family == name]
            if not own:
                continue
            style: dict[str, Any] = dict(color=COLOURS[k], marker=MARKERS[k], ms=4)
            edge = front(own)
            one.plot(
                [p.seconds for p in own], [p.error for p in own], ls="none", alpha=0.35, **style
            )
            one.step(
                [p.seconds for p in edge],
                [p.error for p in edge],
                where="post",
                lw=2.2 if name == "sfo_recommended" else 1.2,
                label=family.title,
                **style,
            )
        one.set(xlabel="training seconds, one thread", ylabel="error, %")
        log_axes(one, "xy")
    legend(figure, axes)
    return figure


def present_pareto(results: StudyResults) -> list[Block]:
    """The front in words, and the picture."""
    table = front_table(results)
    drawn = pictures(
        (
            "pareto",
            pareto_figure(results),
            "Test error against training seconds on one thread: every run of these models, faint, "
            "and for each the lowest error that can be had within a time, as steps.",
        )
    )
    notes = (*table.notes, *error_notes(results))
    return [Table(table.title, table.columns, table.rows, notes, "words"), *drawn]


STUDIES.register("pareto")(
    Study(
        "pareto",
        "Error against training seconds",
        "Each model at several sizes, trained by Muon at 1e-2 with 2/5 of the scale's batch, "
        "together with its runs of the main table, trials included.",
        pareto_cells,
        present=present_pareto,
        compared=False,
    )
)
