"""Modules and functions stay short enough to read at a glance; colours have one home."""

import ast
import re
from pathlib import Path

import pytest
from matplotlib import colormaps

import sfo

ROOT = Path(sfo.__file__).parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
LONGEST_MODULE, LONGEST_FUNCTION, MOST_ARGUMENTS = 400, 80, 12
MANY_ARGUMENTS = {
    "commands/studies.py": {"reproduce"},  # One flag each.
    "commands/training.py": {"train"},  # One flag each.
    "data/load.py": {"load_benchmark"},  # What a benchmark's data can be asked for.
    "training/fit.py": {"fit"},  # Data, devices and displays, each as the command has it.
    "models/compiled/selective_scan_loops.py": {"scan_gradients"},  # Arrays alone.
}
"""Functions that may have more arguments, besides the constructors of models."""


def functions(tree):
    """Every function with the name of its class, if it is a method."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield child, isinstance(node, ast.ClassDef)


def body_lines(function):
    """Lines of a function without its signature and docstring, which are there to be read."""
    body = function.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    return function.end_lineno - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("module", MODULES)
def test_a_module_can_be_read_at_a_glance(module):
    text = (ROOT / module).read_text(encoding="utf-8")
    length = len(text.splitlines())
    assert length <= LONGEST_MODULE, f"{module} has {length} lines; split it"
    for function, is_method in functions(ast.parse(text)):
        where = f"{module}:{function.lineno} {function.name}"
        lines = body_lines(function)
        assert lines <= LONGEST_FUNCTION, f"{where} has {lines} lines; give a step its own name"
        given = function.args
        count = len([*given.posonlyargs, *given.args, *given.kwonlyargs]) - is_method
        if function.name == "__init__" and module.startswith("models/"):
            continue
        if function.name in MANY_ARGUMENTS.get(module, set()) | {"recommended"}:
            continue
        assert count <= MOST_ARGUMENTS, f"{where} has {count} arguments; group them"


def colours_named(tree):
    """Strings that are a colour or a colour map, wherever they stand, and those given as one."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(node, ast.keyword) and re.search("colou?r|cmap", node.arg or ""):
            given = node.value
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                yield given.lineno, given.value
        elif isinstance(text, str) and (
            re.fullmatch(r"#[0-9a-fA-F]{3,8}|C\d?|tab:\w+", text) or text in colormaps
        ):
            yield node.lineno, text


@pytest.mark.parametrize("module", MODULES)
def test_colours_are_chosen_in_one_place(module):
    if module != "plot/colours.py":
        found = list(colours_named(ast.parse((ROOT / module).read_text(encoding="utf-8"))))
        assert found == [], f"{module} chooses colours; take them from sfo/plot/colours.py"


def test_a_colour_is_recognised():
    text = 'a.plot(x, color="0.8"); b = ["C0", f"C{k}", "viridis", "#0b6e99"]; c = dict(cmap=None)'
    found = {name for _, name in colours_named(ast.parse(text))}
    assert found == {"0.8", "C0", "C", "viridis", "#0b6e99"}
