"""Plugins: users' own modules that register bases, models, benchmarks, metrics and studies.

A plugin is a Python file or module; importing it registers what it has. It is found by its name,
as in `sfo train --plugin my_file.py`, or by the entry points of an installed package:

    [project.entry-points."sfo.plugins"]
    my_plugin = "my_package.my_module"

A run remembers the plugins that were loaded by name, and loads them again when it is resumed or
evaluated: the code of a plugin runs, so open runs of others with care.
"""

import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from sfo.files import sha256

GROUP = "sfo.plugins"

_by_name: dict[str, ModuleType] = {}
_installed_are_loaded = False


def load(plugin: str | os.PathLike[str]) -> str:
    """Import a plugin, once; its name for `loaded`, with the whole path of a file.

    Args:
        plugin: A Python file, or the name of a module that can be imported.
    """
    text = os.fspath(plugin)
    path = Path(text).expanduser()
    is_file = text.endswith(".py") or os.sep in text
    name = str(path.resolve()) if is_file else text
    if name in _by_name:
        return name
    if is_file and not path.is_file():
        raise ValueError(f"No plugin: the file {text} does not exist.")
    try:
        _by_name[name] = _import_file(path.resolve()) if is_file else importlib.import_module(text)
    except Exception as error:
        raise ValueError(f"The plugin {text} fails to import: {_first_line(error)}.") from error
    return name


def load_all(plugins: Iterable[str]) -> None:
    """Import several."""
    for plugin in plugins:
        load(plugin)


def loaded() -> list[str]:
    """The plugins that were loaded by name, in order."""
    return list(_by_name)


def load_installed() -> None:
    """Import the plugins of installed packages, once; one that fails is left out with a warning."""
    global _installed_are_loaded
    if _installed_are_loaded:
        return
    _installed_are_loaded = True
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(
                f"The installed plugin {entry.name} ({entry.value}) fails to import and is left "
                f"out: {_first_line(error)}.",
                stacklevel=2,
            )


def importable(kind: Any) -> bool:
    """Whether another process finds a class or function: not if it is from a notebook or script."""
    return kind.__module__ != "__main__" and "<locals>" not in kind.__qualname__


def _import_file(path: Path) -> ModuleType:
    """The module of a file, under a name that is the same in every process."""
    mark = sha256(str(path))[:8]
    name = f"sfo_plugin_{path.stem}_{mark}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # First, because dataclasses and pickles look their module up.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _first_line(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": .")
