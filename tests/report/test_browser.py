"""The page in a browser: its numbers, its widths, and nothing fetched from anywhere."""

import html
import json
import re
import shutil
import subprocess

import pytest

from sfo.evaluation.statistics import mean_interval
from sfo.experiments.results import Results
from sfo.experiments.studies import PAPER_BENCHMARKS, STUDIES

CHROMIUM = shutil.which("chromium")
WIDTHS = (1280, 380)
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=10000",
    "--window-size=1400,2000",
    "--dump-dom",
)

LOOK = """<script>addEventListener("load", () => {
  const box = (e) => e.getBoundingClientRect();
  parent.postMessage({
    inner: innerWidth,
    page: document.documentElement.scrollWidth,
    fetched: performance.getEntriesByType("resource").map((r) => r.name),
    tables: [...document.querySelectorAll("h2#main ~ .wide table")].slice(0, 1).map((t) =>
      [...t.rows].map((r) => [...r.cells].map((c) => c.innerText))),
    cut: [...document.querySelectorAll(".wide")].filter((e) =>
      box(e).width > 0 && (box(e).left < 0 || box(e).right > innerWidth)).length,
    scrolled: [...document.querySelectorAll(".wide")].filter((e) =>
      e.scrollWidth > e.clientWidth).length,
    main_scrolls: ((e) => e.scrollWidth > e.clientWidth)(document.querySelector("h2#main ~ .wide")),
    broken: [...document.images].filter((i) => !i.naturalWidth || !i.alt).length,
    images: document.images.length,
    targets: [...document.querySelectorAll("nav a")].filter((a) =>
      !document.querySelector(a.getAttribute("href"))).length,
  }, "*");
});</script>"""
"""What each frame tells; only the test's copy of the page has a script."""

FRAMES = """<!doctype html><meta charset="utf-8"><pre id="seen"></pre><script>
const seen = [];
addEventListener("message", (event) => {
  seen.push(event.data);
  document.querySelector("#seen").textContent = JSON.stringify(seen);
});</script>""" + "".join(
    # A window has a least width, a frame has none.
    f'<iframe src="page.html" width="{width}" height="900" style="border: 0"></iframe>'
    for width in WIDTHS
)


@pytest.fixture(scope="module")
def seen(folder, tmp_path_factory):
    """By width, what the page looks like."""
    if CHROMIUM is None:
        pytest.skip("needs Debian's chromium: apt-get install chromium")
    place = tmp_path_factory.mktemp("browser")
    page = (folder / "report.html").read_text()
    (place / "page.html").write_text(page.replace("</body>", f"{LOOK}</body>"))
    (place / "frames.html").write_text(FRAMES)
    profile = f"--user-data-dir={place / 'profile'}"
    address = (place / "frames.html").as_uri()
    done = subprocess.run(
        [CHROMIUM, *OPTIONS, profile, address],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )
    text = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
    assert text is not None, done.stdout[-2000:] + done.stderr[-2000:]
    frames = {frame["inner"]: frame for frame in json.loads(html.unescape(text[1]))}
    assert sorted(frames) == sorted(WIDTHS)
    return frames


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_is_no_wider_than_the_screen(seen, width):
    """Tables scroll in boxes of their own."""
    assert seen[width]["page"] <= width
    assert seen[width]["cut"] == 0


def test_wide_tables_scroll_on_a_narrow_screen(seen):
    assert seen[380]["scrolled"] > 0


def test_the_main_table_fits_a_wide_screen(seen):
    assert seen[1280]["main_scrolls"] is False


def test_nothing_is_fetched(seen):
    for frame in seen.values():
        assert frame["fetched"] == []


def test_all_pictures_are_there_and_described(seen, folder):
    for frame in seen.values():
        assert frame["images"] == len(list((folder / "figures").iterdir()))
        assert frame["broken"] == 0


def test_contents_point_at_sections(seen):
    assert seen[1280]["targets"] == 0


def test_the_rendered_main_table_is_the_records(seen, folder):
    """One line per model; our number on the first line of a cell, the paper's below it."""
    results = Results(folder)
    cells = STUDIES["main"].cells("smoke", 2)
    (table,) = seen[1280]["tables"]
    assert {len(row) for row in table} == {len(PAPER_BENCHMARKS) + 1}
    by_model = zip(*(row[1:] for row in table[1:]), strict=True)
    shown = [text for benchmark in by_model for text in benchmark]
    for cell, text in zip(cells, shown, strict=True):
        found = [r for run in cell.runs(results) if (r := results.record(run))]
        ours, *theirs = text.split("\n")
        expected = str(mean_interval([r.errors.percent for r in found])) if found else "–"
        assert ours.strip() == expected
        assert bool(theirs) == (STUDIES["main"].published(cell.row, cell.column) is not None)
