"""What the commands print goes through here."""

from typing import Any

from rich.console import Console


def plain_console(**options: Any) -> Console:
    """A console that prints text as it is: brackets in a path or a message are no markup."""
    return Console(markup=False, highlight=False, **options)
