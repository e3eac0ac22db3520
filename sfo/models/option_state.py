"""What weights rely on without showing it in names or shapes, to travel in a `state_dict`."""

import json
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def pack(content: Mapping[str, Any]) -> Tensor:
    """JSON as bytes, in a tensor of uint8.

    A tensor goes wherever weights go: through safetensors, `torch.save` and other hands.

    Example:
        >>> unpack(pack(dict(options=dict(padding=2))))
        {'options': {'padding': 2}}
    """
    text = json.dumps(dict(content))
    return torch.tensor(list(text.encode()), dtype=torch.uint8, device="cpu")


def unpack(state: Tensor) -> dict[str, Any]:
    """What `pack` was given; or `train_shape` alone, which is all that SFO of version 0.3 has.

    Whoever converts all tensors of a state dict to another precision, or takes the mean of
    several, does so with this one too: the bytes stay what they were.
    """
    numbers = state.flatten().tolist()
    if len(numbers) < len(pack({"options": {}})):
        return dict(train_shape=[int(n) for n in numbers] or None)
    try:
        content = json.loads(bytes(int(n) for n in numbers))
        if not isinstance(content["options"], dict):
            raise TypeError
    except (ValueError, LookupError, TypeError):
        raise ValueError(
            "The weights do not say what options they were trained with: their `_extra_state` is "
            "damaged, or a mean of several. Take that of one model."
        ) from None
    return content


def check_options(found: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Refuse weights that were trained with other options than a model has.

    Args:
        found: The options of the weights.
        own: Those of the model. One that is not known on both sides was added by one of the
            versions.
    """
    for name, value in own.items():
        value = list(value) if isinstance(value, tuple) else value
        if found.get(name, value) != value:
            raise ValueError(
                f"The weights were trained with {name}={found[name]!r}, but this model has "
                f"{name}={value!r}: build it as it was, or load them all the same with "
                "load_state_dict(…, check_options=False)."
            )
