"""Refusing values in one sentence: the argument, the rule, the value received, the way out."""

import operator
from collections.abc import Collection
from typing import get_args


def check_choice(name: str, value: object, choices: object) -> None:
    """Refuse a value that is not among the choices, a `Literal` or a collection.

    Example:
        >>> from typing import Literal
        >>> check_choice("norm", "batch", Literal["layer", None])
        Traceback (most recent call last):
        ValueError: `norm` must be one of 'layer', None, got 'batch'.
    """
    known = tuple(choices) if isinstance(choices, Collection) else get_args(choices)
    if value not in known:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, known))}, got {value!r}.")


def check_at_least(least: float, **values: float | None) -> None:
    """Refuse numbers below a bound; None stands for a number that is not given.

    Example:
        >>> check_at_least(1, n_layers=4, rank=0)
        Traceback (most recent call last):
        ValueError: `rank` must be at least 1, got 0.
    """
    for name, value in values.items():
        if value is None:
            continue
        try:
            is_good = bool(value >= least)
        except (TypeError, ValueError, RuntimeError):  # No number, or several.
            is_good = False
        if not is_good:
            raise ValueError(f"`{name}` must be at least {least}, got {value!r}.")


def check_whole(least: int, **values: int) -> None:
    """Refuse what is no whole number, or below a bound.

    Example:
        >>> check_whole(1, n_layers=2.0)
        Traceback (most recent call last):
        ValueError: `n_layers` must be a whole number, got 2.0.
    """
    for name, value in values.items():
        try:
            operator.index(value)
        except TypeError:
            raise ValueError(f"`{name}` must be a whole number, got {value!r}.") from None
    check_at_least(least, **values)


def install_command(extra: str) -> str:
    """The command that installs an extra of this package, from a clone of it.

    Example:
        >>> install_command("peers")
        "pip install '.[peers]' in the clone"
    """
    return f"pip install '.[{extra}]' in the clone"
