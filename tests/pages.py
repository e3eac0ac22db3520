"""The pages of the site and the README, and their blocks of code."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
OWN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
REPORT = ROOT / "results" / "desk" / "report.md"
PAGES = [*OWN, ROOT / "CHANGELOG.md", REPORT]
TUTORIALS = DOCS / "tutorials"
"""Their code is that of examples/, which tests/test_examples.py runs."""


def blocks(page):
    """Language and text of each fenced block; one with a title says why it is not run."""
    found = re.findall(r"^```(\w*)([^\n]*)\n(.*?)^```$", page.read_text(), re.M | re.S)
    return [(kind if not title else "text", text) for kind, title, text in found]


def lines(text):
    """The commands of a `bash` block, without their comments, each on one line."""
    joined = re.sub(r"\\\n\s*", "", text).splitlines()
    return [typed for line in joined if (typed := re.sub(r"(^|\s+)# .*", "", line).strip())]


def name_of(page):
    return str(page.relative_to(ROOT))


def briefly(code):
    """Code of a page with one epoch in the place of many, which the reader waits for."""
    return re.sub(r"\bepochs=\d+", "epochs=1", code)
