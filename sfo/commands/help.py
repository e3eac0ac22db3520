"""What `--help` prints, and what is said of words that an option does not take."""

import contextlib
import functools
import inspect
import io
import re
import sys
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
    """A function of the command's options that returns the call to make.

    Its help has a value in words wherever the default is None. The call is made by whoever has
    parsed the options, so that an error of parsing can be told from one of the command.
    """
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
    def called(*arguments: Any, **options: Any) -> Callable[[], Any]:
        return functools.partial(command, *arguments, **options)

    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    del called.__wrapped__  # Its own annotations would be read.
    return called


def parsed(parse: Callable[[], Any]) -> Any:
    """What parsing gives; a word where a number must be is a `ValueError` of one sentence.

    Args:
        parse: Reads the options by tyro, which prints a box of lines to stderr, and exits.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return parse()
    except SystemExit:
        sentence = not_a_number(said.getvalue())
        if sentence is not None:
            raise ValueError(sentence) from None
        print(said.getvalue(), end="", file=sys.stderr)
        raise


def not_a_number(box: str) -> str | None:
    """The sentence in place of tyro's box about a word that is no number; None for other boxes.

    Example:
        >>> not_a_number("│ Error parsing --n: invalid literal for int() with base 10: 'ten' │")
        "`--n` must be a whole number, got 'ten'."
    """
    text = re.sub(r"\s+", " ", re.sub("[│╭╮╰╯─]", " ", box))
    option = re.search(r"Error parsing (\S+):", text)
    value = re.search(
        r"invalid literal for (int)\(\) with base 10: (\S.*?['\"])(?: |$)"
        r"|could not convert string to (float): (\S.*?['\"])(?: |$)",
        text,
    )
    if option is None or value is None:
        return None
    rule = "a whole number" if value[1] else "a number"
    return f"`{option[1]}` must be {rule}, got {value[2] or value[4]}."
