"""Opening files of others, HDF5 and NumPy: nothing outside of them is read, no size is believed.

What a damaged or a malicious file makes a library raise becomes one sentence.
"""

import os
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import h5py
import numpy as np

from sfo.data.header import DataFileError
from sfo.data.stored import StoredArray, begin_of, check_sum
from sfo.memory import free_memory, size_text

LARGEST_RATIO = 2000
"""No compression of HDF5 makes data smaller than by this factor; deflate reaches 1,032."""

LARGE = 2**28
"""Bytes of an array from which on it is not read whole, if it is not compressed."""
MOST_INFLATED = 4e9
"""Bytes that are inflated at most, whatever the memory: a small file can inflate to any size."""


def refuse_other_kinds(path: Path) -> None:
    """Refuse what is no file: a folder, or a pipe or a device, of which no end may come."""
    if not path.exists():
        raise DataFileError(f"There is no file {path}.")
    if path.is_dir():
        raise DataFileError(f"{path} is a folder, not a data file.")
    if not stat.S_ISREG(path.stat().st_mode):
        raise DataFileError(f"{path} is a pipe or a device, not a data file; copy it into a file.")


def open_hdf5(path: str | os.PathLike[str]) -> h5py.File:
    """An HDF5 file for reading, or a sentence that says what the file is instead."""
    path = Path(path)
    refuse_other_kinds(path)
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise DataFileError(_why_not_hdf5(path)) from error


def is_hdf5(path: Path) -> bool:
    """Whether a file is HDF5 by its contents; what is no file is refused."""
    refuse_other_kinds(path)
    return h5py.is_hdf5(path)


@contextmanager
def damage(where: str) -> Iterator[None]:
    """Whatever HDF5 raises over damaged bytes, in one sentence."""
    try:
        yield
    except DataFileError:
        raise
    except (
        OSError,
        LookupError,
        ValueError,
        RuntimeError,
        TypeError,
        AttributeError,
        MemoryError,
    ) as error:
        raise DataFileError(f"{where} cannot be read: {str(error).strip()[:200]}") from error


def refuse_foreign_links(path: str | os.PathLike[str]) -> None:
    """Refuse a file with a link into another file, at whatever depth: it could lead anywhere."""

    def is_foreign(name: bytes, info: Any) -> bytes | None:
        return name if info.type == h5py.h5l.TYPE_EXTERNAL else None

    with open_hdf5(path) as file, damage(str(path)):
        found = file.id.links.visit(is_foreign, info=True)
        if found is not None:
            raise DataFileError(
                f"{path} keeps `{found.decode(errors='replace')}` in another file; copy it into "
                "one."
            )


def own_dataset(group: h5py.Group, key: str) -> h5py.Dataset:
    """An array that lies in this very file, and is not larger than the file can hold.

    A link into another file would read whatever its author likes, and an array of which hardly
    anything is stored can declare any size.
    """
    path = group.file.filename
    if isinstance(group.get(key, getlink=True), h5py.ExternalLink):
        raise DataFileError(f"{path} keeps `{key}` in another file; copy it into one.")
    found = group[key]
    if not isinstance(found, h5py.Dataset) or found.shape is None:
        raise DataFileError(f"{path} has no array `{key}` of its own.")
    if found.external or found.is_virtual:
        raise DataFileError(f"{path} keeps `{key}` in another file; copy it into one.")
    if found.nbytes > LARGEST_RATIO * os.path.getsize(path):
        raise DataFileError(
            f"{path} declares {found.nbytes:,} bytes of `{key}` in a file of "
            f"{os.path.getsize(path):,}: hardly anything of it is stored."
        )
    return found


def numpy_arrays(
    path: str | os.PathLike[str], keys: tuple[str, ...] = (), by_rows: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Arrays of a .npz file, or the one of a .npy file under the name "".

    The sizes that the file declares are compared with those that are stored, and with the memory,
    before anything is allocated. Of large arrays that are not compressed the rows may be
    read when they are asked for.

    Args:
        path: The file.
        keys: The arrays of a .npz file to read; those that it does not have are left out, and of
            the others, which are named only, there is an empty array.
        by_rows: Those of them that may be a `StoredArray`.
    """
    path = Path(path)
    refuse_other_kinds(path)
    try:
        with open(path, "rb") as file:
            if not zipfile.is_zipfile(file):
                file.seek(0)
                _, _, _, size = _header(file, path.stat().st_size, "the array")
                _check_memory(size)
                file.seek(0)
                return {"": np.lib.format.read_array(file, allow_pickle=False)}
            return _members(file, path, keys, by_rows)
    # Damaged bytes make NumPy and zipfile raise errors of a dozen kinds.
    except Exception as error:
        why = str(error).strip().split("\n")[0][:200] or type(error).__name__
        # Of other files numpy says how to read what may execute code.
        why = f": {why.rstrip('.')}" if path.suffix in (".npy", ".npz") else ""
        raise ValueError(
            f"{path} is neither a .npy or .npz file of numbers nor an HDF5 file{why}; read it "
            "otherwise and write its arrays with np.save or np.savez."
        ) from error


def _members(
    file: IO[bytes], path: Path, keys: tuple[str, ...], by_rows: tuple[str, ...]
) -> dict[str, Any]:
    """The arrays of a .npz file."""
    with zipfile.ZipFile(file) as parts:
        found = {name.removesuffix(".npy"): parts.getinfo(name) for name in parts.namelist()}
        entries: dict[str, Any] = {key: np.empty(0) for key in found}
        whole = inflated = 0
        later = []
        for key in (key for key in keys if key in found):
            member = found[key]
            with parts.open(member) as part:
                shape, fortran, dtype, size = _header(part, member.file_size, f"`{key}`")
                may_wait = key in by_rows and not fortran and size >= LARGE
                begin = begin_of(file, member) if may_wait else None
                if begin is None:
                    whole += size
                    inflated += size if member.compress_type != zipfile.ZIP_STORED else 0
                    later.append(key)
                else:
                    check_sum(file, begin, member)
                    entries[key] = StoredArray(path, begin + part.tell(), shape, dtype)
        _check_memory(whole, inflated)
        for key in later:
            with parts.open(found[key]) as part:
                entries[key] = np.lib.format.read_array(part, allow_pickle=False)
        return entries


def _check_memory(whole: float, inflated: float = 0) -> None:
    """Refuse arrays that would be read whole, if they leave too little memory for anything else."""
    most, size = free_memory() / 2, whole
    if inflated > MOST_INFLATED:
        most, size = min(most, MOST_INFLATED), inflated
    if size > most:
        raise ValueError(
            f"it takes {size_text(size)} in memory, and {size_text(most)} may be taken; write it "
            "without compression, with np.savez, or as HDF5: both are read batch by batch"
        )


def _header(file: IO[bytes], stored: int, what: str) -> tuple[tuple[int, ...], bool, np.dtype, int]:
    """Shape, order, type and bytes of an array, which must not be more than there are."""
    version = np.lib.format.read_magic(file)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise ValueError(f"{what} is of the unknown version {version}")
    shape, fortran, dtype = read[version](file)
    if dtype.hasobject:
        raise ValueError(f"{what} holds Python objects; convert it with .astype('float32')")
    size = dtype.itemsize
    for n in shape:
        size *= n
    if any(n < 0 for n in shape) or size > stored:
        raise ValueError(f"{what} declares the shape {shape}, which is more than the file holds")
    return shape, fortran, dtype, size


def _why_not_hdf5(path: Path) -> str:
    with open(path, "rb") as file:
        start = file.read(8)
    if start == b"\x89HDF\r\n\x1a\n":
        return f"{path} is truncated or damaged: HDF5 cannot open it. Copy or make it again."
    if start.startswith(b"version "):
        return f"{path} is a Git LFS pointer, not the data; fetch it with `git lfs pull`."
    if start.lstrip().lower().startswith((b"<!doc", b"<html")):
        return f"{path} is a web page, not data: the download failed. Fetch it again."
    return f"{path} is not an HDF5 file."
