"""What rows and columns are called in tables and figures."""

from sfo.registry import BENCHMARKS, MODELS


def title(name: str) -> str:
    """The title of a registered benchmark or model that has one; otherwise the name itself.

    Example:
        >>> title("allen_cahn, FNO"), title("n=125")
        ('1D Allen–Cahn, FNO', 'n=125')
    """
    if ", " in name:
        return ", ".join(map(title, name.split(", ")))
    for registry in (BENCHMARKS, MODELS):
        if name in registry:
            return getattr(registry[name], "title", name)
    return name


def unbroken(text: str) -> str:
    """A title without the soft hyphens at which a narrow column may break it."""
    return text.replace("\u00ad", "")


def drawn(text: str) -> str:
    """A name as matplotlib draws it: its dollars are dollars, not the begin of a formula.

    Example:
        >>> print(drawn("cost in $, from $1"))
        cost in \\$, from \\$1
    """
    return text.replace("$", r"\$")
