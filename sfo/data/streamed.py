"""Pairs of a data file that are read as they are asked for: memory holds a batch, not the set.

Besides the batch, the samples that were read first are kept as far as a fixed amount of memory
goes. In an epoch every sample is read once, so it does not matter which ones are kept, and none
is given up for another.
"""

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
from sfo.data.positions import file_state
from sfo.data.rows import READ_NUMBERS, Rows

STREAM_BYTES = 2**29
"""Solutions of more bytes than this are streamed, not held in memory: 512 MB."""
CACHE_BYTES = 2**27
"""Bytes of streamed samples that stay in memory once they were read: 128 MB."""


def is_large(file: DataFile, n_samples: int) -> bool:
    """Whether so many samples of a file take more memory than they should."""
    numbers = len(file.times) * len(file.names) * prod(file.grid.shape)
    return 4 * numbers * n_samples > STREAM_BYTES


def streamed_pairs(
    file: DataFile, ids: Sequence[int], *, cache_bytes: int = CACHE_BYTES, **fields: Any
) -> Pairs:
    """The pairs of some samples, not read yet; each is checked when it is.

    Args:
        file: The file, which must stay where it is.
        ids: The samples.
        cache_bytes: Bytes of samples that stay in memory once they were read.
        fields: Arguments of `pairs`.
    """
    first = pairs(file[[ids[0]]], **fields)
    read = _Reader(file, first, fields, min(len(ids), cache_bytes // _bytes(first)))
    parts: dict[str, Any] = {
        part: Rows((len(file), *read.shapes[part]), partial(read, part), ids) for part in ("a", "u")
    }
    return replace(first, ids=tuple(ids), **parts)


def _bytes(one: Pairs) -> int:
    return one.a.nbytes + one.u.nbytes


class _Reader:
    """Reads samples once for both a and u, if a thread asks for the two one after the other."""

    def __init__(self, file: DataFile, like: Pairs, fields: dict[str, Any], n_cached: int) -> None:
        self.file, self.fields = file, fields
        self.shapes = {"a": like.a.shape[1:], "u": like.u.shape[1:]}
        self.read_samples = max(1, READ_NUMBERS // self.shapes["u"].numel())
        self._rest, self._finite = threading.local(), set[int]()
        self._cache = _SampleCache(self.shapes, n_cached)
        self._state = file_state(file.path)

    def __call__(self, which: str, ids: list[int]) -> Tensor:
        asked = (which, tuple(ids))
        rest, self._rest.made = getattr(self._rest, "made", {}), {}
        if asked in rest:
            return rest[asked]
        if file_state(self.file.path) != self._state:
            self._state = file_state(self.file.path)
            self._cache.clear()
        found = self._cache.get(which, ids)
        if found is not None:
            return found
        made = {part: torch.empty(len(ids), *shape) for part, shape in self.shapes.items()}
        missing = self._cache.copy(ids, made)
        # Few large samples at a time: what is read and what is kept differ in their order of axes.
        for first in range(0, len(missing), self.read_samples):
            rows = missing[first : first + self.read_samples]
            some = [ids[row] for row in rows]
            read = pairs(self.file[some], **self.fields)
            for part, values in (("a", read.a), ("u", read.u)):
                # Once per sample: the file does not change, and the check is a fifth of the time.
                if not self._finite.issuperset(some):
                    check_finite(part, values, some, self.file.path)
                made[part][rows] = values
            self._finite.update(some)
            self._cache.add(some, dict(a=read.a, u=read.u))
        other = "u" if which == "a" else "a"
        self._rest.made = {(other, tuple(ids)): made[other]}
        return made[which]


class _SampleCache:
    """The first samples that were read, up to a number of them.

    Args:
        shapes: Shapes of a sample's a and u.
        capacity: Number of samples.
    """

    def __init__(self, shapes: dict[str, torch.Size], capacity: int) -> None:
        # Memory is taken as samples are written into it.
        self.values = {part: torch.empty(capacity, *shape) for part, shape in shapes.items()}
        self.capacity, self.row = capacity, dict[int, int]()
        self._lock = threading.Lock()

    def get(self, part: str, ids: Sequence[int]) -> Tensor | None:
        """The a or the u of samples; None unless all of them are in the cache."""
        rows = [self.row.get(i, -1) for i in ids]
        return None if -1 in rows else self.values[part][rows]

    def copy(self, ids: Sequence[int], into: dict[str, Tensor]) -> list[int]:
        """Copy the samples that are here to their rows of `into`; gives the others' rows."""
        rows = [self.row.get(i, -1) for i in ids]
        here = [i for i, row in enumerate(rows) if row >= 0]
        if here:
            for part, values in self.values.items():
                into[part][here] = values[[rows[i] for i in here]]
        return [i for i, row in enumerate(rows) if row < 0]

    def add(self, ids: Sequence[int], read: dict[str, Tensor]) -> None:
        """Keep what was read, up to the capacity."""
        if len(self.row) == self.capacity:
            return
        with self._lock:
            for k, i in enumerate(ids):
                row = len(self.row)
                if i in self.row or row == self.capacity:
                    continue
                for part, values in self.values.items():
                    values[row] = read[part][k]
                # Last: other threads look without the lock.
                self.row[i] = row

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self.row = {}
