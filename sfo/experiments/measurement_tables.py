"""Tables of what was measured without training: parameters and times."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

from sfo.experiments import paper
from sfo.experiments.blocks import Entry, Row, Table, ranked
from sfo.experiments.studies.cells import MODEL_TITLES
from sfo.registry import BENCHMARKS
from sfo.titles import title


def parameter_table(values: Mapping[str, Any]) -> Table:
    """Counts by benchmark, and the means by dimension that the paper prints."""
    counts: Mapping[str, Mapping[str, int | None]] = values["counts"]
    columns = _union(counts)
    lines = [
        Row(
            title(benchmark),
            tuple(Entry(_count(row.get(column)), row.get(column)) for column in columns),
        )
        for benchmark, row in counts.items()
    ]
    by_dimension: dict[int, list[str]] = {}
    for benchmark in counts:
        by_dimension.setdefault(dimension(benchmark), []).append(benchmark)
    for n_dim, benchmarks in sorted(by_dimension.items()):
        entries = []
        for column in columns:
            known = [n for b in benchmarks if (n := counts[b].get(column)) is not None]
            mean = fmean(known) if len(known) == len(benchmarks) else None
            theirs = paper.PARAMETERS.get(n_dim, {}).get(column)
            text = "" if theirs is None else _count(theirs)
            entries.append(Entry(_count(mean), mean, published=text))
        lines.append(Row(f"Mean in {n_dim}D", tuple(entries)))
    return Table("Parameters", ("", *map(_column, columns)), tuple(lines))


def runtime_table(values: Mapping[str, Any]) -> Table:
    """Seconds per epoch, and as a multiple of SFO's in ours and in the paper's."""
    seconds: Mapping[str, Mapping[str, float | None]] = values["seconds"]
    columns = _union(seconds)
    lines = []
    for benchmark, row in seconds.items():
        theirs = paper.RUNTIME.get(benchmark, {})
        entries = [
            Entry(_time(row, column), row.get(column), _time(theirs, column, missing=""))
            for column in columns
        ]
        lines.append(Row(title(benchmark), tuple(ranked(entries))))
    note = (
        f"Medians of {values['rounds']} rounds at the {values['scale']} scale; in brackets, as a "
        "multiple of SFO's on the same benchmark."
    )
    return Table("Seconds per epoch", ("", *map(_column, columns)), tuple(lines), (note,))


def unit_table(values: Mapping[str, Any]) -> Table:
    """Milliseconds of the reference step on each benchmark."""
    lines = [
        Row(title(benchmark), (Entry(f"{1e3 * unit:.3g}", unit),))
        for benchmark, unit in values["units"].items()
    ]
    note = f"{len(values['ratios'])} kinds of steps were measured, {values['rounds']} rounds each."
    return Table("The unit of time", ("", "ms"), tuple(lines), (note,))


def dimension(benchmark: str) -> int:
    """Axes of a benchmark's grid."""
    kind = BENCHMARKS[benchmark]
    return len(kind.grid(kind.scale("smoke")).shape)


def _column(name: str) -> str:
    return MODEL_TITLES.get(name) or title(name)


def _union(table: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(column for row in table.values() for column in row))


def _time(row: Mapping[str, float | None], column: str, missing: str = "–") -> str:
    value, sfo = row.get(column), row.get("sfo")
    if value is None:
        return missing
    return f"{value:.3g}" + (f" ({value / sfo:.2g}×)" if sfo and column != "sfo" else "")


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"
