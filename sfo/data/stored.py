"""Arrays that lie in a file as they are, read row by row: of .npy and uncompressed .npz files."""

import os
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np

from sfo.data.header import DataFileError

LOCAL_HEADER = 30
"""Bytes of a zip member's own header, before its name and its extra field."""
CHUNK = 2**22
"""Bytes that are read at a time where a checksum is compared."""


class StoredArray:
    """An array in a file, of which nothing is read before a row is asked for.

    No memory map: of a file that is cut while it is mapped, the system ends the process.

    Args:
        path: The file.
        offset: Where the numbers begin.
        shape: Shape of the array, whose last axis runs fastest in the file.
        dtype: Type of its numbers.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder) / "numbers"
        ...     _ = path.write_bytes(np.arange(6.0).tobytes())
        ...     StoredArray(path, 0, (3, 2), np.dtype(float))[1]
        array([2., 3.])
    """

    def __init__(self, path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.path, self.offset, self.shape, self.dtype = path, offset, shape, dtype
        self._seen = _fingerprint(path)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, row: int) -> np.ndarray:
        if not 0 <= row < len(self):
            raise IndexError(f"`row` must be in 0..{len(self) - 1}, got {row}.")
        size = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))
        with open(self.path, "rb") as file:
            file.seek(self.offset + row * size)
            content = file.read(size)
        if _fingerprint(self.path) != self._seen:
            raise DataFileError(
                f"{self.path} was written again while it was read; begin once more with the file "
                "as it is now."
            )
        return np.frombuffer(content, self.dtype).reshape(self.shape[1:])


def begin_of(file: IO[bytes], member: zipfile.ZipInfo) -> int | None:
    """Where an uncompressed member of a zip file begins; None if it is compressed or encrypted."""
    if member.compress_type != zipfile.ZIP_STORED or member.flag_bits & 1:
        return None
    file.seek(member.header_offset)
    header = file.read(LOCAL_HEADER)
    name, extra = (int.from_bytes(header[i : i + 2], "little") for i in (26, 28))
    return member.header_offset + LOCAL_HEADER + name + extra


def check_sum(file: IO[bytes], begin: int, member: zipfile.ZipInfo) -> None:
    """Compare the bytes of a member with its checksum, which reading by rows would leave out."""
    file.seek(begin)
    left, found = member.file_size, 0
    while left and (content := file.read(min(left, CHUNK))):
        left, found = left - len(content), zlib.crc32(content, found)
    if left or found != member.CRC:
        raise ValueError(f"`{member.filename}` is damaged: its checksum does not match")


def _fingerprint(path: Path) -> tuple[int, int, int]:
    status = os.stat(path)
    return status.st_ino, status.st_size, status.st_mtime_ns
