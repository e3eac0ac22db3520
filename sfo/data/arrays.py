"""Data of your own: arrays of inputs and solutions, checked once, with a name and a fingerprint."""

import hashlib
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from sfo.data.pairs import Pairs, Split, SplitName
from sfo.data.rows import Rows, array_rows
from sfo.grid import Grid

SMALLEST, LARGEST = 1e-12, 1e15
"""Between these must be the largest absolute value of an array."""


@dataclass(frozen=True)
class Arrays:
    """Inputs a and solutions u, `(sample, channel, *grid)`, and what their channels mean.

    u's channels are its fields with their frames side by side: channel c · n_times + t is the
    field names[c] at times[t]. Made by `Arrays.of`, which checks all but the numbers, and by
    `sfo.data.open_data`; `check` goes through the numbers.

    Args:
        a: Inputs.
        u: Solutions.
        grid: The points, the same for both.
        times: Times of u's frames; one for a steady problem.
        names: Names of u's fields.
        inputs: Names of a's fields. One that is also in `names` has as many frames as the
            channels leave room for, any other has one.
        name: What the data are called.
        path: The file that they were read from, None for arrays in memory.

    Example:
        >>> import numpy as np
        >>> data = Arrays.of(np.ones((5, 1, 16)), np.ones((5, 3, 16)), times=(0.0, 0.5, 1.0))
        >>> len(data), data.grid.shape, data.names
        (5, (16,), ('u',))
    """

    a: Rows
    u: Rows
    grid: Grid
    times: tuple[float, ...]
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    name: str = "arrays"
    path: Path | None = None

    @classmethod
    def of(
        cls,
        a: Any,
        u: Any,
        *,
        name: str = "arrays",
        names: Sequence[str] | None = None,
        inputs: Sequence[str] | None = None,
        grid: Grid | None = None,
        times: Sequence[float] | None = None,
        path: Path | None = None,
    ) -> "Arrays":
        """Arrays of any kind, or an error that says what is wrong with them.

        Args:
            a, u: NumPy arrays, memory maps, torch tensors, HDF5 datasets or `Rows`.
            name: What the data are called.
            names: Names of u's fields; None: one for all frames if there are `times`, else
                every channel is a field.
            inputs: Names of a's fields; None: every channel is a field of its own.
            grid: The points; None: those of the unit box, not periodic.
            times: Times of u's frames; None: 0, 1, … if there are fewer `names` than channels.
            path: Where they were read from.

        Example:
            >>> data = Arrays.of(np.zeros((9, 2, 16)), np.zeros((9, 6, 16)), names=("h", "v"))
            >>> data.times, data.inputs
            ((0.0, 1.0, 2.0), ('a1', 'a2'))
        """
        rows = []
        for label, array in (("a", a), ("u", u)):
            check_kind(label, array)
            rows.append(array if isinstance(array, Rows) else array_rows(array))
        check_shapes(*rows)
        if grid is None:
            if names is None and times is None:
                _warn_of_another_layout(*rows)
            grid = unit_grid(rows[0].shape[2:])
        if not isinstance(grid, Grid):
            raise ValueError(
                f"`grid` must be a Grid, got {grid!r}; as in sfo.Grid((64,), (0.0,), (1.0,)) for "
                "64 points on the unit line."
            )
        if grid.shape != tuple(rows[0].shape[2:]):
            raise ValueError(
                f"`grid` must have the points of the arrays, {tuple(rows[0].shape[2:])}, got "
                f"{grid.shape}."
            )
        for label, given in (("names", names), ("inputs", inputs)):
            # The letters of a text would be names of their own.
            is_list = not isinstance(given, (str, bytes)) and hasattr(given, "__len__")
            if given is not None and not is_list:
                raise ValueError(f"`{label}` must be a list of names, got {given!r}; as in ['u'].")
        channels_in, channels_out = rows[0].shape[1], rows[1].shape[1]
        names, times = _fields_and_times(channels_out, names, times)
        inputs = tuple(inputs or _numbered("a", channels_in))
        _check_inputs(channels_in, inputs, names)
        return cls(rows[0], rows[1], grid, times, names, inputs, name, path)

    def __len__(self) -> int:
        return len(self.a)

    def check(self) -> str:
        """Go through all numbers once; their fingerprint, or an error that names the sample.

        The SHA-256 of both shapes and of all values in float32, as a model sees them.
        """
        digest = hashlib.sha256(f"{tuple(self.a.shape)} {tuple(self.u.shape)}".encode())
        for label, rows in (("a", self.a), ("u", self.u)):
            first, peak = 0, 0.0
            for chunk in rows.chunks():
                check_finite(label, chunk, range(first, first + len(chunk)), self.path)
                low, high = chunk.aminmax()
                peak = max(peak, -float(low), float(high))
                digest.update(chunk.contiguous().numpy().astype("<f4", copy=False).data)
                first += len(chunk)
            check_size(label, peak, self.path)
        return digest.hexdigest()

    def subsample(self, stride: int) -> "Arrays":
        """Every `stride`-th point along each axis, read as samples are asked for."""
        grid = self.grid.subsample(stride)
        space: tuple[Any, ...] = (..., *(slice(None, None, stride),) * grid.n_dim)

        def thinned(rows: Rows) -> Rows:
            return Rows((*rows.shape[:2], *grid.shape), lambda ids: rows[ids][space])

        return replace(self, a=thinned(self.a), u=thinned(self.u), grid=grid)

    def pairs(self, split: Split, name: SplitName) -> Pairs:
        """One split of the samples, read as they are asked for."""
        ids = split.ids(name)
        return Pairs(
            # What is done with them is what `Rows` have in common with tensors.
            cast(Tensor, self.a.select(ids)),
            cast(Tensor, self.u.select(ids)),
            self.grid,
            ids,
            self.times,
            self.names,
            self.inputs,
            self.name,
        )


def split_by_share(n_samples: int, validation: float = 0.1) -> Split:
    """A share of the samples selects the best epoch, as many are reported, the others train.

    Which ones is decided once and for all by their number.

    Example:
        >>> split = split_by_share(20, validation=0.1)
        >>> len(split.train), len(split.validation), len(split.test)
        (16, 2, 2)
    """
    if not isinstance(validation, (int, float)) or not 0 < validation < 0.5:
        raise ValueError(f"`validation` must be a share between 0 and 0.5, got {validation}.")
    if n_samples < 3:
        raise ValueError(
            f"At least 3 samples are needed, to train, to select the best epoch and to report on, "
            f"got {n_samples}."
        )
    count = max(1, min(round(validation * n_samples), (n_samples - 1) // 2))
    order = np.random.default_rng(0).permutation(n_samples)
    parts = order[2 * count :], order[:count], order[count : 2 * count]
    train, select, test = (tuple(int(i) for i in np.sort(part)) for part in parts)
    return Split("default", train, select, test)


def unit_grid(shape: Sequence[int], periodic: bool = False) -> Grid:
    """The points of a box with sides of 1."""
    n_dim = len(shape)
    return Grid(tuple(shape), (0.0,) * n_dim, (1.0,) * n_dim, periodic=periodic)


def check_kind(label: str, array: Any) -> None:
    """Refuse what is not an array of real floating-point numbers."""
    if isinstance(array, Rows):
        return
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise ValueError(
            f"`{label}` must be a NumPy or torch array (sample, channel, *grid), got "
            f"{type(array).__name__}; "
            + (
                f"np.stack({label}) makes one, if all samples have one shape."
                if isinstance(array, (list, tuple))
                else "pass inputs and solutions as two arrays, `a` and `u`."
            )
        )
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(
            f"`{label}` must have no masked values, whose numbers mean nothing; leave those "
            f"samples out, or fill them, as with {label}.filled(0.0)."
        )
    if isinstance(array, Tensor) and (array.layout != torch.strided or array.is_meta):
        what = "on the meta device" if array.is_meta else f"of the layout {array.layout}"
        raise ValueError(f"`{label}` must be a dense tensor with numbers, got one {what}.")
    # Of torch's types the text, of NumPy's the name, which is the same in any byte order.
    kind = getattr(array.dtype, "name", str(array.dtype)).removeprefix("torch.")
    if "complex" in kind:
        raise ValueError(
            f"`{label}` must be real, got {kind}; pass real and imaginary part as two channels."
        )
    if "float" not in kind:
        raise ValueError(
            f"`{label}` must be floating point, got {kind}; convert it, as with {label}."
            + ("float()." if isinstance(array, Tensor) else "astype('float32').")
        )
    if not array.shape:
        raise ValueError(f"`{label}` must be (sample, channel, *grid), got a single number.")


CHANNELS_LAST = "Channels come second: if yours are last, np.moveaxis(a, -1, 1) moves them there."


def check_shapes(a: Rows, u: Rows) -> None:
    """Refuse arrays that are no samples of fields on one grid."""
    for label, rows in (("a", a), ("u", u)):
        if rows.ndim < 3 or 0 in rows.shape:
            raise ValueError(
                f"`{label}` must be (sample, channel, *grid) with one axis of points or more and "
                f"none of them empty, got the shape {tuple(rows.shape)}"
                + (f"; {label}[:, None] gives it a channel axis." if rows.ndim == 2 else ".")
            )
    if len(a) != len(u):
        raise ValueError(f"`a` and `u` must have as many samples, got {len(a)} and {len(u)}.")
    shapes = f"{tuple(a.shape)} and {tuple(u.shape)}"
    if a.shape[2:] != u.shape[2:]:
        grids = f"`a` and `u` must be on the same grid, got {tuple(a.shape[2:])} and "
        way = "resample one of them."
        if a.ndim != u.ndim:
            label = "a" if a.ndim < u.ndim else "u"
            way = f"if `{label}` has no channel axis, {label}[:, None] gives it one."
        elif a.shape[1:-1] == u.shape[1:-1] and min(a.shape[-1], u.shape[-1]) < min(a.shape[1:-1]):
            way = f"of the shapes {shapes}. {CHANNELS_LAST}"
        raise ValueError(f"{grids}{tuple(u.shape[2:])}; {way}")
    if a.shape[-1] == 1:
        raise ValueError(
            f"`a` and `u` must have two points or more along the last axis, got {shapes}. "
            f"{CHANNELS_LAST}"
        )


def _warn_of_another_layout(a: Rows, u: Rows) -> None:
    """Say how shapes were read which most often mean something else."""
    grid = a.shape[2:]
    read = (
        f"`a` and `u`, {tuple(a.shape)} and {tuple(u.shape)}, are read as {a.shape[1]} and "
        f"{u.shape[1]} channels on {' × '.join(map(str, grid))} points."
    )
    silence = "If it is right, `grid`, `names` or `times` say so."
    # As many channels as there are points, in both: rather an axis of the grid.
    if a.shape[1] == u.shape[1] >= max(8, min(grid) // 2):
        warnings.warn(
            f"{read} If the fields have no channel axis, pass a[:, None] and u[:, None]. {silence}",
            stacklevel=4,
        )
    elif len(grid) > 1 and grid[-1] <= 4 < min(grid[:-1]):
        warnings.warn(f"{read} {CHANNELS_LAST} {silence}", stacklevel=4)


def check_finite(
    label: str, values: Tensor, ids: Sequence[int] | None = None, path: Path | None = None
) -> None:
    """Refuse NaN and infinity, by the sample and the place where they are first met.

    Args:
        label: What the values are called.
        values: Some samples.
        ids: Their numbers in the file or array; None: 0, 1, ….
        path: The file.
    """
    good = values.isfinite()
    if bool(good.all()):
        return
    sample, channel, *point = (~good).nonzero()[0].tolist()
    where = "" if path is None else f" in {path}"
    name = sample if ids is None else ids[sample]
    raise ValueError(
        f"Sample {name} of `{label}`{where} holds NaN or infinity, first in channel "
        f"{channel} at the point {tuple(point)}; leave it out or repair it."
    )


def check_size(label: str, peak: float, path: Path | None = None) -> None:
    """Refuse numbers whose squares, and those of small errors, leave the range of float32.

    Errors of such numbers are 0 or NaN, so that nothing is learned.

    Args:
        label: What the values are called.
        peak: The largest absolute value in float32.
        path: The file.
    """
    if not SMALLEST <= peak <= LARGEST:
        where = "" if path is None else f" in {path}"
        raise ValueError(
            f"The largest absolute value of `{label}`{where} must be in {SMALLEST:g}..{LARGEST:g}, "
            f"because errors are squared in float32, got {peak:.3g}; divide `{label}` by its "
            "typical size."
        )


def _fields_and_times(
    channels: int, names: Sequence[str] | None, times: Sequence[float] | None
) -> tuple[tuple[str, ...], tuple[float, ...]]:
    if times is not None:
        try:
            times = [float(t) for t in times]
        except (TypeError, ValueError):
            raise ValueError(f"`times` must be numbers, one per frame, got {times!r}.") from None
    frames = len(times) if times is not None else channels // len(names) if names else 1
    fields = len(names) if names else channels // max(1, frames)
    if frames < 1 or fields * frames != channels:
        given = [f"each of {fields} `names`"] * bool(names) + [f"each of {frames} `times`"] * (
            times is not None
        )
        rule = "a channel" if len(given) == 2 else "as many channels"
        raise ValueError(
            f"`u` must have {rule} for {' at '.join(given)}, got {channels} in all; give `names`, "
            "`times` or both to fit."
        )
    when = tuple(times if times is not None else map(float, range(frames)))
    if not all(map(math.isfinite, when)) or any(s >= t for s, t in pairwise(when)):
        raise ValueError(f"`times` must be finite and increase, got {when}.")
    return tuple(names or _numbered("u", fields)), when


def _check_inputs(channels: int, inputs: tuple[str, ...], names: tuple[str, ...]) -> None:
    for label, given in (("inputs", inputs), ("names", names)):
        if not all(isinstance(n, str) and n and n.isprintable() for n in given):
            raise ValueError(f"`{label}` must be text that can be printed, got {given!r}.")
        if len(set(given)) != len(given):
            raise ValueError(f"`{label}` must differ from each other, got {given}.")
    moving = sum(name in names for name in inputs)
    left = channels - (len(inputs) - moving)
    if left < moving or (left and not moving) or (moving and left % moving):
        raise ValueError(
            f"`inputs` must name the fields of a's {channels} channels, one channel each or, for "
            f"fields of u, as many frames each, got {inputs}."
        )


def _numbered(letter: str, count: int) -> tuple[str, ...]:
    return (letter,) if count == 1 else tuple(f"{letter}{i + 1}" for i in range(count))
