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
from sfo.data.rows import AT_ONCE, Rows

STREAMED = 2**29
"""Bytes of solutions from which on a part of a file is not held in memory: 512 MB."""
KEPT = 2**27
"""Bytes of such a part that are kept once they were read: 128 MB."""


def is_large(file: DataFile, n_samples: int) -> bool:
    """Whether so many samples of a file take more memory than they should."""
    numbers = len(file.times) * len(file.names) * prod(file.grid.shape)
    return 4 * numbers * n_samples > STREAMED


def streamed_pairs(file: DataFile, ids: Sequence[int], *, kept: int = KEPT, **fields: Any) -> Pairs:
    """The pairs of some samples, not read yet; each is checked when it is.

    Args:
        file: The file, which must stay where it is.
        ids: The samples.
        kept: Bytes of samples that are kept in memory once they were read.
        fields: Arguments of `pairs`.
    """
    first = pairs(file[[ids[0]]], **fields)
    read = _Reader(file, first, fields, min(len(ids), kept // _bytes(first)))
    parts: dict[str, Any] = {
        part: Rows((len(file), *read.shapes[part]), partial(read, part), ids) for part in ("a", "u")
    }
    return replace(first, ids=tuple(ids), **parts)


def _bytes(one: Pairs) -> int:
    return one.a.nbytes + one.u.nbytes


class _Reader:
    """Reads samples once for both a and u, if a thread asks for the two one after the other."""

    def __init__(self, file: DataFile, like: Pairs, fields: dict[str, Any], n_kept: int) -> None:
        self.file, self.fields = file, fields
        self.shapes = {"a": like.a.shape[1:], "u": like.u.shape[1:]}
        self.at_once = max(1, AT_ONCE // self.shapes["u"].numel())
        self._rest, self._finite = threading.local(), set[int]()
        self._kept = _Kept(self.shapes, n_kept)
        self._state = file_state(file.path)

    def __call__(self, which: str, ids: list[int]) -> Tensor:
        asked = (which, tuple(ids))
        rest, self._rest.made = getattr(self._rest, "made", {}), {}
        if asked in rest:
            return rest[asked]
        if file_state(self.file.path) != self._state:
            self._state = file_state(self.file.path)
            self._kept.clear()
        found = self._kept.get(which, ids)
        if found is not None:
            return found
        made = {part: torch.empty(len(ids), *shape) for part, shape in self.shapes.items()}
        lacking = self._kept.copy(ids, made)
        # Few large samples at a time: what is read and what is kept differ in their order of axes.
        for first in range(0, len(lacking), self.at_once):
            rows = lacking[first : first + self.at_once]
            some = [ids[row] for row in rows]
            read = pairs(self.file[some], **self.fields)
            for part, values in (("a", read.a), ("u", read.u)):
                # Once per sample: the file does not change, and the check is a fifth of the time.
                if not self._finite.issuperset(some):
                    check_finite(part, values, some, self.file.path)
                made[part][rows] = values
            self._finite.update(some)
            self._kept.add(some, dict(a=read.a, u=read.u))
        other = "u" if which == "a" else "a"
        self._rest.made = {(other, tuple(ids)): made[other]}
        return made[which]


class _Kept:
    """The first samples that were read, as many as there is room for.

    Args:
        shapes: Shapes of a sample's a and u.
        room: Number of samples.
    """

    def __init__(self, shapes: dict[str, torch.Size], room: int) -> None:
        # Memory is taken as samples are written into it.
        self.values = {part: torch.empty(room, *shape) for part, shape in shapes.items()}
        self.room, self.row = room, dict[int, int]()
        self._lock = threading.Lock()

    def get(self, part: str, ids: Sequence[int]) -> Tensor | None:
        """The a or the u of samples; None unless all of them are here."""
        rows = [self.row.get(i, -1) for i in ids]
        return None if -1 in rows else self.values[part][rows]

    def copy(self, ids: Sequence[int], into: dict[str, Tensor]) -> list[int]:
        """Copy those that are here to their places; the places of the others."""
        rows = [self.row.get(i, -1) for i in ids]
        here = [place for place, row in enumerate(rows) if row >= 0]
        if here:
            for part, values in self.values.items():
                into[part][here] = values[[rows[place] for place in here]]
        return [place for place, row in enumerate(rows) if row < 0]

    def add(self, ids: Sequence[int], read: dict[str, Tensor]) -> None:
        """Keep what was read, as far as there is room."""
        if len(self.row) == self.room:
            return
        with self._lock:
            for place, i in enumerate(ids):
                row = len(self.row)
                if i in self.row or row == self.room:
                    continue
                for part, values in self.values.items():
                    values[row] = read[part][place]
                # Last: other threads look without the lock.
                self.row[i] = row

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self.row = {}
