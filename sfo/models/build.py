"""From a model's name and what is known of the data to a model."""

import inspect
from collections.abc import Sequence
from typing import Any, Literal

from torch import nn

from sfo.checks import install_command
from sfo.models.presets import PAPER_SHAPES, accepted, earlier_settings, paper_settings
from sfo.registry import MODELS

Preset = Literal["paper", "recommended", "default", "recommended-0.3"]
SHAPE = ("in_channels", "out_channels", "n_dim")


def installed(name: str) -> bool:
    """Whether what a registered model needs is installed; peers need not be."""
    available = getattr(MODELS[name], "available", None)
    return available is None or available()


def build_model(
    name: str,
    benchmark: str | None = None,
    *,
    preset: Preset = "paper",
    in_channels: int | None = None,
    out_channels: int | None = None,
    n_dim: int | None = None,
    train_shape: Sequence[int] | None = None,
    out_fields: int | None = None,
    carried: Sequence[int | None] | None = None,
    periodic: bool | None = None,
    shift_invariant: bool | None = None,
    **settings: Any,
) -> nn.Module:
    """A model for a data set: a preset, fitted to the data, with some settings changed.

    A preset decides settings, never whether a model may be used. What the data decide is passed
    to a model that asks for it by the name of an argument: a registered class or function gets
    those of `in_channels`, `out_channels`, `n_dim`, `train_shape`, `out_fields` and `carried` that
    it takes, and its method `recommended`, if it has one, `periodic` and `shift_invariant` as well.

    Args:
        name: A registered model.
        benchmark: The paper's benchmark whose settings to take; None: data that it does not have.
        preset: "paper": the paper's settings, which exist for its six benchmarks; "recommended":
            our own, or the constructor's where a model has no better ones; "default": the
            constructor's; "recommended-0.3": our own for SFO as version 0.3 had them. All with no
            more modes than the grid has points.
        in_channels, out_channels, n_dim: Those of the data; None: those of the paper's benchmark.
        train_shape: The grid of the data, for models that need it.
        out_fields: Fields of the solution, whose frames lie side by side in the channels.
        carried: For each of them the input channel that holds its last known frame, or None.
        periodic: Whether the data are periodic.
        shift_invariant: Whether the problem is the same at every place.
        settings: Arguments of the model's constructor that override the preset.

    Example:
        >>> model = build_model("sfo", benchmark="diffusion_sorption")
        >>> sum(p.numel() for p in model.parameters())
        94117
        >>> model = build_model("fno", preset="default", in_channels=3, out_channels=2, n_dim=2)
    """
    kind: Any = MODELS[name]
    if not installed(name):
        raise ValueError(
            f"The model {name} needs packages that are not installed: "
            f"{install_command(kind.extra)}."
        )
    given = dict(zip(SHAPE, (in_channels, out_channels, n_dim), strict=True))
    given = {k: v for k, v in given.items() if v is not None}
    shape = {**PAPER_SHAPES.get(benchmark or "", {}), **given}
    missing = [key for key in SHAPE if key not in shape]
    if missing:
        raise ValueError(
            f"`{missing[0]}` is needed for a model without a benchmark of the paper's, got "
            f"benchmark={benchmark!r}; known: {', '.join(sorted(PAPER_SHAPES))}."
        )
    facts: dict[str, Any] = accepted(kind, shape, by_any=SHAPE)
    if train_shape is not None:
        facts |= accepted(kind, dict(train_shape=tuple(train_shape)))
    for fact in (dict(out_fields=out_fields), dict(carried=carried)):
        facts |= accepted(kind, {k: v for k, v in fact.items() if v is not None})
    recommended = getattr(kind, "recommended", None) if preset == "recommended" else None
    chosen: dict[str, Any] = {}
    if preset == "paper":
        chosen = paper_settings(kind, benchmark)
    elif preset == "recommended-0.3":
        chosen = earlier_settings(kind, benchmark)
    elif recommended is not None:
        chosen = dict(getattr(kind, "RECOMMENDED", {}).get(benchmark, {}))
    if recommended is None:
        return kind(**{**_on_grid(kind, chosen, train_shape), **facts, **settings})
    known = dict(periodic=periodic, shift_invariant=shift_invariant)
    facts |= accepted(recommended, {k: v for k, v in known.items() if v is not None})
    return recommended(**{**chosen, **facts, **settings})


def _on_grid(kind: Any, settings: dict[str, Any], shape: Sequence[int] | None) -> dict[str, Any]:
    """Settings as a grid can bear them, of which only those are added that the grid changes."""
    if shape is None or not hasattr(kind, "on_grid"):
        return settings
    parameters = inspect.signature(kind).parameters
    fitted = kind.on_grid(settings, shape)
    return {
        k: v
        for k, v in fitted.items()
        if k in settings or k not in parameters or v != parameters[k].default
    }
