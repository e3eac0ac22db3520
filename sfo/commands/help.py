"""What `--help` prints, and the error for a word that an option does not take."""

import contextlib
import functools
import inspect
import io
import re
import sys
from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import tyro

IF_LEFT_OUT = re.compile(
    r"[;,:] if left out, (.+?)(?=;|\.?$)"  # "; if left out, runs/NAME.png."
    r"|[;,:] ([^;,:]+) if left out"  # ", 0 if left out."
)
"""How an argument's text says what its default None stands for."""


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
    match = IF_LEFT_OUT.search(text)
    return None if match is None else (match[1] or match[2]).strip()


def without_default(text: str) -> str:
    """An argument's text without what it says about leaving it out, which help prints behind it.

    Example:
        >>> without_default("The benchmark, allen_cahn if left out; `sfo list` names them.")
        'The benchmark; `sfo list` names them.'
        >>> without_default("The picture; if left out, runs/NAME.png.")
        'The picture.'
    """
    return IF_LEFT_OUT.sub("", text)


def placeholder(annotation: Any) -> str | None:
    """What stands for the value of an option that may be None; None for other annotations.

    Example:
        >>> placeholder(int | None), placeholder(Literal["smoke", "desk"] | None), placeholder(int)
        ('INT', '{smoke,desk}', None)
    """
    kinds = get_args(_bare(annotation))
    if get_origin(_bare(annotation)) not in (Union, UnionType) or type(None) not in kinds:
        return None
    return "|".join(_word(_bare(kind)) for kind in kinds if kind is not type(None))


def _bare(annotation: Any) -> Any:
    """The type without what `Annotated` says of it."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _word(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"{{{','.join(map(str, get_args(kind)))}}}"
    return "{True,False}" if kind is bool else kind.__name__.upper()


def option_help(text: str, hint: str, annotation: Any) -> Any:
    """What tyro prints of an option: its text, its default in words, what stands for its value."""
    return tyro.conf.arg(help=text, help_behavior_hint=hint, metavar=placeholder(annotation))


def with_resolved_defaults(command: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the command's options that returns the call to make.

    Its help has a value in words wherever the default is None or an empty list. The call is made by
    whoever has parsed the options, so that an error of parsing can be told from one of the command.
    """
    texts = argument_texts(command.__doc__)
    signature = inspect.signature(command)

    def explained(parameter: inspect.Parameter) -> inspect.Parameter:
        repeatable = tyro.conf.UseAppendAction in getattr(parameter.annotation, "__metadata__", ())
        required = parameter.default is parameter.empty
        if repeatable or not (required or parameter.default in (None, [])):
            return parameter
        text = texts.get(parameter.name, "")
        value = value_if_left_out(text)
        hint = "(optional)" if value is None else f"(default: {value})"
        hint = "(required)" if required else hint
        about = option_help(without_default(text), hint, parameter.annotation)
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
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            return parse()
    except SystemExit:
        sentence = not_a_number(printed.getvalue())
        if sentence is not None:
            raise ValueError(sentence) from None
        print(printed.getvalue(), end="", file=sys.stderr)
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
