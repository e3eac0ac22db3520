"""Files in The Well's layout: groups of scalar, vector and tensor fields on a uniform grid.

    t0_fields/density   (trajectory, time, x, y)         scalars
    t1_fields/velocity  (trajectory, time, x, y, 2)      vectors
    t2_fields/stress    (trajectory, time, x, y, 2, 2)   tensors
    dimensions/time, dimensions/x, dimensions/y

A field's attributes `sample_varying`, `time_varying` and `dim_varying` tell which of these axes
it has. Every component is a field here; what does not change in time is an input alone.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import h5py
import numpy as np

from sfo.data.arrays import Arrays
from sfo.data.header import DataFileError
from sfo.data.opening import own_dataset
from sfo.data.rows import Rows
from sfo.grid import Grid

GROUPS = ("t0_fields", "t1_fields", "t2_fields")


def is_well(file: h5py.File) -> bool:
    """Whether a file has this layout."""
    return "dimensions" in file and any(group in file for group in GROUPS)


@dataclass(frozen=True)
class Component:
    """One component of a stored field, as a function of trajectory, time and place."""

    name: str
    values: h5py.Dataset
    component: tuple[int, ...]
    by_sample: bool
    by_time: bool
    axes: tuple[bool, ...]

    def read(self, sample: int, frames: slice, shape: tuple[int, ...]) -> np.ndarray:
        """`(time, *grid)` of one trajectory; axes along which it is constant are filled."""
        index: list[int | slice] = [sample] if self.by_sample else []
        if self.by_time:
            index.append(frames)
        index += [slice(None)] * sum(self.axes)
        found = np.asarray(self.values[(*index, *self.component)], dtype=np.float32)
        if not self.by_time:
            found = found[None]
        sizes = [n if varies else 1 for n, varies in zip(shape, self.axes, strict=True)]
        found = found.reshape(len(found), *sizes)
        return np.broadcast_to(found, (len(found), *shape))


def well_arrays(file: h5py.File, *, n_input: int, name: str, path: Path) -> Arrays:
    """The first frames of every trajectory, and all its frames."""
    dims = [_text(d) for d in np.atleast_1d(file["dimensions"].attrs.get("spatial_dims", []))]
    dims = dims or [d for d in file["dimensions"] if d != "time"]
    times = _line(file, "time")
    grid = _grid(file, dims)
    fields = [c for group in GROUPS if group in file for c in _components(file[group], len(dims))]
    moving = [c for c in fields if c.by_time]
    static = [c for c in fields if not c.by_time]
    if not moving:
        raise DataFileError(f"{path} has no field that changes in time.")
    if not 1 <= n_input <= len(times):
        raise ValueError(f"`n_input` must be in 1..{len(times)}, the frames, got {n_input}.")
    counts = {c.values.shape[0] for c in fields if c.by_sample}
    if len(counts) != 1:
        raise DataFileError(f"{path} has fields of {sorted(counts)} trajectories.")
    samples = counts.pop()

    def rows(frames: slice, parts: list[Component], channels: int) -> Rows:
        def read(ids: list[int]) -> np.ndarray:
            return np.stack(
                [np.concatenate([c.read(i, frames, grid.shape) for c in parts]) for i in ids]
            )

        return Rows((samples, channels, *grid.shape), read)

    return Arrays(
        rows(slice(0, n_input), [*moving, *static], n_input * len(moving) + len(static)),
        rows(slice(0, len(times)), moving, len(times) * len(moving)),
        grid,
        tuple(times.tolist()),
        tuple(c.name for c in moving),
        tuple(c.name for c in (*moving, *static)),
        name,
        path,
    )


def _components(group: h5py.Group, n_dim: int) -> list[Component]:
    found = []
    for name in group:
        values = own_dataset(group, name)
        attributes = values.attrs
        by_sample = bool(attributes.get("sample_varying", True))
        by_time = bool(attributes.get("time_varying", True))
        axes = tuple(bool(b) for b in attributes.get("dim_varying", [True] * n_dim))
        order = GROUPS.index(group.name.strip("/"))
        expected = by_sample + by_time + sum(axes) + order
        if len(axes) != n_dim or values.ndim != expected:
            raise DataFileError(
                f"{group.file.filename} has `{values.name}` of the shape {values.shape}; by its "
                f"attributes it must have {expected} axes."
            )
        sizes = values.shape[values.ndim - order :]
        for component in product(*map(range, sizes)):
            label = "_".join((name, *("xyz"[i] if i < 3 else str(i) for i in component)))
            found.append(Component(label, values, component, by_sample, by_time, axes))
    return found


def _grid(file: h5py.File, dims: list[str]) -> Grid:
    """The uniform grid; periodic if the file says so of all its boundaries."""
    if not dims:
        raise DataFileError(f"{file.filename} names no spatial dimension.")
    lines = [_line(file, d) for d in dims]
    for name, x in zip(dims, lines, strict=True):
        steps = np.diff(x)
        if len(x) < 2 or steps.max() > 1.01 * steps.min():
            raise DataFileError(f"{file.filename} has no uniform coordinates `{name}`.")
    kinds = [
        _text(entry.attrs.get("bc_type", "")).upper()
        for entry in file.get("boundary_conditions", {}).values()
    ]
    return Grid(
        tuple(len(x) for x in lines),
        tuple(float(x[0]) for x in lines),
        tuple(float(x[0] + len(x) * (x[1] - x[0])) for x in lines),
        periodic=bool(kinds) and set(kinds) == {"PERIODIC"},
    )


def _line(file: h5py.File, name: str) -> np.ndarray:
    if name not in file["dimensions"]:
        raise DataFileError(f"{file.filename} has no `dimensions/{name}`.")
    values = np.asarray(own_dataset(file["dimensions"], name)[()], dtype=np.float64)
    # Times that differ between trajectories: those of the first.
    line = values[0] if values.ndim == 2 and len(values) else values
    if line.ndim != 1 or not len(line) or not np.isfinite(line).all() or (np.diff(line) <= 0).any():
        raise DataFileError(
            f"{file.filename} must have `dimensions/{name}` of finite numbers that increase."
        )
    return line


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
