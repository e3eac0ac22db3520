"""What `--help` prints: for an option that is left out, the value that it then has."""

import functools
import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

import tyro


def argument_texts(docstring: str | None) -> dict[str, str]:
    """The texts of a docstring's `Args`, each on one line.

    Example:
        >>> argument_texts("Do it.\\n\\n    Args:\\n        n: How many,\\n            in all.\\n")
        {'n': 'How many, in all.'}
    """
    found = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", docstring or "", re.M)
    return {name: re.sub(r"\s+", " ", text) for name, text in found}


def value_if_left_out(text: str) -> str | None:
    """What an argument's text says about leaving it out.

    Example:
        >>> value_if_left_out("Seed of the data, 0 if left out.")
        '0'
        >>> value_if_left_out("The picture; if left out, runs/NAME.png.")
        'runs/NAME.png'
    """
    after = re.search(r"if left out, (.+?)(?:;|\.?$)", text)
    before = re.search(r"([^;,:]+) if left out", text)
    match = after or before
    return None if match is None else match[1].strip()


def with_resolved_defaults(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command, whose help has a value in words wherever the default is None."""
    texts = argument_texts(command.__doc__)
    signature = inspect.signature(command)

    def explained(parameter: inspect.Parameter) -> inspect.Parameter:
        if parameter.default is not None:
            return parameter
        value = value_if_left_out(texts.get(parameter.name, ""))
        hint = "(optional)" if value is None else f"(default: {value})"
        about: Any = tyro.conf.arg(help_behavior_hint=hint)
        return parameter.replace(annotation=Annotated[parameter.annotation, about])

    parameters = [explained(parameter) for parameter in signature.parameters.values()]

    @functools.wraps(command)
    def called(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, **options)

    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    del called.__wrapped__  # Its own annotations would be read.
    return called
