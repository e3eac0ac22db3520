"""Every example runs at a small size; the tutorials' pages show their code as it is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SMALL = {"samples": 20, "epochs": 1, "n": 63}
"""In the place of what a script says at the start of a line."""
LONG = ("own_arrays", "walls_and_inlets", "any_grid")
PLUGINS = ("plugin",)
"""Passed to commands, not run: tests/test_plugins.py does that."""


@pytest.fixture
def tutorials(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import run_tutorials

    return run_tutorials


def small(path):
    """The script with small sizes."""
    text = path.read_text()
    for name, value in SMALL.items():
        text = re.sub(rf"^{name} = \d+$", f"{name} = {value}", text, flags=re.M)
    return text


@pytest.mark.parametrize(
    "path",
    [pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in LONG)) for p in EXAMPLES],
)
def test_example(path, tmp_path, monkeypatch, capsys, registries):
    """It runs in an empty folder, prints, and draws what its page shows."""
    assert len(path.read_text().splitlines()) <= 80
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    exec(compile(small(path), path.name, "exec"), {"__name__": "__main__"})
    assert bool(capsys.readouterr().out) == (path.stem not in PLUGINS)
    page = ROOT / "docs" / "tutorials" / f"{path.stem}.md"
    if path.stem not in PLUGINS:
        shown = set(re.findall(rf"\({path.stem}-(.*?\.png)\)", page.read_text()))
        assert {p.name for p in tmp_path.glob("*.png")} == shown


def test_pages_show_the_scripts_as_they_are(tutorials):
    """After a change of a script: `make tutorials`."""
    assert set(tutorials.TUTORIALS) == {p.stem for p in EXAMPLES} - set(PLUGINS)
    for name in tutorials.TUTORIALS:
        page = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text()
        for kind, text in tutorials.cells((ROOT / "examples" / f"{name}.py").read_text()):
            assert (text if kind == "markdown" else f"```python\n{text}\n```") in page, name
