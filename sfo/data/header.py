"""What a data file says of itself: the header, and one sample with its checksum."""

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sfo.grid import Grid

Layout = Literal["tensor", "groups"]
AXES = "xyz"
FORMAT = 1


class DataFileError(OSError):
    """A data file that cannot be read, or must not be trusted.

    Example:
        >>> from sfo.data.hdf5 import DataFile
        >>> DataFile("no_such_file.hdf5")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        sfo.data.header.DataFileError: ...
    """


@dataclass(frozen=True)
class Header:
    """What a file says of itself: all that its samples have in common.

    Args:
        benchmark: Name of the benchmark, "unknown" where the file does not tell.
        n_samples: How many samples there are.
        grid: Grid of the stored values.
        times: Times of the stored frames.
        names: Names of the channels.
        static_names: Names of the fields that do not change in time.
        source: Seed, scale and options that the file was made from.
    """

    benchmark: str
    n_samples: int
    grid: Grid
    times: tuple[float, ...]
    names: tuple[str, ...]
    static_names: tuple[str, ...] = ()
    source: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        entries = dict(
            format=FORMAT,
            benchmark=self.benchmark,
            n_samples=self.n_samples,
            grid=self.grid.to_dict(),
            times=list(self.times),
            names=list(self.names),
            static_names=list(self.static_names),
            source=self.source,
        )
        return json.dumps(entries, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Header":
        entries = json.loads(text)
        if entries.pop("format") != FORMAT:
            raise ValueError("of another format")
        entries["grid"] = Grid.from_dict(entries["grid"])
        for key in ("times", "names", "static_names"):
            entries[key] = tuple(entries[key])
        return cls(**entries)


@dataclass(frozen=True)
class Sample:
    """One stored trajectory: `data (time, *grid, channel)`, and `static (*grid, channel)`."""

    data: np.ndarray
    static: np.ndarray | None = None

    def seal(self, header: Header, index: int) -> bytes:
        """SHA-256 of the header, the place in the file and every number."""
        return self._hash(f"{header.to_json()} {index} {self.data.shape}")

    def fingerprint(self) -> bytes:
        """SHA-256 of the numbers alone: equal samples have equal ones."""
        return self._hash("")

    def _hash(self, start: str) -> bytes:
        sha = hashlib.sha256(start.encode())
        for numbers in (self.data, self.static):
            if numbers is not None:
                sha.update(np.ascontiguousarray(numbers).data)
        return sha.digest()
