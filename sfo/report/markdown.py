"""A report in Markdown."""

from collections.abc import Sequence

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
    return "\n\n".join([f"# {title}", *map(block, blocks)]) + "\n"


def block(block_: Block) -> str:
    """One part of it."""
    match block_:
        case Heading(text):
            return f"## {text}"
        case Text(text):
            return text
        case Bullets(items):
            return "\n".join(f"- {item}" for item in items)
        case Problems(text, items):
            return f"> **{text}**\n>\n" + "\n".join(f"> - {item}" for item in items)
        case Command(text):
            return f"```\n{text}\n```"
        case Picture(name, _, caption):
            return f"![{caption}](figures/{name}.png)"
        case Details(summary, blocks):
            inside = "\n\n".join(map(block, blocks))
            return f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>"
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
    parts = [f"**{table_.title}**"] if table_.title else []
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
    safe = [text.replace("\u00ad", "").replace("|", "\\|") for text in texts]
    return f"| {' | '.join(safe)} |"
