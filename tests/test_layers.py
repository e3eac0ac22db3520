"""Imports point left: a package imports only from the ones named here."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sfo

ROOT = Path(sfo.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
CORE = {
    "axis_mix",
    "checks",
    "factored_mix",
    "fft",
    "fourier_matrices",
    "files",
    "grid",
    "machine",
    "memory",
    "plugins",
    "registry",
    "shapes",
    "spectral_mix",
    "transforms",
    "titles",
}
MAY_IMPORT = {
    "bases": set(),
    "pdes": set(),
    "models": {"bases"},
    "theory": {"bases", "models", "pdes"},
    "plot": {"data", "models"},
    "data": {"pdes"},
    "training": {"pdes", "data", "models"},
    "evaluation": {"data", "models"},
    "zoo": {"models"},
    "play": {"data", "models", "pdes", "zoo", "training", "evaluation", "experiments"},
    "experiments": {"data", "models", "training", "evaluation", "plot", "zoo"},
    "report": {"bases", "pdes", "theory", "data", "training", "evaluation", "experiments", "plot"},
}


def imported_parts(path):
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "sfo" and len(parts) > 1:
                yield parts[1]


@pytest.mark.parametrize("part", [*sorted(MAY_IMPORT), *sorted(CORE)])
def test_imports_point_left(part):
    folder = ROOT / part
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [ROOT / f"{part}.py"]
    allowed = CORE | MAY_IMPORT.get(part, set()) | {part}
    assert files
    for path in files:
        extra = {name for name in imported_parts(path) if name not in allowed}
        assert not extra, f"{path.relative_to(ROOT)} imports {extra}"


def test_every_package_has_a_rule():
    parts = {p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert parts - set(MAY_IMPORT) == {"commands"}, "the commands may import all, others not"


@pytest.mark.new_interpreter
def test_importing_the_package_imports_nothing_heavy():
    """They take seconds, and are needed only by those who solve, compile or draw."""
    heavy = ["torch._dynamo", "numba", "scipy.integrate", "scipy.stats", "matplotlib"]
    heavy += ["lightning_fabric"]
    program = (
        f"import sys, sfo, sfo.experiments.worker; print([m for m in {heavy} if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout.strip() == "[]", found.stdout + found.stderr


def test_the_page_says_what_each_package_may_import():
    said = dict(re.findall(r"### `sfo/(\w+)`\n\nImports: ([^.]*)\.", PAGE))
    assert said.pop("commands") == "everything"
    rules = {part: ", ".join(sorted(names)) or "nothing else" for part, names in MAY_IMPORT.items()}
    assert said == rules


def test_the_page_names_the_core():
    line = PAGE.partition("`CORE` is")[2].partition("\n\n")[0]
    assert {name for name in CORE if not re.search(rf"\b{name}\b", line)} == set()


def test_the_walk_of_a_sample_is_short_and_each_step_leads_to_the_next():
    """At most 25 files, and each is imported by one before it, or registered by name."""
    walk = re.findall(r"^\d+\. `(sfo/\S+\.py)`", PAGE, re.M)
    by_name = {"sfo/data/catalogue/paper.py", "sfo/models/sfo.py", "sfo/pdes/allen_cahn.py"}
    assert 0 < len(walk) <= 25
    assert len({*walk}) == len(walk)
    before = set()
    for step in walk:
        text = (ROOT.parent / step).read_text(encoding="utf-8")
        module = step.removesuffix(".py").replace("/", ".")
        assert module in before or step in by_name or step == walk[0], f"nothing leads to {step}"
        before |= {*re.findall(r"(?:from|import) (sfo[\w.]*)", text)}
        before |= {
            f"{package}.{name}"
            for package, names in re.findall(r"from (sfo[\w.]*) import ([\w, ]+)", text)
            for name in names.split(", ")
        }


def test_every_import_of_the_package_finds_what_it_names():
    """Also those inside functions, which fail only when they are called."""
    top = ROOT.parent
    folders = [ROOT, top / "tests", top / "examples", top / "benchmarks"]
    named = {
        (node.module, alias.name)
        for folder in folders
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sfo"
        for alias in node.names
    }
    missing = [name for name in sorted(named) if not _found(*name)]
    assert not missing


def _found(module, name):
    try:
        if hasattr(importlib.import_module(module), name):
            return True
        importlib.import_module(f"{module}.{name}")
    except ModuleNotFoundError as error:
        return not (error.name or "").startswith("sfo")
    return True
