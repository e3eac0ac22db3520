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

NOTHING = Entry("–")
"""A place of a table without a number."""


def study_blocks(found: StudyResults) -> list[Block]:
    """Tables and pictures of a study, by its own presentation or by the usual one."""
    return found.study.present(found) if found.study.present else usual_blocks(found)


def usual_blocks(found: StudyResults) -> list[Block]:
    """A table of errors, and one of protocols where they were chosen by trials."""
    return [error_table(found), *protocol_tables(found)]


def error_table(found: StudyResults) -> Table:
    """Errors in percent: a row per benchmark, a column for what is varied."""
    lines = []
    for row in found.rows:
        entries = [
            error_entry(f, found.seeds, published(found.study.published(row, column)))
            if (f := found.cells.get((row, column)))
            else Entry("")
            for column in found.columns
        ]
        marked = ranked(entries) if found.study.compared else entries
        lines.append(Row(found.title(row), tuple(marked)))
    columns = ("", *map(found.title, found.columns))
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
        "One seed per cell: nothing is said about the spread."
        if found.seeds == 1
        else f"Mean over {found.seeds} seeds ± half of the 95 % interval by Student's t; where "
        "there are fewer seeds the cell says so."
    ]
    missing = [f for f in found.cells.values() if not f.records and not f.failures]
    if missing:
        notes.append(f"–: not available, {len(missing)} of {len(found.cells)} cells.")
    return (*notes, *failure_notes(found))


def failure_notes(found: StudyResults) -> list[str]:
    """Which runs failed, and why."""
    return [
        f"{found.title(row)}, {found.plain_title(column)}: {why}"
        for (row, column), f in found.cells.items()
        for why in f.failures
    ]


def protocol_tables(found: StudyResults) -> list[Table]:
    """What the trials have chosen for each cell, if there are any trials."""
    candidates = _distinct([p for f in found.cells.values() for p in f.cell.protocols])
    if not candidates:
        return []
    every = "; ".join(protocol_text(p, candidates) for p in candidates)
    notes = [f"Chosen among {every}: the lowest validation error."]
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
            text = protocol_text(f.choice, candidates) if f.choice else "–"
            entries.append(Entry(text, runs=names))
            for trial, choice in zip(trials, f.cell.protocols, strict=True):
                if why := trusted(found.results.failure, trial):
                    where = f"{found.title(row)}, {found.plain_title(column)}"
                    tried = protocol_text(choice, candidates)
                    notes.append(f"{where}: the trial with {tried} failed: {first_line(why)}")
        lines.append(Row(found.title(row), tuple(entries)))
    columns = ("", *map(found.title, found.columns))
    varied = {key for p in candidates for key in p if any(q.get(key) != p[key] for q in candidates)}
    title = "Schedule and learning rate" if varied <= {*USUAL} else "Protocol"
    return [Table(title, columns, tuple(lines), tuple(notes), kind="words")]


def _distinct(protocols: Sequence[Protocol]) -> list[Protocol]:
    return [p for k, p in enumerate(protocols) if p not in protocols[:k]]


WORDS: dict[str, Callable[[Any], str]] = {
    "optimizer": str,
    "schedule": lambda value: value.replace("_", " "),
    "learning_rate": "{:g}".format,
    "batch_size": "batch {}".format,
}
"""How the parts of a protocol are printed; others as name=value."""
USUAL = ("schedule", "learning_rate")
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
    keys = [*WORDS, *(key for key in protocol if key not in WORDS)]
    shown = [
        key
        for key in keys
        if key in protocol
        and (key in USUAL or any(p.get(key) != protocol[key] for p in candidates))
    ]
    return " ".join(WORDS.get(key, f"{key}={{}}".format)(protocol[key]) for key in shown)
