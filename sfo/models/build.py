"""From a model's name and a benchmark's to a model."""

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from sfo.models.operator import Operator
from sfo.registry import MODELS

Preset = Literal["paper", "recommended", "default"]


def installed(name: str) -> bool:
    """Whether what a registered model needs is installed; peers need not be."""
    kind: type[Operator] = MODELS[name]
    return kind.available()


def build_model(
    name: str,
    benchmark: str,
    *,
    preset: Preset = "paper",
    in_channels: int | None = None,
    out_channels: int | None = None,
    n_dim: int | None = None,
    train_shape: Sequence[int] | None = None,
    **settings: Any,
) -> Operator:
    """A model for a benchmark.

    Args:
        name: A registered model.
        benchmark: One of the paper's six benchmarks.
        preset: "paper": the paper's settings; "recommended": our own, where the model has them;
            "default": the constructor's.
        in_channels, out_channels, n_dim: Of the data, where they differ from the paper's.
        train_shape: The grid of the data, for models that need it.
        settings: Arguments of the model's constructor that override the preset.

    Example:
        >>> model = build_model("sfo", benchmark="diffusion_sorption")
        >>> sum(p.numel() for p in model.parameters())
        94117
    """
    kind: type[Operator] = MODELS[name]
    if benchmark not in kind.PAPER:
        raise ValueError(
            f"{name} does not serve {benchmark!r}; it serves {', '.join(sorted(kind.PAPER))}."
        )
    paper = dict(kind.PAPER[benchmark])
    channels: dict[str, Any] = dict(
        in_channels=paper.pop("in_channels"),
        out_channels=paper.pop("out_channels"),
        n_dim=paper.pop("n_dim", 1),
    )
    given = dict(in_channels=in_channels, out_channels=out_channels, n_dim=n_dim)
    channels.update({k: v for k, v in given.items() if v is not None})
    if train_shape is not None and "train_shape" in inspect.signature(kind).parameters:
        settings = {"train_shape": tuple(train_shape), **settings}
    if preset == "paper":
        if train_shape is not None:
            paper = kind.on_grid(paper, train_shape)
        return kind(**channels, **{**paper, **settings})
    if preset == "default":
        return kind(**channels, **settings)
    recommended = getattr(kind, "recommended", None)
    if recommended is None:
        raise ValueError(f"{name} has no recommended settings; use preset='paper' or 'default'.")
    return recommended(**channels, **{**kind.RECOMMENDED.get(benchmark, {}), **settings})
