"""What a report is made of: studies give these blocks, and `sfo.report` writes them."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Union

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Mark = Literal["", "best", "second"]

PAGE_COLUMNS = 8
"""Columns of numbers that a page is wide enough for."""


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    Args:
        text: As it is read.
        value: The number, to compare it with others; None where there is none.
        published: The paper's, as it is read; empty where it has none.
        mark: Whether it is the best or the second best of those it is compared with.
        runs: Names of the runs behind it.
    """

    text: str
    value: float | None = None
    published: str = ""
    mark: Mark = ""
    runs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    """A line of a table, and what it is of."""

    title: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Table:
    """Rows of entries.

    Args:
        title: A line above it.
        columns: Titles, the first that of the rows' titles.
        rows: All as long as the columns.
        notes: Sentences below it.
        kind: "numbers" stand to the right, "words" to the left.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    kind: Literal["numbers", "words"] = "numbers"

    def transposed(self) -> "Table":
        """With rows for columns.

        Example:
            >>> table = Table("", ("", "x", "y"), (Row("a", (Entry("1"), Entry("2"))),))
            >>> table.transposed().columns, [row.title for row in table.transposed().rows]
            (('', 'a'), ['x', 'y'])
        """
        entries = zip(*(row.entries for row in self.rows), strict=True)
        rows = tuple(map(Row, self.columns[1:], entries))
        return replace(self, columns=("", *(row.title for row in self.rows)), rows=rows)

    def fitted_to_page(self) -> "Table":
        """Transposed, if it has more columns than fit a page and fewer rows."""
        return (
            self.transposed() if len(self.columns) - 1 > max(PAGE_COLUMNS, len(self.rows)) else self
        )


@dataclass(frozen=True)
class Heading:
    """The heading of a section; `anchor` is what the table of contents points at."""

    text: str
    anchor: str


@dataclass(frozen=True)
class Text:
    """A paragraph; a "note" is small print."""

    text: str
    kind: Literal["", "note"] = ""


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Problems:
    """What must not be missed: a sentence, and a list below it."""

    text: str
    items: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """What to type."""

    text: str


@dataclass(frozen=True)
class Picture:
    """A PNG file in the folder `figures`."""

    name: str
    content: bytes
    caption: str


def png(figure: "Figure") -> bytes:
    """Without the library's version, so that the same numbers give the same bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    return buffer.getvalue()


def pictures(*drawn: tuple[str, "Figure | None", str]) -> list[Picture]:
    """Names, figures and captions as pictures; a figure that is None has nothing to show."""
    return [Picture(name, png(fig), caption) for name, fig, caption in drawn if fig is not None]


@dataclass(frozen=True)
class Details:
    """What is shown when it is asked for."""

    summary: str
    blocks: tuple["Block", ...]


Block = Union[Heading, Text, Bullets, Problems, Command, Picture, Details, Table]  # noqa: UP007


def ranked(entries: Sequence[Entry]) -> list[Entry]:
    """The entries with the lowest and the second lowest marked.

    Those that print alike are marked alike.

    Example:
        >>> entries = [Entry("0.20", 0.203), Entry("0.2 ± 0.1", 0.197), Entry("0.3", 0.3)]
        >>> [entry.mark for entry in ranked(entries)]
        ['best', 'best', 'second']
    """
    left = [i for i, entry in enumerate(entries) if entry.value is not None]
    if len(left) < 2:
        return list(entries)
    out = list(entries)
    marks: tuple[Mark, ...] = ("best", "second")
    for mark in marks:
        if not left:
            break
        first = min(left, key=lambda i: entries[i].value or 0.0)
        level = [i for i in left if printed_alike(entries[i], entries[first])]
        for i in level:
            out[i] = replace(entries[i], mark=mark)
        left = [i for i in left if i not in level]
    return out


def printed_alike(one: Entry, other: Entry) -> bool:
    """Whether two numbers are the same as they are printed."""
    return printed(one.text) == printed(other.text)


NUMBER = re.compile(r"\(?(-?[\d,.]+(?:e[-+]?\d+)?)(?:.*\)e(-?\d+))?")
"""A mean as `Interval` prints it: 0.45 ± 0.03, 1.2e-05, (1.2 ± 0.1)e-5."""


def printed(text: str) -> float:
    """The number that a text begins with.

    Example:
        >>> printed("0.45 ± 0.03 (2 seeds)"), printed("(1.2 ± 0.1)e-5")
        (0.45, 1.2e-05)
    """
    match = NUMBER.match(text)
    if match is None:
        raise ValueError(f"An entry with a value must begin with a number, got {text!r}.")
    mean, exponent = match.groups()
    return (
        float(f"{mean.replace(',', '')}e{exponent}") if exponent else float(mean.replace(",", ""))
    )
