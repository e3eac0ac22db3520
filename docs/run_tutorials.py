"""Run the tutorials of examples/ and write their pages, with what they print and draw.

    python docs/run_tutorials.py                  # all; or some by name
    python docs/run_tutorials.py any_grid

A tutorial is a script in jupytext's percent format. Its pictures are the PNG files that it writes.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "tutorials"
TUTORIALS = (
    "first_operator",
    "own_arrays",
    "own_equation",
    "any_grid",
    "walls_and_inlets",
    "stencil_to_solver",
)


def cells(source: str) -> list[tuple[str, str]]:
    """The cells of a percent script, each "markdown" or "code" and its text."""
    found = []
    for part in re.split(r"^# %%", source, flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip().split("\n")]
            found.append(("markdown", "\n".join(lines)))
        else:
            found.append(("code", body.strip("\n")))
    return found


def page_of(name: str, outputs: list[tuple[str, list[str]]]) -> str:
    """The page of a tutorial; `outputs` are what each code cell printed and drew."""
    rest = iter(outputs)
    parts = []
    for kind, text in cells((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")):
        if kind == "markdown":
            parts.append(text)
            continue
        printed, pictures = next(rest)
        parts.append(f"```python\n{text}\n```")
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
        parts += [f"![{Path(p).stem}, drawn by the code above]({name}-{p})" for p in pictures]
    return "\n\n".join(parts) + "\n"


def keep(picture: Path, there: Path) -> None:
    """A picture of at most 1,000 points across and 128 colours: a tenth of a megabyte."""
    image = Image.open(picture).convert("RGB")
    image.thumbnail((1000, 1000))
    image.quantize(128).save(there, optimize=True)


def run(name: str) -> None:
    """Run one at its full size, and write its page and pictures."""
    outputs, names = [], {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ["SFO_DATA"] = folder
        script = Path("__main__.py")
        for kind, text in cells((ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")):
            if kind == "markdown":
                continue
            before = set(Path().glob("*.png"))
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, script, "exec"), names)
            new = sorted(set(Path().glob("*.png")) - before)
            for picture in new:
                keep(picture, PAGES / f"{name}-{picture.name}")
            outputs.append((printed.getvalue(), [p.name for p in new]))
        os.chdir(ROOT)
    (PAGES / f"{name}.md").write_text(page_of(name, outputs), encoding="utf-8")


def main() -> None:
    PAGES.mkdir(exist_ok=True)
    for name in sys.argv[1:] or TUTORIALS:
        start = time.perf_counter()
        run(name)
        print(f"{name}: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
