"""A report in Markdown."""

import re
from collections.abc import Sequence
from html import escape

from sfo.experiments.blocks import (
    Block,
    Bullets,
    Command,
    Details,
    Entry,
    Heading,
    Picture,
    Problems,
    Table,
    Text,
)


def document(title: str, blocks: Sequence[Block]) -> str:
    """The whole text."""
    return "\n\n".join([f"# {safe(title)}", *map(block, blocks)]) + "\n"


def safe(text: str) -> str:
    """Text without HTML: what a file or a run is called is not to be run by a browser.

    Inside of `code` a page shows the characters as they are.

    Example:
        >>> safe("a <script> and `a < b`")
        'a &lt;script> and `a < b`'
    """
    parts = re.split(r"(`[^`\n]+`)", text)
    return "".join(p if i % 2 else p.replace("<", "&lt;") for i, p in enumerate(parts))


def block(block_: Block) -> str:
    """One part of it."""
    match block_:
        case Heading(text):
            return f"## {safe(text)}"
        case Text(text):
            return safe(text)
        case Bullets(items):
            return "\n".join(f"- {safe(item)}" for item in items)
        case Problems(text, items):
            return f"> **{safe(text)}**\n>\n" + "\n".join(f"> - {safe(item)}" for item in items)
        case Command(text):
            return f"```bash\n{text}\n```"
        case Picture(name, _, caption):
            return f"![{safe(caption)}](figures/{name}.png)"
        case Details(summary, blocks):
            inside = "\n\n".join(map(block, blocks))
            return f"<details><summary>{escape(summary)}</summary>\n\n{inside}\n\n</details>"
        case Table():
            return table(block_)


def table(table_: Table) -> str:
    """Best in bold, second best in italics, the paper's number in brackets.

    Example:
        >>> from sfo.experiments.blocks import Row
        >>> row = Row("heat", (Entry("0.2", 0.2, "0.1", "best"), Entry("0.3", 0.3)))
        >>> print(table(Table("", ("", "SFO", "FNO"), (row,))))
        |  | SFO | FNO |
        |---|---:|---:|
        | heat | **0.2** (paper 0.1) | 0.3 |
    """
    side = "---:" if table_.kind == "numbers" else "---"
    lines = [
        _line(table_.columns),
        "|---|" + f"{side}|" * (len(table_.columns) - 1),
        *[_line([row.title, *map(entry, row.entries)]) for row in table_.rows],
    ]
    parts = [f"**{safe(table_.title)}**"] if table_.title else []
    parts.append("\n".join(lines))
    if table_.notes:
        parts.append(block(Bullets(table_.notes)))
    return "\n\n".join(parts)


def entry(entry_: Entry) -> str:
    """A place of a table."""
    marks = {"best": "**", "second": "_", "": ""}
    mark = marks[entry_.mark]
    text = f"{mark}{entry_.text}{mark}"
    return f"{text} (paper {entry_.published})" if entry_.published else text


def _line(texts: Sequence[str]) -> str:
    cells = [safe(text.replace("\u00ad", "").replace("|", "\\|")) for text in texts]
    return f"| {' | '.join(cells)} |"
