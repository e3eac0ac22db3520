"""Build a kernel's modes outside of what PyTorch compiles, exports or runs without numbers."""

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import _disable_current_modes

from sfo.axis_mix import SeparableModes
from sfo.factored_mix import FactoredSpectrum
from sfo.spectral_mix import ModeSpectrum

Prepared = TypeVar("Prepared", ModeSpectrum, FactoredSpectrum, SeparableModes)
Build = Callable[[tuple[int, ...]], Prepared]
"""What makes the modes of a grid."""


def build_outside_graph(
    build: Build[Prepared], shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Prepared | None:
    """The modes as real tensors, whatever mode is on; None for a device that holds no numbers."""
    if device.type == "meta" or _fake_mode() is not None:
        return None
    # What is kept must not depend on when it was built: inference tensors could not be trained
    # with later, and an export would leave its own stand-ins here.
    with _disable_current_modes(), torch.inference_mode(False), torch.device("cpu"):
        return _uncompiled(build)(shape).to(dtype, device)


def build_stand_in(
    build: Build[Prepared], shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> Prepared:
    """The same as meta or fake tensors, for whoever runs a model on those."""
    with _disable_current_modes(), torch.device("cpu"):
        prepared = _uncompiled(build)(shape).to(dtype, torch.device("cpu"))
    mode = _fake_mode()
    if mode is not None:
        prepared = prepared.map(mode.from_tensor)
    return prepared.to(dtype, device)


def _uncompiled(build: Build[Prepared]) -> Build[Prepared]:
    """The same function, in which nothing is compiled: bases are NumPy's and SciPy's."""
    in_use = "torch._dynamo" in sys.modules  # Otherwise there is no compiler to keep out.
    return torch.compiler.disable(build) if in_use else build


def _fake_mode() -> Any:
    """The mode in which tensors have no numbers, unless it takes real ones besides, as export's."""
    from torch._guards import detect_fake_mode

    mode = detect_fake_mode()
    return None if mode is None or mode.allow_non_fake_inputs else mode


# Not for the compiler. This is the mark that `torch.compiler.disable` leaves; calling that here
# would import all of dynamo, two thirds of the package's import time. The mark keeps the compiler
# out of these functions, not out of those that they call: `_uncompiled` does.
for _function in (build_outside_graph, build_stand_in):
    _function._torchdynamo_disable = True  # type: ignore[attr-defined]
