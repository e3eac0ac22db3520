"""What the weights of kernels rely on, to travel with them in a `state_dict`."""

import json
from dataclasses import asdict

import torch
from torch import Tensor

from sfo.models.kernel_modes import KernelModes

FREE_OPTIONS = ("transfer", "transform")
"""Options that may be changed after training: the weights mean the same."""


def kernel_state(modes: KernelModes) -> Tensor:
    """The training grid and the options: JSON as bytes, in a tensor of uint8.

    A tensor goes wherever weights go: through safetensors, `torch.save` and other hands.

    Example:
        >>> from sfo.models.kernel_modes import KernelOptions
        >>> first = KernelModes(KernelOptions(n_modes=4), train_shape=(32,))
        >>> second = KernelModes(KernelOptions(n_modes=4))
        >>> restore_kernel_state(second, kernel_state(first))
        >>> second.train_shape
        (32,)
    """
    entries = {k: v for k, v in asdict(modes.options).items() if k not in FREE_OPTIONS}
    text = json.dumps(dict(version=1, train_shape=modes.train_shape, options=entries))
    return torch.tensor(list(text.encode()), dtype=torch.uint8, device="cpu")


def restore_kernel_state(modes: KernelModes, state: Tensor, *, check: bool = True) -> None:
    """Take over the training grid of weights; refuse weights that rely on other options.

    Args:
        modes: The modes that the weights are loaded for.
        state: What `kernel_state` gave; or the training grid alone, as version 0.3 has it.
        check: Whether to refuse other options.
    """
    if state.dtype != torch.uint8:
        modes.train_shape = tuple(state.tolist()) or None
        return
    found, own = json.loads(bytes(state.tolist())), asdict(modes.options)
    # An option that is not known on both sides was added by one of the versions.
    for name, value in found["options"].items() if check else ():
        if own.get(name, value) != value:
            raise ValueError(
                f"The weights were trained with {name}={value!r}, but this model has "
                f"{name}={own[name]!r}: build it as it was, or load them all the same with "
                "load_state_dict(…, check_options=False)."
            )
    shape = found["train_shape"]
    modes.train_shape = None if shape is None else tuple(shape)
