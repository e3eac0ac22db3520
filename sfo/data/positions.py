"""Arrays of an HDF5 file read by their position in it, without HDF5, where that is possible."""

import os
from dataclasses import dataclass
from math import prod
from pathlib import Path

import h5py
import numpy as np

from sfo.data.header import DataFileError


@dataclass(frozen=True)
class Position:
    """Where the numbers of an array are, one after the other.

    Args:
        offset: Byte at which they begin.
        shape: Shape of the array.
        dtype: Type of the numbers.
    """

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, dataset: h5py.Dataset, shape: tuple[int, ...], row: int = 0) -> "Position | None":
        """The position of a part of an array; None if HDF5 alone can read it.

        That is so for arrays in chunks, which may be compressed, for what was never written, and
        for what are not plain floats.

        Args:
            dataset: The array.
            shape: Shape of the part.
            row: How many such parts come before it.
        """
        start = dataset.id.get_offset()
        if start is None or dataset.dtype.kind != "f":
            return None
        return cls(start + row * prod(shape) * dataset.dtype.itemsize, shape, dataset.dtype)

    def read(self, path: Path) -> np.ndarray:
        """A copy of the array."""
        count = prod(self.shape)
        try:
            values = np.fromfile(path, self.dtype, count, offset=self.offset)
        except OSError as error:
            raise DataFileError(f"{path} cannot be read: {error.strerror or error}.") from error
        if len(values) != count:
            raise DataFileError(f"{path} is cut: copy or make it again.")
        return values.reshape(self.shape)


def file_state(path: Path) -> tuple[int, ...]:
    """Numbers that differ once a file was replaced or written to; none if it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
