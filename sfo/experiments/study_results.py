"""What a folder of results holds for the cells of a study. What is missing raises nothing."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from sfo.data.benchmarks import ScaleName
from sfo.evaluation.statistics import Interval, mean_interval
from sfo.experiments.record import Analysis, Record, RecordError, unseal
from sfo.experiments.results import Results, name
from sfo.experiments.study import Cell, Protocol, Study
from sfo.titles import title, unbroken
from sfo.training.config import Experiment

T = TypeVar("T")
SCALES: tuple[ScaleName, ...] = ("smoke", "desk", "paper")


def percent(record: Record) -> float:
    """The paper's metric."""
    return record.errors.percent


@dataclass(frozen=True)
class CellResults:
    """What there is for one cell.

    Args:
        cell: The cell of a study.
        runs: One run per seed; none before the protocol is chosen.
        records: Records of those runs that have one that can be trusted.
        failures: Why others have none, one sentence each.
        choice: The protocol that the trials have chosen.
        analyses: What else was measured on the trained models.
    """

    cell: Cell
    runs: tuple[Experiment, ...]
    records: tuple[Record, ...]
    failures: tuple[str, ...]
    choice: Protocol | None
    analyses: tuple[Analysis, ...] = ()

    def interval(self, value: Callable[[Record], float | None] = percent) -> Interval | None:
        """Mean over the seeds of a number of the Records; what is not finite is left out."""
        values = [v for r in self.records if (v := value(r)) is not None and isfinite(v)]
        return mean_interval(values) if values else None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the runs behind the number."""
        return tuple(name(record.experiment) for record in self.records)


@dataclass(frozen=True)
class StudyResults:
    """What there is for a study at a scale.

    Args:
        study: The study.
        scale: ScaleName of its runs.
        seeds: The largest number of seeds that a cell has.
        cells: What there is for each cell, by row and column.
        results: The folder that all of it comes from.
    """

    study: Study
    scale: ScaleName
    seeds: int
    cells: dict[tuple[str, str], CellResults]
    results: Results

    @property
    def rows(self) -> list[str]:
        """The rows, in the order of their first cell."""
        return list(dict.fromkeys(row for row, _ in self.cells))

    @property
    def columns(self) -> list[str]:
        """The columns, in the order of their first cell."""
        return list(dict.fromkeys(column for _, column in self.cells))

    @property
    def command(self) -> str:
        """What makes it."""
        return f"sfo reproduce {self.study.name} --scale {self.scale} --seeds {self.seeds}"

    def available(self) -> bool:
        """Whether there is enough of it for a table: something to compare, where it compares.

        The paper's SFO is part of most studies, so its Records alone do not make one.
        """
        if self.study.analyses:
            return any(found.analyses for found in self.cells.values())
        present = [row for (row, _), found in self.cells.items() if found.records or found.failures]
        return any(present.count(row) >= self.study.least_columns for row in set(present))

    def title(self, name: str) -> str:
        """The title of a row or a column: the study's, the registered one, or the name."""
        return self.study.titles.get(name) or title(name)

    def plain_title(self, name: str) -> str:
        """The same, where no line is broken."""
        return unbroken(self.title(name))

    def measured(self, name: str) -> dict[str, Any] | None:
        """A table of the results that was measured in one go, as params or runtime."""
        return table(self.results, name)

    def epoch_seconds(self, row: str, column: str) -> float | None:
        """Seconds of a training epoch by the table runtime, if that has the row and the column."""
        values = self.measured("runtime")
        return None if values is None else values["seconds"].get(row, {}).get(column)


def cell_results(cell: Cell, results: Results, kinds: Sequence[str] = ()) -> CellResults:
    """What the results have for a cell; `kinds` are those of the study's analyses."""
    choice = trusted(cell.choice, results) if cell.tuned else None
    records, failures = [], []
    runs = trusted(cell.runs, results) or []
    for run in runs:
        record = trusted(results.record, run)
        if record is not None:
            records.append(record)
            if not isfinite(record.errors.percent):
                failures.append(f"seed {run.seed} diverged: its test error is not finite.")
        elif why := trusted(results.failure, run):
            failures.append(f"seed {run.seed} failed: {first_line(why)}")
    kept = (trusted(results.analysis, kind, run) for run in runs for kind in kinds)
    analyses = tuple(analysis for analysis in kept if analysis is not None)
    return CellResults(cell, tuple(runs), tuple(records), tuple(failures), choice, analyses)


def study_results(study: Study, results: Results, scale: ScaleName, seeds: int) -> StudyResults:
    """What the results have for a study, `seeds` being the most that any cell may have.

    Seeds that no cell has are left out. A study of analyses has those with one: others may have
    trained more seeds of the same cells.
    """

    def cells(seeds: int) -> dict[tuple[str, str], CellResults]:
        return {
            (cell.row, cell.column): cell_results(cell, results, study.analyses)
            for cell in study.cells(scale, seeds)
        }

    every = cells(seeds)
    most = [
        kept.experiment.seed - found.cell.experiment.seed
        for found in every.values()
        for kept in (found.analyses if study.analyses else found.records)
    ]
    present = max(most, default=0) + 1
    return StudyResults(
        study, scale, present, every if present == seeds else cells(present), results
    )


def filled_rows(results: StudyResults, intervals: Mapping[tuple[str, str], Interval]) -> list[str]:
    """Those with an interval in any column."""
    filled = {row for row, _ in intervals}
    return [row for row in results.rows if row in filled]


def intervals_of(results: StudyResults) -> dict[tuple[str, str], Interval]:
    """Means and intervals of the cells that have a number."""
    known = ((key, f.interval()) for key, f in results.cells.items())
    return {key: interval for key, interval in known if interval is not None}


def scales(records: Iterable[Record]) -> dict[ScaleName, int]:
    """The scales of the Records, and the number of seeds at each."""
    found: dict[ScaleName, int] = {}
    for record in records:
        scale, seed = record.experiment.data.scale, record.experiment.seed
        found[scale] = max(found.get(scale, 0), seed + 1)
    return {scale: found[scale] for scale in SCALES if scale in found}


def records(results: Results) -> Iterator[Record]:
    """All that can be trusted, sorted by name."""
    for path in sorted((results.folder / "records").glob("*.json")):
        try:
            record = Record.load(path)
        except (ValueError, TypeError, KeyError):
            continue  # Named by `problems`.
        kept = trusted(results.record, record.experiment)
        if kept is not None and path.stem == name(record.experiment):
            yield kept


def problems(results: Results) -> tuple[str, ...]:
    """A sentence for every file that does not enter the report, without the folder's own path."""
    others = [
        sentence
        for folder in ("failures", "tables")
        for path in sorted((results.folder / folder).glob("*.json"))
        if (sentence := _problem(path))
    ]
    found = [*results.problems(), *others]
    return tuple(sentence.replace(f"{results.folder}{os.sep}", "") for sentence in found)


def table(results: Results, name: str) -> dict[str, Any] | None:
    """A table that was measured in one go, if there is one that can be trusted."""
    bad = _problem(results.folder / "tables" / f"{name}.json")
    return None if bad else results.table(name)


def _problem(path: Path) -> str | None:
    """What is wrong with a failure or a table, if something is."""
    if not path.exists():
        return None
    try:
        unseal(path.read_text())
    except RecordError as error:
        return f"{path} {error}."
    return None


def trusted(get: Callable[..., T | None], *arguments: Any) -> T | None:
    """What `get` returns, or None where it finds something that cannot be trusted."""
    try:
        return get(*arguments)
    except RecordError:
        return None


def first_line(text: str) -> str:
    """The first line of a reason, which may be a whole traceback."""
    return text.strip().splitlines()[0] if text.strip() else "no reason given."
