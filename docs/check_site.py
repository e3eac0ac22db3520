"""Look at the built site: links lead somewhere, nothing is fetched, no page is too wide.

    python docs/check_site.py

The widths need chromium; without it the check says so.
"""

import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

ROOT = Path(__file__).parents[1]
SITE = ROOT / "build" / "site"
WIDTHS = (1400, 420)
AT_A_TIME = 8
"""Pages in one start of the browser."""
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--allow-file-access-from-files",
    "--virtual-time-budget=4000",
    "--window-size=1500,1200",
    "--dump-dom",
)


class Page(HTMLParser):
    """Ids, links, and what a browser would fetch."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {key: value or "" for key, value in attributes}
        self.ids |= {found[key] for key in ("id", "name") if key in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag in ("link", "script", "img", "iframe"):
            self.fetched.append(found.get("src") or found.get("href", ""))


def broken(pages: dict[Path, Page]) -> list[str]:
    """Links that lead nowhere, and addresses that would be fetched from elsewhere."""
    wrong = []
    for path, page in pages.items():
        where = path.relative_to(SITE)
        wrong += [f"{where} fetches {a}" for a in page.fetched if urlparse(a).netloc]
        if where.name == "404.html":
            continue  # Its links are from the root of a server.
        for link in [*page.links, *page.fetched]:
            parts = urlparse(link)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = there / "index.html" if there.is_dir() else there
            anchor = unquote(parts.fragment)
            if not there.exists():
                wrong.append(f"{where} links to {link}, which does not exist")
            elif anchor and there in pages and anchor not in pages[there].ids:
                wrong.append(f"{where} links to {link}, which has no such anchor")
    return wrong


def too_wide(chromium: str, pages: list[Path]) -> list[str]:
    """Pages that scroll sideways, opened in frames: a window has a least width, a frame none."""
    script = """<pre id="seen"></pre><script>
      const seen = [], frames = [...document.querySelectorAll("iframe")];
      addEventListener("load", () => setTimeout(() => {
        for (const f of frames) seen.push([f.dataset.page, f.clientWidth,
          f.contentDocument.documentElement.scrollWidth]);
        document.querySelector("#seen").textContent = JSON.stringify(seen);
      }, 1000));</script>"""
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for start in range(0, len(pages), AT_A_TIME):
            some = pages[start : start + AT_A_TIME]
            frames = "".join(
                f'<iframe data-page="{path.relative_to(SITE)}" src="{path.as_uri()}" '
                f'width="{width}" height="900" style="border: 0"></iframe>'
                for path in some
                for width in WIDTHS
            )
            whole = Path(folder) / f"{start}.html"
            whole.write_text(f'<!doctype html><meta charset="utf-8">{frames}{script}')
            command = [chromium, *OPTIONS, f"--user-data-dir={folder}/profile", whole.as_uri()]
            done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
            text = re.search(r'<pre id="seen">(.*?)</pre>', done.stdout, re.S)
            seen = json.loads(html.unescape(text[1])) if text and text[1] else []
            if len(seen) != len(WIDTHS) * len(some):
                wrong.append(f"{len(some)} pages from {some[0].relative_to(SITE)} were not seen")
            wrong += [
                f"{page} is {w} wide on {width} points" for page, width, w in seen if w > width
            ]
    return wrong


def main() -> None:
    paths = sorted(SITE.rglob("*.html"))
    pages = {path: Page(path) for path in paths}
    wrong = broken(pages)
    chromium = shutil.which("chromium")
    if chromium is None:
        print("The widths were not looked at: that needs chromium.")
    else:
        wrong += too_wide(chromium, [path for path in paths if path.name != "404.html"])
    links = sum(len(page.links) for page in pages.values())
    print("\n".join([*wrong, f"{len(pages)} pages, {links} links, {len(wrong)} faults"]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
