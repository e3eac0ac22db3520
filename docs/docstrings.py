"""Our docstrings as the API's pages read them: `Example:` is a section, `a, u:` two arguments."""

import re
from typing import Any

import griffe


def several(match: re.Match[str]) -> str:
    """One line for each of `a, b: Text.`, with the text of all."""
    return "\n".join(f"    {name}: {match[2]}" for name in match[1].split(", "))


class Sections(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.M)
        if obj.is_class and any(str(base) == "Config" for base in obj.bases):
            # The signature of a pydantic model is not in its source; its fields are.
            text = text.replace("Args:\n", "Attributes:\n")
        head, args, rest = text.partition("Args:\n")
        rest = re.sub(r"^ {4}(\w+(?:, \w+)+): (.*(?:\n {6,}.*)*)", several, rest, flags=re.M)
        obj.docstring.value = head + args + rest
