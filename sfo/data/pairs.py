"""Pairs of input and solution, in float32: what a model is trained on; and how they are split."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.checks import check_choice
from sfo.data.trajectories import Trajectories
from sfo.files import read_json
from sfo.grid import Grid

Scheme = Literal["default", "paper", "paper_first", "deduplicated"]
SplitName = Literal["train", "validation", "test", "all"]


@dataclass(frozen=True)
class Pairs:
    """Inputs a and solutions u on one grid.

    Channels are fields with their time steps side by side: u's channel c · n_times + t is the
    field names[c] at times[t]. The solution includes the input's frames; in a steady problem,
    such as Darcy flow, it is one frame, and the input is a field that the solution has not.

    Args:
        a: Inputs, a tensor or `Rows` that are read as they are asked for.
        u: Solutions, a tensor or `Rows` as well.
        grid: Grid of both.
        ids: Where each sample stands in its file.
        times: Times of u's frames.
        names: Names of u's fields.
        inputs: Names of a's fields.
        benchmark: Name of the benchmark.

    Example:
        >>> values = torch.rand(4, 3, 1, 16)
        >>> grid = Grid((16,), (0.0,), (1.0,))
        >>> made = pairs(Trajectories(values, torch.arange(3.0), grid, ("u",), ids=(0, 1, 2, 3)))
        >>> made.a.shape, made.u.shape, made[:2].ids
        (torch.Size([4, 1, 16]), torch.Size([4, 3, 16]), (0, 1))
    """

    a: Float[Tensor, "sample in *grid"]
    u: Float[Tensor, "sample out *grid"]
    grid: Grid
    ids: tuple[int, ...]
    times: tuple[float, ...]
    names: tuple[str, ...]
    inputs: tuple[str, ...]
    benchmark: str = "unknown"

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: int | slice | Sequence[int] | Tensor) -> "Pairs":
        """Some of the samples."""
        index = torch.arange(len(self))[rows].reshape(-1)
        return replace(
            self, a=self.a[index], u=self.u[index], ids=tuple(self.ids[i] for i in index)
        )

    def select(self, rows: Sequence[int]) -> "Pairs":
        """Some of the samples, in the same place: what is read as it is asked for stays so."""
        if isinstance(self.a, Tensor):
            return self[list(rows)]
        ids = tuple(self.ids[i] for i in rows)
        return replace(self, a=self.a.select(rows), u=self.u.select(rows), ids=ids)

    @property
    def n_times(self) -> int:
        """Frames of each field in u."""
        return len(self.times)

    @property
    def n_input(self) -> int:
        """Frames of each input field that changes in time; 0 if none does."""
        return max((self.widths[name] for name in self.inputs if name in self.names), default=0)

    @property
    def widths(self) -> dict[str, int]:
        """Channels of each input field."""
        return field_widths(self.inputs, self.names, in_channels=self.a.shape[1])

    def fields(self, a: Tensor | None = None) -> dict[str, Float[Tensor, "sample frame *grid"]]:
        """The input's fields by name, or those of other inputs with the same channels.

        A field that changes in time has `n_input` frames, a static field has one.
        """
        a = self.a[:] if a is None else a
        return dict(zip(self.inputs, a.split(list(self.widths.values()), dim=1), strict=True))

    def trajectory(self, u: Tensor | None = None) -> Float[Tensor, "sample time field *grid"]:
        """`u`, or a prediction of it, as trajectories."""
        u = self.u if u is None else u
        fields = u.reshape(len(u), len(self.names), self.n_times, *u.shape[2:])
        return fields.transpose(1, 2)


def field_widths(
    inputs: Sequence[str],
    names: Sequence[str],
    *,
    in_channels: int = 0,
    n_input: int | None = None,
) -> dict[str, int]:
    """Channels of each input field: its frames if the solution has the field, else one.

    Args:
        inputs: Names of the input's fields.
        names: Names of the solution's fields.
        in_channels: Channels of the input, which give the number of frames.
        n_input: Frames of each field that changes in time, if they are known instead.

    Example:
        >>> field_widths(("h", "u", "bed"), ("h", "u"), in_channels=7)
        {'h': 3, 'u': 3, 'bed': 1}
    """
    moving = sum(name in names for name in inputs)
    if n_input is None:
        n_input = (in_channels - (len(inputs) - moving)) // max(1, moving)
    return {name: n_input if name in names else 1 for name in inputs}


def pairs(
    trajectories: Trajectories,
    *,
    inputs: Sequence[str] | None = None,
    n_input: int = 1,
    benchmark: str = "unknown",
) -> Pairs:
    """Pairs (first frames, all frames) of trajectories, in float32.

    Args:
        trajectories: Trajectories of any float type.
        inputs: Names of the fields that a holds: channels, of which the first `n_input` frames
            are taken, and static fields. None: all channels, and the static fields after them;
            of one frame, a steady solution, only the static fields if there are any.
        n_input: Frames in the input.
        benchmark: Passed on.
    """
    values, names = trajectories.values, trajectories.names
    if not 1 <= n_input <= values.shape[1]:
        raise ValueError(
            f"`n_input` must be in 1..{values.shape[1]}, the number of frames, got {n_input}."
        )
    if inputs is None:
        steady = values.shape[1] == 1 and trajectories.static_names
        inputs = trajectories.static_names if steady else (*names, *trajectories.static_names)
    known = (*names, *trajectories.static_names)
    unknown = [name for name in inputs if name not in known]
    if unknown or not inputs:
        raise ValueError(f"`inputs` must be some of {', '.join(known)}, got {tuple(inputs)}.")
    fields = []
    for name in inputs:
        if name in names:
            fields.append(values[:, :n_input, names.index(name)])
        elif trajectories.static is not None:
            row = trajectories.static_names.index(name)
            fields.append(trajectories.static[:, row : row + 1])
    a = torch.cat(fields, dim=1).float()
    u = values.transpose(1, 2).flatten(1, 2).float().contiguous()
    times = tuple(map(float, trajectories.times))
    return Pairs(a, u, trajectories.grid, trajectories.ids, times, names, tuple(inputs), benchmark)


@dataclass(frozen=True)
class Split:
    """Which samples train, which select the model, and which are reported.

    Schemes:
        default: 80 / 10 / 10 % of the samples in an order shuffled once and for all.
        paper: the first 90 % train; the last 10 % both select and are reported.
        paper_first: as some published loaders have it, the first 10 % select and are reported.
        deduplicated: as default, of samples that differ: of equal ones only the first is used.

    Example:
        >>> made = split(20)
        >>> [len(part) for part in (made.train, made.validation, made.test)], len(made.ids("all"))
        ([16, 2, 2], 20)
    """

    scheme: Scheme
    train: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def ids(self, split: SplitName) -> tuple[int, ...]:
        """The samples of one split; "all": every sample of the scheme once, in file order."""
        if split not in get_args(SplitName):
            hint = ""
            if split in get_args(Scheme):
                hint = f" For that scheme, pass scheme={split!r}."
            raise ValueError(
                f"`split` must be one of {', '.join(get_args(SplitName))}, got {split!r}.{hint}"
            )
        if split == "all":
            return tuple(sorted({*self.train, *self.validation, *self.test}))
        return getattr(self, split)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the ids as JSON."""
        entries = {k: getattr(self, k) for k in ("scheme", "train", "validation", "test")}
        Path(path).write_text(json.dumps(entries))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Split":
        """The split that `save` wrote."""
        entries = read_json(Path(path))
        return cls(entries.pop("scheme"), **{k: tuple(v) for k, v in entries.items()})


def split(n_samples: int, scheme: Scheme = "default", digests: Sequence[bytes] = ()) -> Split:
    """Divide samples 0 … n_samples − 1.

    Args:
        n_samples: At least 3, of which each split gets at least one.
        scheme: See `Split`.
        digests: Digests of the samples, for "deduplicated": equal samples have equal ones.

    Example:
        >>> split(10, "paper").test
        (9,)
    """
    check_choice("scheme", scheme, Scheme)
    ids = np.arange(n_samples)
    if scheme == "deduplicated":
        first = {digest: i for i, digest in reversed(list(enumerate(digests)))}
        ids = np.asarray(sorted(first.values()))
    tenth = max(1, len(ids) // 10)
    if len(ids) < 3:
        raise ValueError(f"A split needs at least 3 samples that differ, got {len(ids)}.")

    def plain(rows: np.ndarray) -> tuple[int, ...]:
        return tuple(int(i) for i in rows)

    if scheme == "paper":
        return Split(scheme, plain(ids[:-tenth]), plain(ids[-tenth:]), plain(ids[-tenth:]))
    if scheme == "paper_first":
        return Split(scheme, plain(ids[tenth:]), plain(ids[:tenth]), plain(ids[:tenth]))
    order = np.random.default_rng(0).permutation(ids)
    test, validation, train = order[:tenth], order[tenth : 2 * tenth], order[2 * tenth :]
    return Split(scheme, plain(np.sort(train)), plain(np.sort(validation)), plain(np.sort(test)))
