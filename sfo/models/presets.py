"""The paper's data as a model sees them: one table for the presets of all models."""

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Any

PAPER_SHAPES: dict[str, dict[str, int]] = {
    **{
        name: dict(in_channels=1, out_channels=101, n_dim=1)
        for name in ("allen_cahn", "cahn_hilliard", "diffusion_reaction", "diffusion_sorption")
    },
    # The water's height alone, at the first and at all 101 steps.
    "shallow_water": dict(in_channels=1, out_channels=101, n_dim=2),
    # Two input and eight output steps of the six components of (E, H).
    "maxwell": dict(in_channels=12, out_channels=48, n_dim=3),
}
"""Channels and axes of the paper's six benchmarks."""

ONE_AXIS = tuple(name for name, shape in PAPER_SHAPES.items() if shape["n_dim"] == 1)
"""The benchmarks on one axis, which share most settings."""


def has_paper(kind: Any, benchmark: str | None) -> bool:
    """Whether the paper has settings of a model for a benchmark."""
    return getattr(kind, "PAPER", None) is not None and benchmark in PAPER_SHAPES


def paper_settings(kind: Any, benchmark: str | None) -> dict[str, Any]:
    """The paper's settings of a model for a benchmark where they differ from the constructor's."""
    name = getattr(kind, "__name__", str(kind))
    if getattr(kind, "PAPER", None) is None:
        raise ValueError(
            f"The paper has no {name}, so it has no settings for it; use preset='recommended' or "
            "'default'."
        )
    if benchmark is None or benchmark not in PAPER_SHAPES:
        data = "data of your own" if benchmark is None else repr(benchmark)
        raise ValueError(
            f"The paper has no {name} for {data}; it has {', '.join(sorted(PAPER_SHAPES))}. Use "
            "preset='recommended' or 'default'."
        )
    return dict(kind.PAPER.get(benchmark, {}))


def earlier_settings(kind: Any, benchmark: str | None) -> dict[str, Any]:
    """What version 0.3 recommended for a benchmark, kept because published numbers rest on it."""
    earlier = getattr(kind, "RECOMMENDED_0_3", None)
    if earlier is None:
        name = getattr(kind, "__name__", str(kind))
        raise ValueError(
            f"Version 0.3 had no recommended settings for {name}; use preset='recommended'."
        )
    return {**earlier["all"], **earlier.get(benchmark or "", {})}


def accepted(function: Any, facts: dict[str, Any], *, by_any: Sequence[str] = ()) -> dict[str, Any]:
    """Those facts that a function has an argument for.

    Args:
        function: A class or function.
        facts: Values by the names of arguments.
        by_any: Facts that are also given to a function that takes any keyword.

    Example:
        >>> accepted(lambda n_dim, **settings: None, dict(n_dim=2, grid=3, size=4), by_any=["size"])
        {'n_dim': 2, 'size': 4}
    """
    parameters = signature(function).parameters
    any_keyword = any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values())
    return {k: v for k, v in facts.items() if k in parameters or (any_keyword and k in by_any)}
