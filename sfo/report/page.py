"""A self-contained HTML page: text, tables and pictures, no script and no outside address."""

import base64
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

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
    png,
)

STYLE = """
:root { color-scheme: light dark; --quiet: light-dark(#5f6368, #a0a4a8);
  --line: light-dark(#dadce0, #44474a); --shade: light-dark(#f4f5f6, #26282a);
  --link: light-dark(#0b57d0, #8ab4f8); --back: light-dark(#fff, #18191a);
  --text: light-dark(#1f2023, #e6e7e8); --alarm: light-dark(#b3261e, #f2b8b5); }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 1rem;
  background: var(--back); color: var(--text); overflow-wrap: break-word; }
p, li { max-width: 48rem; }
h1 { font-size: 1.7rem; line-height: 1.25; }
h2 { font-size: 1.3rem; margin: 3rem 0 .6rem; padding-top: .6rem;
  border-top: 1px solid var(--line); }
a { color: var(--link); }
nav ul { list-style: none; margin: 1rem 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .2rem 1.3rem; }
.wide { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem; }
.caption { font-weight: 600; margin: 1.4rem 0 0; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--line); vertical-align: bottom; line-height: 1.25;
  hyphens: manual; }
tbody th { font-weight: 400; min-width: 10.5rem; }
.numbers tr > th:first-child { position: sticky; left: 0; background: var(--back); }
td { white-space: nowrap; }
td small { display: block; color: var(--quiet); font-size: .76rem; line-height: 1.3; }
td.best { font-weight: 700; } td.best small { font-weight: 400; }
td.second:not(:has(u)) { text-decoration: underline; } u { text-underline-offset: .2em; }
table.words :is(th, td) { text-align: left; }
details { margin: .8rem 0; } summary { cursor: pointer; color: var(--link); }
details table { font-size: .8rem; }
details td:last-child { font-family: ui-monospace, monospace; }
figure { margin: 1.2rem 0; } img { max-width: 100%; height: auto; background: #fff; }
figcaption, .note, ul.notes { color: var(--quiet); font-size: .88rem; }
ul.notes { padding-left: 1.1rem; margin: .4rem 0; }
.problems { border: 2px solid var(--alarm); border-radius: .4rem; padding: .2rem 1rem;
  margin: 1rem 0; }
.problems strong { color: var(--alarm); } .problems li { max-width: none; }
code, pre { font: .9em ui-monospace, monospace; background: var(--shade); padding: .1em .3em; }
pre { padding: .6em; overflow-x: auto; }
@media (max-width: 40rem) { body { font-size: 15px; padding: .7rem; }
  th, td { padding: .3rem .45rem; } tbody th { min-width: 7rem; }
  figure { overflow-x: auto; } img { max-width: none; width: 40rem; } }
"""


def page(title: str, sections: Sequence[str]) -> str:
    """The whole page, from pieces of HTML as the functions below make them."""
    body = "\n".join(sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def document(title: str, blocks: Sequence[Block]) -> str:
    """A page of blocks, with a table of contents that points at its headings."""
    headings = [block for block in blocks if isinstance(block, Heading)]
    links = "".join(f'<li><a href="#{h.anchor}">{escape(h.text)}</a></li>' for h in headings)
    contents = f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
    first = next((i for i, b in enumerate(blocks) if isinstance(b, Heading)), len(blocks))
    sections = [render(block) for block in blocks]
    return page(title, [*sections[:first], contents, *sections[first:]])


def render(block: Block) -> str:
    """One block."""
    match block:
        case Heading(text, anchor):
            return heading(text, anchor)
        case Text(text, kind):
            return paragraph(text, kind)
        case Bullets(items):
            return bullets(items)
        case Problems(text, items):
            inside = f"<p><strong>{escape(text)}</strong></p>{bullets(items)}"
            return f'<div class="problems" role="alert">{inside}</div>'
        case Command(text):
            return command(text)
        case Picture(_, content, caption):
            return picture(content, caption)
        case Details(summary, blocks):
            inside = "\n".join(map(render, blocks))
            return f"<details><summary>{escape(summary)}</summary>\n{inside}\n</details>"
        case Table():
            return full_table(block)


def heading(text: str, anchor: str = "") -> str:
    """The heading of a section, and a name for links to it."""
    mark = f' id="{anchor}"' if anchor else ""
    return f"<h2{mark}>{escape(text)}</h2>"


def bullets(items: Sequence[str], kind: str = "") -> str:
    """A list."""
    mark = f' class="{kind}"' if kind else ""
    lines = "".join(f"<li>{inline(item)}</li>" for item in items)
    return f"<ul{mark}>{lines}</ul>"


def paragraph(text: str, kind: str = "") -> str:
    """Plain text; `kind="note"` is small print."""
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{inline(text)}</p>"


def inline(text: str) -> str:
    """Text with `code` in it.

    Example:
        >>> inline("`a < b` & c")
        '<code>a &lt; b</code> &amp; c'
    """
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def command(text: str) -> str:
    """A command that makes what stands beside it."""
    return f"<pre>{escape(text)}</pre>"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    marks: Mapping[tuple[int, int], str] | None = None,
) -> str:
    """A table of text.

    Args:
        columns: Titles.
        rows: Text of each cell.
        marks: (row, column): "best" or "second", for cells that stand out.
    """
    marks = marks or {}
    head = "".join(f"<th>{escape(c)}</th>" for c in columns)
    lines = []
    for i, row in enumerate(rows):
        cells = [
            f'<td class="{marks[i, j]}">{escape(cell)}</td>'
            if (i, j) in marks
            else f"<td>{escape(cell)}</td>"
            for j, cell in enumerate(row)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def full_table(table: Table) -> str:
    """A table of blocks: the paper's numbers in small print below ours, notes below it."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    body = "\n".join(
        f'<tr><th scope="row">{escape(row.title)}</th>{"".join(map(_cell, row.entries))}</tr>'
        for row in table.rows
    )
    # Outside the box, or it would be scrolled away with the table.
    caption = f'<p class="caption">{escape(table.title)}</p>\n' if table.title else ""
    label = f' aria-label="{escape(table.title)}"' if table.title else ""
    notes = bullets(table.notes, "notes") if table.notes else ""
    return (
        # The box can be scrolled with the keyboard, so it can be reached with it.
        f'{caption}<div class="wide" tabindex="0"><table class="{table.kind}"{label}>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>{notes}"
    )


def _cell(entry: Entry) -> str:
    mark = f' class="{entry.mark}"' if entry.mark else ""
    text = escape(entry.text)
    if entry.mark == "second":
        text = f"<u>{text}</u>"
    small = f"<small>paper {escape(entry.published)}</small>" if entry.published else ""
    return f"<td{mark}>{text}{small}</td>"


def picture(source: Figure | Path | bytes, caption: str) -> str:
    """A figure, a PNG file or its content, inside the page."""
    if isinstance(source, Figure):
        content = png(source)
    else:
        content = source.read_bytes() if isinstance(source, Path) else source
    code = base64.b64encode(content).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{code}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
