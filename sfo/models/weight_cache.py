"""A cache of what is built from weights, valid while they stay as they are."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from sfo.transforms import needs_plain_operators

LIMIT = 64 * 2**20
"""Bytes that the cache of one kernel takes at most: 256 MB for a model of four layers."""

T = TypeVar("T")


class WeightCache:
    """Holds one value, and the weights that it was built from.

    The weights are compared number by number, so that no way to change them goes unnoticed; on
    other devices than the CPU, where that would wait for the device, by torch's own count of
    changes.

    Args:
        limit: Values of more bytes than this are not kept.

    Example:
        >>> cache, weight = WeightCache(), torch.ones(2)
        >>> with torch.no_grad():
        ...     cache.get([weight], "sum", 8, lambda: float(weight.sum()))
        ...     weight.data += 1
        ...     cache.get([weight], "sum", 8, lambda: float(weight.sum()))
        2.0
        4.0
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._entry: tuple[Any, list[Tensor | None], Any] | None = None

    def clear(self) -> None:
        """Forget the value."""
        self._entry = None

    def get(
        self, weights: Sequence[Tensor | None], key: Any, size: int, build: Callable[[], T]
    ) -> T | None:
        """The value for these weights, built now if need be; None where it is not to be kept.

        Args:
            weights: What the value depends on.
            key: What else it depends on.
            size: The bytes of the value.
            build: Makes the value.
        """
        if size > self.limit or torch.is_grad_enabled() or not _are_plain(weights):
            return None
        stamp = (key, [None if w is None else (w.data_ptr(), w.dtype, w._version) for w in weights])
        if self._entry is not None and self._entry[0] == stamp and _equal(self._entry[1], weights):
            return self._entry[2]
        value = build()
        self._entry = (stamp, [_copy(w) for w in weights], value)
        return value

    def __deepcopy__(self, memo: dict[int, Any]) -> "WeightCache":
        return WeightCache(self.limit)

    def __reduce__(self) -> tuple[type["WeightCache"], tuple[int]]:
        return WeightCache, (self.limit,)


def _are_plain(weights: Sequence[Tensor | None]) -> bool:
    """Whether these are tensors with numbers of their own: not traced, fake, meta or sharded."""
    found = [w for w in weights if w is not None]
    return not needs_plain_operators(*found) and not any(w.is_inference() for w in found)


def _copy(weight: Tensor | None) -> Tensor | None:
    return None if weight is None or weight.device.type != "cpu" else weight.detach().clone()


def _equal(copies: Sequence[Tensor | None], weights: Sequence[Tensor | None]) -> bool:
    pairs = zip(copies, weights, strict=True)
    return all(copy is None or w is None or torch.equal(copy, w) for copy, w in pairs)
