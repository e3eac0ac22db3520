"""Every public name has an entry in the API with an example that runs."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import sfo

ROOT = Path(__file__).parents[1]
PACKAGES = ["sfo", *(f"sfo.{m.name}" for m in pkgutil.iter_modules(sfo.__path__) if m.ispkg)]
PUBLIC = [name for name in PACKAGES if hasattr(importlib.import_module(name), "__all__")]


@pytest.mark.parametrize("package", PUBLIC)
def test_every_name_has_an_example(package):
    """In its docstring, which the doctests run, or on the page, which test_documents.py runs."""
    module = importlib.import_module(package)
    page = (ROOT / "docs" / "api" / f"{package}.md").read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.S))
    for name in module.__all__:
        written = getattr(module, name).__doc__ or ""
        assert ">>> " in written or re.search(rf"\b{name}\b", code), f"{package}.{name}"


def test_the_site_lists_every_page():
    """What `make docs` would refuse, told earlier: pages that the contents leave out, and back."""
    listed = set(re.findall(r"([\w./]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.M))
    pages = {p.relative_to(ROOT / "docs").as_posix() for p in (ROOT / "docs").rglob("*.md")}
    assert listed == pages | {"changelog.md", "contributing.md", "results/report.md"}
    assert {f"api/{package}.md" for package in PUBLIC} <= listed
