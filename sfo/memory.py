"""Memory that is free, and a refusal of a model that would not fit, before it is allocated."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

Model = TypeVar("Model", bound=nn.Module)
LARGE_TENSOR = 2**26
"""Bytes of a tensor from which on the free memory is looked up."""


def free_memory() -> float:
    """Bytes that a process may still use, the least of machine and container; inf: unknown."""
    found = [math.inf]
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        found += [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable")]
        group = Path("/sys/fs/cgroup")
        most, used = ((group / f"memory.{what}").read_text() for what in ("max", "current"))
        if most.strip() != "max":
            found.append(max(0, int(most) - int(used)))
    except (OSError, ValueError):
        pass
    return min(found)


def build_within_memory(make: Callable[[], Model]) -> Model:
    """What `make` builds, or a MemoryError before there is a tensor that does not fit.

    Linux promises more memory than there is, and ends the process that then uses it. So a model
    with a large tensor is built without its numbers first, to know its size.

    Args:
        make: Builds a model; it is called again from the beginning for a large one.

    Example:
        >>> build_within_memory(lambda: nn.Linear(10**9, 10**9))
        Traceback (most recent call last):
        MemoryError: ...
    """
    try:
        with _Sizes(_stop):
            return make()
    except _LargeTensor:
        _check_fits(_size_without_numbers(make))
    with _Sizes(_check_fits):
        return make()


def check_training_fits(model: nn.Module) -> None:
    """Refuse a model whose gradients and one running mean of them exceed the free memory."""
    needed, free = 2 * weight_bytes(model), free_memory()
    if needed > free:
        raise ValueError(
            f"The model does not fit into memory for training: gradients and their means take "
            f"{size_text(needed)} or more, and {size_text(free)} are free; make it smaller."
        )


def weight_bytes(model: nn.Module) -> int:
    """Bytes of all parameters and buffers."""
    return sum(t.numel() * t.dtype.itemsize for t in (*model.parameters(), *model.buffers()))


def _size_without_numbers(make: Callable[[], nn.Module]) -> int:
    """Bytes of a model's weights; 0 if its constructor needs numbers, which cannot be told."""
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            return weight_bytes(make())
    except Exception:
        return 0


class _LargeTensor(BaseException):
    """Not an Exception, so that no constructor catches it."""


def _stop(size: int) -> None:
    raise _LargeTensor


def _check_fits(size: int) -> None:
    free = free_memory()
    if size > free:
        raise MemoryError(f"It takes {size_text(size)}, and {size_text(free)} are free.")


def size_text(size: float) -> str:
    """Bytes as GB or TB.

    Example:
        >>> size_text(2.5e9)
        '2.5 GB'
    """
    unit, name = (1e12, "TB") if size >= 1e12 else (1e9, "GB")
    return f"{size / unit:,.1f} {name}"


class _Sizes(TorchDispatchMode):
    """Calls `seen` with the bytes of every large CPU tensor, before it is made."""

    def __init__(self, seen: Callable[[int], None]) -> None:
        super().__init__()
        self.seen = seen

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        shape = args[0] if args and isinstance(args[0], (list, tuple)) else ()
        if shape and all(isinstance(n, int) for n in shape):
            device = torch.device(kwargs.get("device") or "cpu")
            size = math.prod(shape) * (kwargs.get("dtype") or torch.get_default_dtype()).itemsize
            if size >= LARGE_TENSOR and device.type == "cpu":
                self.seen(size)
        return func(*args, **kwargs)
