"""How a study is shown unless it has its own way: errors, and the protocols that were chosen."""

from collections.abc import Callable, Sequence
from typing import Any

from sfo.evaluation.statistics import Interval
from sfo.experiments import paper
from sfo.experiments.blocks import Block, Entry, Row, Table, ranked
from sfo.experiments.record import Record
from sfo.experiments.results import name
from sfo.experiments.study import Protocol
from sfo.experiments.study_results import (
    CellResults,
    StudyResults,
    first_line,
    percent,
    trusted,
)

EMPTY_ENTRY = Entry("–")
"""A place of a table without a number."""


def study_blocks(results: StudyResults) -> list[Block]:
    """Tables and pictures of a study, by its own presentation or by the usual one."""
    return results.study.present(results) if results.study.present else usual_blocks(results)


def usual_blocks(results: StudyResults) -> list[Block]:
    """A table of errors, and one of protocols where they were chosen by trials."""
    return [error_table(results), *protocol_tables(results)]


def error_table(results: StudyResults) -> Table:
    """Errors in percent: a row per benchmark, a column for what is varied."""
    lines = []
    for row in results.rows:
        entries = [
            error_entry(f, results.seeds, published(results.study.published(row, column)))
            if (f := results.cells.get((row, column)))
            else Entry("")
            for column in results.columns
        ]
        marked = ranked(entries) if results.study.compared else entries
        lines.append(Row(results.title(row), tuple(marked)))
    columns = ("", *map(results.title, results.columns))
    return Table(results.study.title, columns, tuple(lines), error_notes(results))


def error_entry(
    cell: CellResults,
    seeds: int,
    published: str = "",
    value: Callable[[Record], float | None] = percent,
) -> Entry:
    """The mean over the seeds, or why there is none."""
    interval = cell.interval(value)
    if interval is None:
        return Entry("failed" if cell.failures else "–", published=published, runs=cell.names)
    return Entry(number(interval, seeds), interval.mean, published, runs=cell.names)


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


def error_notes(results: StudyResults) -> tuple[str, ...]:
    """What a reader must know of the numbers, and why some are not there."""
    notes = [
        "One seed per cell: nothing is said about the spread."
        if results.seeds == 1
        else f"Mean over {results.seeds} seeds ± half of the 95 % interval by Student's t; where "
        "there are fewer seeds the cell says so."
    ]
    missing = [f for f in results.cells.values() if not f.records and not f.failures]
    if missing:
        notes.append(f"–: not available, {len(missing)} of {len(results.cells)} cells.")
    return (*notes, *failure_notes(results))


def failure_notes(results: StudyResults) -> list[str]:
    """Which runs failed, and why."""
    return [
        f"{results.title(row)}, {results.plain_title(column)}: {why}"
        for (row, column), f in results.cells.items()
        for why in f.failures
    ]


def protocol_tables(results: StudyResults) -> list[Table]:
    """What the trials have chosen for each cell, if there are any trials."""
    candidates = _distinct([p for f in results.cells.values() for p in f.cell.protocols])
    if not candidates:
        return []
    every = "; ".join(protocol_text(p, candidates) for p in candidates)
    notes = [f"Chosen among {every}: the lowest validation error."]
    lines = []
    for row in results.rows:
        entries = []
        for column in results.columns:
            f = results.cells.get((row, column))
            if f is None:
                entries.append(Entry(""))
                continue
            trials = f.cell.trials()
            names = tuple(name(trial) for trial in trials)
            text = protocol_text(f.choice, candidates) if f.choice else "–"
            entries.append(Entry(text, runs=names))
            for trial, choice in zip(trials, f.cell.protocols, strict=True):
                if why := trusted(results.results.failure, trial):
                    where = f"{results.title(row)}, {results.plain_title(column)}"
                    tried = protocol_text(choice, candidates)
                    notes.append(f"{where}: the trial with {tried} failed: {first_line(why)}")
        lines.append(Row(results.title(row), tuple(entries)))
    columns = ("", *map(results.title, results.columns))
    varied = {key for p in candidates for key in p if any(q.get(key) != p[key] for q in candidates)}
    title = "Schedule and learning rate" if varied <= {*ALWAYS_PRINTED} else "Protocol"
    return [Table(title, columns, tuple(lines), tuple(notes), kind="words")]


def _distinct(protocols: Sequence[Protocol]) -> list[Protocol]:
    return [p for k, p in enumerate(protocols) if p not in protocols[:k]]


PROTOCOL_TEXTS: dict[str, Callable[[Any], str]] = {
    "optimizer": str,
    "schedule": lambda value: value.replace("_", " "),
    "learning_rate": "{:g}".format,
    "batch_size": "batch {}".format,
}
"""How the parts of a protocol are printed; others as name=value."""
ALWAYS_PRINTED = ("schedule", "learning_rate")
"""Parts that are always printed."""


def protocol_text(protocol: Protocol, candidates: Sequence[Protocol]) -> str:
    """A protocol in few words: that in which the candidates differ.

    Example:
        >>> fast = dict(schedule="one_cycle", learning_rate=4e-3, clip=1.0)
        >>> slow = dict(schedule="step", learning_rate=1e-3, clip=1.0)
        >>> muon = dict(optimizer="muon", schedule="step", learning_rate=1e-3, clip=1.0)
        >>> protocol_text(fast, [fast, slow]), protocol_text(muon, [slow, muon])
        ('one cycle 0.004', 'muon step 0.001')
    """
    keys = [*PROTOCOL_TEXTS, *(key for key in protocol if key not in PROTOCOL_TEXTS)]
    shown = [
        key
        for key in keys
        if key in protocol
        and (key in ALWAYS_PRINTED or any(p.get(key) != protocol[key] for p in candidates))
    ]
    return " ".join(PROTOCOL_TEXTS.get(key, f"{key}={{}}".format)(protocol[key]) for key in shown)
