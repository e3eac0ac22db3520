"""Which settings a model has, by the arguments of its constructor, and whether values fit them."""

import inspect
import json
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from sfo.models.presets import accepted
from sfo.registry import MODELS

CHANNELS = ("in_channels", "out_channels", "n_dim")
"""Arguments of every model that the data decide."""
MAX_LAYERS = 10_000
"""Layers that are built in seconds; a thousand times as many would fill the memory for an hour."""


def check_settings(model: str, settings: dict[str, Any]) -> None:
    """Refuse settings that the model's constructor does not have, or of another type."""
    MODELS[model]  # A wrong name is answered with the right ones.
    if not settings:
        return
    known = model_settings(model)
    takes_any = accepted(MODELS[model], settings, by_any=list(settings))
    for key, value in settings.items():
        if key not in known and key in takes_any and key not in CHANNELS:
            continue
        if key not in known:
            raise ValueError(
                f"Unknown setting {key!r} of {model}; known: {', '.join(sorted(known))}."
            )
        try:
            # As JSON: that has lists where the constructor has tuples.
            TypeAdapter(known[key]).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            rule = error.errors()[0]["msg"].replace("Input should", "must")
            raise ValueError(f"`{key}` of {model} {rule}, got {value!r}.") from None
    layers = settings.get("n_layers")
    if isinstance(layers, int) and layers > MAX_LAYERS:
        raise ValueError(f"`n_layers` of {model} must be at most {MAX_LAYERS}, got {layers}.")


def model_settings(model: str) -> dict[str, Any]:
    """The settings of a model and their types, from the arguments of its class or function."""
    kind: Any = MODELS[model]
    try:
        hints = get_type_hints(kind.__init__ if inspect.isclass(kind) else kind)
    except NameError:  # Annotations of a user's module that only a type checker can resolve.
        hints = {}
    parameters = inspect.signature(kind).parameters.values()
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {name: hints.get(name, Any) for name in named if name not in CHANNELS}
