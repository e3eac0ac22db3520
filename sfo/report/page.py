"""A self-contained HTML page: text, tables and pictures, no script and no outside address."""

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #8888; vertical-align: bottom; }
td.best { font-weight: 700; } td.second { text-decoration: underline; }
figure { margin: 1rem 0; } img { max-width: 100%; height: auto; background: #fff; }
figcaption, .note { color: #777; font-size: .9rem; }
code, pre { font: .9em ui-monospace, monospace; background: #8882; padding: .1em .3em; }
pre { padding: .6em; overflow-x: auto; }
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


def heading(text: str) -> str:
    """Of a section."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, kind: str = "") -> str:
    """Plain text; `kind="note"` is small print."""
    mark = f' class="{kind}"' if kind else ""
    return f"<p{mark}>{escape(text)}</p>"


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


def picture(source: Figure | Path, caption: str) -> str:
    """A figure, or a PNG file, inside the page."""
    if isinstance(source, Figure):
        buffer = io.BytesIO()
        # Without the library's version, so that the same numbers give the same page.
        source.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
        content = buffer.getvalue()
    else:
        content = source.read_bytes()
    code = base64.b64encode(content).decode()
    return (
        f'<figure><img alt="{escape(caption)}" src="data:image/png;base64,{code}">'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )
