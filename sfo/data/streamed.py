"""Pairs of a data file that are read as they are asked for: memory holds a batch, not the set."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from sfo.data.arrays import check_finite
from sfo.data.hdf5 import DataFile
from sfo.data.pairs import Pairs, pairs
from sfo.data.rows import AT_ONCE, Rows

STREAMED = 2**29
"""Bytes of solutions from which on a part of a file is not held in memory: 512 MB."""


def is_large(file: DataFile, n_samples: int) -> bool:
    """Whether so many samples of a file take more memory than they should."""
    numbers = len(file.times) * len(file.names) * prod(file.grid.shape)
    return 4 * numbers * n_samples > STREAMED


def streamed_pairs(file: DataFile, ids: Sequence[int], **fields: Any) -> Pairs:
    """The pairs of some samples, not read yet; each is checked when it is.

    Args:
        file: The file, which must stay where it is.
        ids: The samples.
        fields: Arguments of `pairs`.
    """
    first = pairs(file[[ids[0]]], **fields)
    read = _Reader(file, first, fields)
    parts: dict[str, Any] = {
        part: Rows((len(file), *read.shapes[part]), partial(read, part), ids) for part in ("a", "u")
    }
    return replace(first, ids=tuple(ids), **parts)


class _Reader:
    """Reads samples once for both a and u, if a thread asks for the two one after the other."""

    def __init__(self, file: DataFile, like: Pairs, fields: dict[str, Any]) -> None:
        self.file, self.fields = file, fields
        self.shapes = {"a": like.a.shape[1:], "u": like.u.shape[1:]}
        self.at_once = max(1, AT_ONCE // self.shapes["u"].numel())
        self._kept, self._finite = threading.local(), set[int]()

    def __call__(self, which: str, ids: list[int]) -> Tensor:
        asked = (which, tuple(ids))
        kept, self._kept.rest = getattr(self._kept, "rest", {}), {}
        if asked in kept:
            return kept[asked]
        made = {part: torch.empty(len(ids), *shape) for part, shape in self.shapes.items()}
        # Few large samples at a time: what is read and what is kept differ in their order of axes.
        for first in range(0, len(ids), self.at_once):
            some = ids[first : first + self.at_once]
            read = pairs(self.file[some], **self.fields)
            for part, values in (("a", read.a), ("u", read.u)):
                # Once per sample: the file does not change, and the check is a fifth of the time.
                if not self._finite.issuperset(some):
                    check_finite(part, values, some, self.file.path)
                made[part][first : first + len(some)] = values
            self._finite.update(some)
        other = "u" if which == "a" else "a"
        self._kept.rest = {(other, tuple(ids)): made[other]}
        return made[which]
