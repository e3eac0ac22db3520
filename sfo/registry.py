"""Names for the things that users pick by name: bases, models, benchmarks, metrics and studies.

Users' own modules register theirs, see `sfo.plugins`.
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """A table from names to objects that answers a wrong name with the right ones.

    Args:
        kind: What the objects are, for messages.
        home: Module that registers the package's own objects when it is imported. It is imported
            when a name is first missing or all are listed, so that a lookup gives the same answer
            whatever else was imported before.

    Example:
        >>> COLOURS = Registry("colour")
        >>> @COLOURS.register("red")
        ... def red():
        ...     return 0xFF0000
        >>> COLOURS["red"]()
        16711680
        >>> COLOURS["rde"]
        Traceback (most recent call last):
        ValueError: Unknown colour 'rde'; known: red. Did you mean 'red'?
    """

    def __init__(self, kind: str, home: str | None = None) -> None:
        self.kind = kind
        self.home = home
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that files what it decorates under `name`.

        A name is given once; the same class or function, defined again as in a notebook, takes
        the place of the former one.
        """

        def file(entry: T) -> T:
            if name in self._entries and _home(self._entries[name]) != _home(entry):
                raise ValueError(f"{self.kind} {name!r} is registered already.")
            self._entries[name] = entry
            return entry

        return file

    def __getitem__(self, name: str) -> T:
        if name in self:
            return self._entries[name]
        raise ValueError(unknown_name(self.kind, name, self.names()))

    def __contains__(self, name: object) -> bool:
        if name not in self._entries:
            from sfo import plugins

            self._load_home()
            plugins.load_installed()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load_home()
        return sorted(self._entries)

    def in_order(self) -> list[str]:
        """All names, in the order in which they were registered."""
        self._load_home()
        return list(self._entries)

    def _load_home(self) -> None:
        if self.home is not None:
            importlib.import_module(self.home)


def unknown_name(kind: str, name: object, known: Sequence[str]) -> str:
    """One sentence for a wrong name: the right ones, and the nearest of them.

    Example:
        >>> unknown_name("basis", "ubs", ["fourier", "usb"])
        "Unknown basis 'ubs'; known: fourier, usb. Did you mean 'usb'?"
    """
    message = f"Unknown {kind} {name!r}; known: {', '.join(known) or 'none'}."
    close = get_close_matches(str(name), known, n=1)
    return f"{message} Did you mean {close[0]!r}?" if close else message


def _home(entry: Any) -> tuple[str, str]:
    """Where a class or function, or the class of an object, is defined."""
    kind = entry if hasattr(entry, "__qualname__") else type(entry)
    return kind.__module__, kind.__qualname__


BASES: Registry[Callable[..., Any]] = Registry("basis", home="sfo.bases")
"""Functions `(n, n_modes) → (n_modes, n)` with orthonormal rows, see `sfo.bases`."""
MODELS: Registry[Any] = Registry("model", home="sfo.models")
"""Classes, or functions that give an `nn.Module`, see `sfo.models.build.build_model`."""
BENCHMARKS: Registry[Any] = Registry("benchmark", home="sfo.data")
"""Instances of `sfo.data.benchmarks.Benchmark`, with their default options."""
METRICS: Registry[Any] = Registry("metric", home="sfo.evaluation")
"""Functions of (prediction, truth, context), or `sfo.evaluation.Metric`."""
STUDIES: Registry[Any] = Registry("study", home="sfo.experiments.studies")
"""Functions that list the cells of a table, or `sfo.experiments.study.Study`."""
