"""From a file to arrays: NumPy's .npz, HDF5 with `a` and `u`, The Well's layout, and trajectories.

HDF5 is read as samples are asked for, whatever the size of the file.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfo.data.arrays import Arrays, unit_grid
from sfo.data.load import load_file
from sfo.data.opening import (
    damage,
    is_hdf5,
    numpy_arrays,
    open_hdf5,
    own_dataset,
    refuse_foreign_links,
)
from sfo.data.pairs import pairs
from sfo.data.rows import Rows
from sfo.data.well import is_well, well_arrays
from sfo.grid import Grid
from sfo.registry import BENCHMARKS


def open_data(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    names: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    grid: Grid | None = None,
    times: Sequence[float] | None = None,
    n_input: int = 1,
    periodic: bool | None = None,
) -> Arrays:
    """The arrays of a file, told by what is in it.

    Args:
        path: A .npz file or an HDF5 file with the arrays `a` and `u`, an HDF5 file in The Well's
            layout, or one of trajectories as the benchmarks have them, under whatever name.
        name: What the data are called; None: as the file.
        names, inputs, grid, times: See `Arrays.of`, for files with `a` and `u`; a .npz file may
            also hold `times` and `names`.
        n_input: Frames of the input, of files with trajectories.
        periodic: Whether the data are periodic, of files that do not say.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "mine.npz")
        ...     np.savez(path, a=np.ones((5, 1, 8, 8)), u=np.ones((5, 2, 8, 8)))
        ...     data = open_data(path)
        ...     len(data), data.grid.shape, data.name
        (5, (8, 8), 'mine')
    """
    path = Path(path)
    if not path.exists():
        raise ValueError(f"No data: {path} does not exist.")
    known: dict[str, Any] = dict(name=own_name(path, name), path=path.resolve())
    given: dict[str, Any] = dict(names=names, inputs=inputs, grid=grid, times=times)
    if path.suffix == ".npz" or not is_hdf5(path):
        return _npz(path, known, given, periodic)
    refuse_foreign_links(path)
    file = open_hdf5(path)
    if "a" in file and "u" in file:
        with damage(str(path)):
            a, u = own_dataset(file, "a"), own_dataset(file, "u")
        if grid is None and a.ndim > 2:
            given["grid"] = unit_grid(a.shape[2:], bool(periodic))
        return Arrays.of(a, u, **given, **known)
    if any(value is not None for value in given.values()):
        raise ValueError(
            f"{path} says itself what its fields, grid and times are; leave `names`, `inputs`, "
            "`grid` and `times` out."
        )
    if is_well(file):
        with damage(str(path)):
            return well_arrays(file, n_input=n_input, **known)
    file.close()
    return _trajectories(path, n_input, known)


def holds_arrays(path: str | os.PathLike[str]) -> bool:
    """Whether `open_data` reads a file as inputs and solutions; else it holds trajectories."""
    path = Path(path)
    if path.suffix == ".npz" or not is_hdf5(path):
        return path.suffix == ".npz"
    with open_hdf5(path) as file:
        return ("a" in file and "u" in file) or is_well(file)


def own_name(path: Path | None, name: str | None) -> str:
    """What data are called: never as a benchmark is."""
    if name is None:
        name = "arrays" if path is None else path.stem
        return f"{name}_data" if name in BENCHMARKS else name
    if name in BENCHMARKS:
        raise ValueError(
            f"`name` must not be that of a benchmark, got {name!r}; call your data otherwise."
        )
    return name


def _npz(path: Path, known: dict[str, Any], given: dict[str, Any], periodic: bool | None) -> Arrays:
    entries = numpy_arrays(path, ("a", "u", "names", "times"), by_rows=("a", "u"))
    if "a" not in entries or "u" not in entries:
        found = ", ".join(entries).strip() or "nothing by name"
        raise ValueError(
            f"{path} must hold the arrays `a` and `u`, got {found}; write it with "
            "np.savez(path, a=a, u=u)."
        )
    if given["names"] is None and "names" in entries:
        given["names"] = tuple(_text(n) for n in np.ravel(entries["names"]))
    if given["times"] is None and "times" in entries:
        given["times"] = np.ravel(entries["times"]).tolist()
    if given["grid"] is None and entries["a"].ndim > 2:
        given["grid"] = unit_grid(entries["a"].shape[2:], bool(periodic))
    return Arrays.of(entries["a"], entries["u"], **given, **known)


def _text(name: object) -> str:
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


def _trajectories(path: Path, n_input: int, known: dict[str, Any]) -> Arrays:
    """A file as the benchmarks have it: the first frames of all fields, and all frames."""
    file = load_file(path, 1)
    first = pairs(file[:1], n_input=n_input)

    def read(which: str) -> Rows:
        shape = (len(file), *getattr(first, which).shape[1:])
        return Rows(shape, lambda ids: getattr(pairs(file[ids], n_input=n_input), which))

    return Arrays(read("a"), read("u"), first.grid, first.times, first.names, first.inputs, **known)


def load_inputs(path: str | os.PathLike[str]) -> np.ndarray:
    """The array of a .npy file, or `a` of a .npz or HDF5 file."""
    path = Path(path)
    if path.suffix != ".npy" and is_hdf5(path):
        refuse_foreign_links(path)
        with open_hdf5(path) as file, damage(str(path)):
            entries = {key: np.empty(0) for key in file}
            if "a" in entries:
                return own_dataset(file, "a")[()]
    else:
        entries = numpy_arrays(path, ("a",))
        for key in ("", "a"):
            if key in entries:
                return entries[key]
    raise ValueError(f"{path} must hold the array `a`, got {', '.join(entries) or 'nothing'}.")
