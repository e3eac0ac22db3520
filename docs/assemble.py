"""Put the pages of the site together in build/docs, where mkdocs reads them.

    python docs/assemble.py && mkdocs build --strict

The pages of docs/ are copied as they are, except for three things: equations in $$…$$ become SVG
pictures, which need no script and no font; links to files of the repository lead to their pages;
and tutorials get their notebooks. The changelog, the results and the API's names are added.

    python docs/assemble.py readme                # after `sfo report results/desk`: the README's
                                                  # sentences about the results
"""

import ast
import html
import json
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OUT = ROOT / "build" / "docs"
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "LICENSE",
    "README.md": "index.md",
    "results/desk/report.md": "results/report.md",
}
"""Pages from outside of docs/, and where they go; the start page stands for the README."""
REPORT = ROOT / "results" / "desk" / "report.md"
LATER = "---\nsearch:\n  boost: 0.2\n---\n\n"
"""Head of a page that the search names after tutorials and guides."""
ASIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "hardening.md", "design.md")
"""Pages for those who develop the package, which get it."""
FENCE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.M | re.S)
"""Code, in which nothing is changed."""


def place(source: Path) -> Path:
    """Where a file of the repository is in the site."""
    name = source.relative_to(ROOT).as_posix()
    if name in OUTSIDE:
        return OUT / OUTSIDE[name]
    if name.startswith("results/desk/"):
        return OUT / "results" / name.removeprefix("results/desk/")
    return OUT / name.removeprefix("docs/")


def with_links(text: str, source: Path) -> str:
    """A page whose relative links lead to the places of their targets, which are copied there."""

    def lead(match: re.Match[str]) -> str:
        target, mark, anchor = match[1].partition("#")
        if "://" in target or not target:
            return match[0]
        found = (source.parent / target).resolve()
        if found.is_dir():
            found = found / "README.md"
        if not found.is_file():
            raise SystemExit(f"{source.relative_to(ROOT)} links to {target}, which does not exist.")
        there = place(found)
        if found.suffix != ".md" and not there.exists():
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found, there)
        address = os.path.relpath(there, place(source).parent).replace(os.sep, "/")
        return f"]({address}{mark}{anchor})"

    return re.sub(r"\]\(([^)\s]+)\)", lead, text)


def outlines(formula: str) -> str:
    """A formula as an SVG picture of its letters' outlines, in the colour of the text.

    It looks the same everywhere; MathML needs a font for mathematics, which many machines lack.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.path import Path as Outline
    from matplotlib.textpath import TextPath

    shown = formula.replace(r"\frac", r"\dfrac")
    path = TextPath((0, 0), f"${shown}$", size=18, prop=FontProperties(math_fontfamily="cm"))
    letters = {Outline.MOVETO: "M", Outline.LINETO: "L", Outline.CURVE3: "Q", Outline.CURVE4: "C"}
    steps = [
        "Z" if code == Outline.CLOSEPOLY else letters[code] + " ".join(f"{v:.2f}" for v in points)
        for points, code in path.iter_segments(simplify=False, curves=True)
    ]
    box = path.get_extents().padded(1)
    return (
        f'<svg role="img" aria-label="{html.escape(formula)}" fill="currentColor" '
        f'width="{box.width:.0f}" height="{box.height:.0f}" viewBox="{box.x0:.2f} {-box.y1:.2f} '
        f'{box.width:.2f} {box.height:.2f}"><path transform="scale(1,-1)" d="{"".join(steps)}"/>'
        "</svg>"
    )


def with_equations(text: str) -> str:
    """A page with pictures in the place of $$…$$."""

    def draw(match: re.Match[str]) -> str:
        formula = " ".join(match[1].split())
        return f'\n<div class="equation">{outlines(formula)}</div>\n'

    parts = FENCE.split(text)
    parts[::2] = [re.sub(r"\$\$(.+?)\$\$", draw, part, flags=re.S) for part in parts[::2]]
    return "".join(parts)


def report_table(report: str, heading: str, number: int, rows: list[str]) -> str:
    """Some rows of a table of a report, our numbers only: the `number`-th one under a heading.

    Columns of means are left out.
    """
    text = report.split(f"\n{heading}", 1)[1].split("\n## ", 1)[0]
    tables = re.findall(r"(?:^\|.*\n)+", text, re.M)
    head, line, *body = tables[number].strip().split("\n")
    found = {row.split("|")[1].strip(): row for row in body}
    ours = [re.sub(r" \(paper .*?\)", "", found[name]) for name in rows]
    n_columns = 1 + sum(not cell.strip().startswith("Mean") for cell in head.split("|")[1:-1])
    return "\n".join("|".join(row.split("|")[:n_columns]) + "|" for row in (head, line, *ours))


def result_sentence() -> str:
    """What the README says of the results, with the report's numbers."""
    report = REPORT.read_text(encoding="utf-8")
    short = report.split("\n## In short", 1)[1].split("\n## ", 1)[0]
    first, of = re.findall(r"as recommended has the lowest error.*?on (\d+) of (\d+)", short)[0]
    places = re.findall(r"^\| (\dD [^|]*?) \|[^|]*\|[^|]*?\(([\d.]+)×\) \|([^|]*)", short, re.M)
    head, _, row = report_table(report, "## Main table", 0, ["SFO recommended"]).split("\n")
    ours = {b.strip(): cell for b, cell in zip(head.split("|"), row.split("|"), strict=True)}
    seconds = report_table(report, "## Main table", 1, ["SFO recommended"]).split("\n")[2]
    shares = sorted(float(share) for share in re.findall(r"\(([\d.]+)×\)", seconds))
    errors = ", ".join(
        f"{change(float(multiple))} on {name}{doubt(ours[name], other)}"
        for name, multiple, other in places
    )
    missing = re.search(r"not available, (\d+) of (\d+) cells", report)
    note = (
        f" Not trained yet: {missing[1]} of {missing[2]} pairs of model and benchmark."
        if missing
        else ""
    )
    return (
        "With [small data and short training](docs/glossary.md#scale), SFO with our recommended "
        f"settings has the lowest error of the models trained so far on {first} of the paper's "
        f"{of} benchmarks (against the best other model: {errors}), and it trains in "
        f"{100 * shares[0]:.0f} to {100 * shares[-1]:.0f} % of the time of neuraloperator's FNO "
        "(`sfo reproduce main seconds --scale desk --seeds 3`). All models have the same epochs, "
        f"and each the best of four optimizer settings by its validation error.{note}"
    )


def start_sentence() -> str:
    """What the README says of other models that start as SFO does: the report's own sentence."""
    found = re.search(r"^- (Where other models start from the same .*)$", REPORT.read_text(), re.M)
    assert found is not None, "The report has no study `start`."
    return found[1]


def change(multiple: float) -> str:
    """An error that is a multiple of another, as a change in percent."""
    return f"{100 * (multiple - 1):+.0f} %".replace("-", "−")


def doubt(ours: str, other: str) -> str:
    """What speaks against a difference of two cells such as 0.07 ± 0.02 and PINO 0.08 ± 0.03."""
    pattern = r"([\d.]+) ± ([\d.]+)"
    if "(1 seed)" in ours:
        return " with one seed"
    mine, theirs = re.search(pattern, ours), re.search(pattern, other.split("(paper")[0])
    if mine is None or theirs is None:
        return ""
    least = float(theirs[1]) - float(theirs[2])
    return (
        " where the intervals over seeds overlap" if float(mine[1]) + float(mine[2]) > least else ""
    )


def update_readme() -> None:
    """Write the sentences into the README, between their marks."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for name, sentence in (("result", result_sentence()), ("start", start_sentence())):
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(\n<!-- /{name} -->)",
            lambda m, sentence=sentence: f"{m[1]}{sentence}{m[2]}",
            text,
            flags=re.S,
        )
    readme.write_text(text, encoding="utf-8")


def step_table(measured: dict) -> str:
    """`make bench`: steps and predictions as multiples of neuraloperator's FNO."""
    lines = [
        "| | FNO, ms | SFO as in the paper | recommended SFO | prediction of one sample |",
        "|---|---:|---:|---:|---:|",
    ]
    for row, other in zip(measured["steps"], measured["factored"], strict=True):
        as_paper = row["ms"]["ours"] / row["ms"]["fno"]
        recommended, alone = (
            other[key]["recommended"] / other[key]["fno"] for key in ("ms", "prediction_ms")
        )
        fno = other["ms"]["fno"]
        lines.append(
            f"| {row['case']} | {fno:,.0f} | {as_paper:.2f} | {recommended:.2f} | {alone:.2f} |"
        )
    return "\n".join(lines)


def with_numbers(text: str) -> str:
    """A page with the tables that its comments ask for, so that a number has one home."""

    def fill(match: re.Match[str]) -> str:
        kind, path, *rest = [part.strip() for part in re.split(r"[:|]", match[1])]
        source = (ROOT / path).read_text(encoding="utf-8")
        if kind == "step":
            return step_table(json.loads(source))
        heading, number, rows = rest
        return report_table(source, heading, int(number), [r.strip() for r in rows.split(",")])

    return re.sub(r"<!-- ((?:table|step):.*?) -->", fill, text)


def results_page() -> str:
    """The report with a word on how to read it, and the paper's numbers on a line of their own."""
    source = REPORT.read_text(encoding="utf-8")
    title, text = source.split("\n", 1)
    link = os.path.relpath(ROOT / "docs", REPORT.parent)
    intro = (
        f"The desk [scale]({link}/glossary.md#scale) is small data and short training, which two "
        f"cores can do; the paper's sizes are larger. [Reading a report]({link}/guides/"
        "reading_a_report.md) says what each column is. The page is made by "
        "`sfo report results/desk`.\n"
    )
    paper = r"(?<=.) \(paper ((?:[^()\n]|\([^()\n]*\))*)\)(?= \|)"
    return f"{title}\n\n{intro}\n" + re.sub(paper, r"<br><small>paper \1</small>", text)


def write(source: Path, text: str | None = None) -> None:
    """One page, from its file in the repository or from text made of it."""
    text = with_numbers(source.read_text(encoding="utf-8") if text is None else text)
    parts = FENCE.split(text)
    parts[::2] = [with_links(part, source) for part in parts[::2]]
    page = place(source)
    page.parent.mkdir(parents=True, exist_ok=True)
    head = LATER if source.name in ASIDE else ""
    page.write_text(head + with_equations("".join(parts)), encoding="utf-8")


def add_downloads(page: Path) -> None:
    """Put script and notebook of a tutorial beside its page, with links below its title."""
    import jupytext

    script, there = ROOT / "examples" / f"{page.stem}.py", place(page)
    notebook = jupytext.read(script, fmt="py:percent")
    notebook.metadata["kernelspec"] = dict(
        name="python3", display_name="Python 3", language="python"
    )
    jupytext.write(notebook, there.with_suffix(".ipynb"), fmt="ipynb")
    shutil.copy(script, there.parent)
    title, rest = there.read_text(encoding="utf-8").split("\n", 1)
    links = f"[notebook]({page.stem}.ipynb) · [script]({page.stem}.py)"
    there.write_text(f"{title}\n\n{links}\n{rest}", encoding="utf-8")


def packages() -> list[str]:
    """`sfo` and its subpackages that say what is public."""
    folders = sorted(path.parent.name for path in (ROOT / "sfo").glob("*/__init__.py"))
    return ["sfo", *(f"sfo.{name}" for name in folders if public_names(f"sfo.{name}"))]


def public_names(package: str) -> list[str]:
    """`__all__`, read without importing."""
    path = ROOT / package.replace(".", "/") / "__init__.py"
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


def api_page(package: str) -> str:
    """The names of a package, after what docs/api says of it: functions, classes, constants."""
    text = (ROOT / "docs" / "api" / f"{package}.md").read_text(encoding="utf-8")
    names = sorted(
        public_names(package),
        key=lambda n: (n[0].isupper(), n not in ("fit", "SFO"), n.isupper(), n),
    )
    entries = [f"::: {package}.{name}\n" for name in names]
    return LATER + text + "\n" + "\n".join(entries)


def main() -> None:
    shutil.rmtree(OUT, ignore_errors=True)
    docs = ROOT / "docs"
    for page in sorted(docs.rglob("*.md")):
        if page.parent == docs / "api":
            continue
        write(page)
        if page.parent == docs / "tutorials" and page.name != "README.md":
            add_downloads(page)
    for name in OUTSIDE:
        if name.endswith(".md") and name != "README.md":
            write(ROOT / name, results_page() if ROOT / name == REPORT else None)
    for package in packages():
        write(docs / "api" / f"{package}.md", api_page(package))
    shutil.copy(docs / "site.css", OUT)
    print(f"{sum(1 for _ in OUT.rglob('*.md'))} pages in {OUT.relative_to(ROOT)}")


if __name__ == "__main__":
    update_readme() if sys.argv[1:] == ["readme"] else main()
