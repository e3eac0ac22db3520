"""Our docstrings as the API's pages read them.

`Example:` is a section, `a, u:` two arguments, and the public name of a class in `…` is a link to
its entry.
"""

import re
import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.insert(0, str(Path(__file__).parent))
from assemble import packages, public_names

CLASSES = {
    name: f"{package}.{name}"
    for package in reversed(packages())
    for name in public_names(package)
    if re.search(r"[a-z]", name) and name[0].isupper()
}
"""Where the entry of a class is; the first package that has it."""


def several(match: re.Match[str]) -> str:
    """One line for each of `a, b: Text.`, with the text of all."""
    return "\n".join(f"    {name}: {match[2]}" for name in match[1].split(", "))


def linked(match: re.Match[str], obj: griffe.Object) -> str:
    """`Name` as a link to its entry, unless this is the entry."""
    there = CLASSES.get(match[1])
    return match[0] if there is None or match[1] == obj.name else f"[{match[0]}][{there}]"


class Sections(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        text = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.M)
        if obj.is_class and any(str(base) == "Config" for base in obj.bases):
            # The signature of a pydantic model is not in its source; its fields are.
            text = text.replace("Args:\n", "Attributes:\n")
        text = re.sub(r"(?<![`\[])`(\w+)`(?![`\]])", lambda m: linked(m, obj), text)
        head, args, rest = text.partition("Args:\n")
        rest = re.sub(r"^ {4}(\w+(?:, \w+)+): (.*(?:\n {6,}.*)*)", several, rest, flags=re.M)
        obj.docstring.value = head + args + rest
