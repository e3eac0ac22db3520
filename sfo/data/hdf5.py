"""Data files: HDF5 in the layouts of the published files, with a checksum of every sample.

Two layouts exist. `tensor` (Allen–Cahn, Cahn–Hilliard, Diffusion–Reaction) is one array
`tensor (sample, time, x)` beside `x-coordinate` and `t-coordinate`. `groups` (Diffusion–Sorption,
Shallow Water, Maxwell) has one group a sample, "0000", "0001", …, with `data (time, *grid,
channel)` and `grid/x`, `grid/t`. Files written here also hold a header, the JSON attribute `sfo`
of the root, and the SHA-256 of each sample, in the dataset `sha256` or in an attribute of the
group: what is read is compared with it, so no damaged number goes unnoticed.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from sfo.data.header import AXES, DataFileError, Header, Layout, Sample
from sfo.data.opening import damage, open_hdf5, own_dataset, refuse_foreign_links
from sfo.data.positions import Position, file_state
from sfo.data.trajectories import Trajectories
from sfo.files import unfinished


def write(
    path: str | os.PathLike[str],
    header: Header,
    samples: Iterable[Sample],
    layout: Layout,
    maxima: np.ndarray | None = None,
) -> None:
    """Write a data file under a temporary name, read it again, then move it to `path`.

    The same header and samples give the same bytes.

    Args:
        path: Where to.
        header: What the samples have in common.
        samples: One by one, so that memory is bounded.
        layout: "tensor" or "groups".
        maxima: Largest value of each channel over the whole set, stored in each group as the
            published Maxwell file has it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(path) as partial:
        try:
            with h5py.File(partial, "w") as file:
                file.attrs["sfo"] = header.to_json()
                store = _write_tensor if layout == "tensor" else _write_groups
                store(file, header, samples, maxima)
        except RuntimeError as error:
            # HDF5 on a full disk: it cannot flush, and says so in many words.
            raise DataFileError(f"Cannot write {path}: is the disk full? Make room.") from error
        _verify(partial, path, header)


def _verify(partial: Path, path: Path, header: Header) -> None:
    """Read every sample again before the file gets its name."""
    try:
        written = DataFile(partial)
        for index in range(len(written)):
            written.raw(index)
    except DataFileError as error:
        raise DataFileError(f"{path} was not written as it should be: {error}") from error
    if written.header != header:
        raise DataFileError(f"{path} was not written as it should be: its header differs.")


def _write_tensor(
    file: h5py.File,
    header: Header,
    samples: Iterable[Sample],
    maxima: np.ndarray | None,
) -> None:
    (n,) = header.grid.shape
    tensor = file.create_dataset("tensor", (header.n_samples, len(header.times), n), "f4")
    digests = file.create_dataset("sha256", (header.n_samples, 32), "u1")
    file["x-coordinate"] = header.grid.coordinates()[0].numpy()
    file["t-coordinate"] = np.asarray(header.times)
    for index, sample in enumerate(samples):
        tensor[index] = sample.data[..., 0]
        digests[index] = np.frombuffer(sample.seal(header, index), np.uint8)


def _write_groups(
    file: h5py.File,
    header: Header,
    samples: Iterable[Sample],
    maxima: np.ndarray | None,
) -> None:
    coordinates = [x.numpy().astype("f4") for x in header.grid.coordinates()]
    config = _yaml({"sim": header.source})
    for index, sample in enumerate(samples):
        group = file.create_group(f"{index:04d}")
        group["data"] = sample.data
        if sample.static is not None:
            group["static"] = sample.static
        if maxima is not None:
            group["global_maximums"] = maxima.astype("f4")
        for axis, x in zip(AXES, coordinates, strict=False):
            group[f"grid/{axis}"] = x
        group["grid/t"] = np.asarray(header.times, "f4")
        group.attrs["config"] = config
        group.attrs["sha256"] = sample.seal(header, index).hex()


def _yaml(entries: dict[str, Any], indent: str = "") -> str:
    lines = []
    for key, value in entries.items():
        if isinstance(value, dict):
            lines.append(f"{indent}{key}:\n{_yaml(value, indent + '  ')}")
        else:
            lines.append(f"{indent}{key}: {json.dumps(value)}\n")
    return "".join(lines)


class DataFile:
    """A data file, read sample by sample when asked; nothing is kept in memory.

    Real published files, files written here and subsets of either are told apart by what is in
    them. Of a file written here every sample is compared with its checksum as it is first read;
    from then on its numbers are read by their position, without HDF5, until the file is changed.

    Args:
        path: The file.
        stride: Take every `stride`-th point along each axis, the first included.
        time_stride: Take every `time_stride`-th frame, the first included.

    Example:
        >>> import tempfile
        >>> from sfo.data.load import load_benchmark
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     pairs = load_benchmark("burgers", scale="smoke", folder=folder, workers=1)
        ...     file = DataFile(next(Path(folder).glob("*.hdf5")), stride=2)
        ...     len(file), file[[0, 5]].grid.shape
        (24, (32,))
    """

    def __init__(self, path: str | os.PathLike[str], stride: int = 1, time_stride: int = 1) -> None:
        self.path = Path(path)
        refuse_foreign_links(self.path)
        with self._open() as file, damage(str(self.path)):
            if "tensor" in file:
                own_dataset(file, "tensor")
            self.layout: Layout = _layout(self.path, file)
            self.sealed = "sfo" in file.attrs
            self.keys = _sample_keys(file) if self.layout == "groups" else []
            self._stored = self._read_header(file)
            found = len(self.keys) if self.layout == "groups" else len(file["tensor"])
        self.n_samples = self._stored.n_samples
        if not found:
            raise DataFileError(f"{self.path} holds no sample.")
        if found != self.n_samples:
            raise DataFileError(
                f"{self.path} holds {found} samples instead of {self.n_samples}: it is damaged "
                "or cut. Delete it and generate or copy it again."
            )
        self.stride, self.time_stride = stride, time_stride
        self._sound = set[int]()
        self._positions: dict[int, tuple[Position, ...]] = {}
        self._state = file_state(self.path)
        if not 1 <= time_stride <= len(self._stored.times):
            raise ValueError(
                f"`time_stride` must be in 1..{len(self._stored.times)}, the number of frames "
                f"in {self.path.name}, got {time_stride}."
            )
        self.grid = self._stored.grid.subsample(stride)
        self.times = self._stored.times[::time_stride]

    @property
    def benchmark(self) -> str:
        """Which benchmark's file this is, by its header or its contents."""
        return self._stored.benchmark

    @property
    def names(self) -> tuple[str, ...]:
        """Of the channels."""
        return self._stored.names

    @property
    def header(self) -> Header:
        """What the samples have in common, as stored, before any stride."""
        return self._stored

    def __len__(self) -> int:
        return self.n_samples

    def __getitem__(self, ids: int | slice | Sequence[int]) -> Trajectories:
        """The trajectories of some samples, in the order asked for."""
        if isinstance(ids, int):
            ids = [ids]
        if isinstance(ids, slice):
            ids = range(self.n_samples)[ids]
        if not len(ids):
            raise ValueError(f"No sample was asked for, of the {self.n_samples} in {self.path}.")
        samples = self._samples(ids)
        values = np.stack([np.moveaxis(s.data, -1, 1) for s in samples])
        static = None
        if samples[0].static is not None:
            static = torch.from_numpy(
                np.stack([np.moveaxis(s.static, -1, 0) for s in samples if s.static is not None])
            )
        return Trajectories(
            torch.from_numpy(values),
            torch.tensor(self.times, dtype=torch.float64),
            self.grid,
            self.names,
            tuple(ids),
            static,
            self._stored.static_names,
        )

    def raw(self, index: int) -> Sample:
        """One sample as stored, all points and frames, compared with its checksum."""
        with self._open() as file:
            return self._checked(file, index)

    def _samples(self, ids: Sequence[int]) -> list[Sample]:
        """Samples at the strides of this file, through HDF5 if one of them is read first now."""
        state = file_state(self.path)
        if state != self._state:
            self._state = state
            self._sound.clear()
            self._positions.clear()
        places = [self._positions.get(i) for i in ids]
        if all(places):
            return [
                self._thinned(Sample(*(array.read(self.path) for array in place or ())))
                for place in places
            ]
        with self._open() as file:
            return [self._thinned(self._checked(file, i)) for i in ids]

    def _thinned(self, sample: Sample) -> Sample:
        every = slice(None, None, self.stride)
        space = (every,) * self.grid.n_dim
        data = sample.data[(slice(None, None, self.time_stride), *space)]
        static = None if sample.static is None else sample.static[space]
        # Copied, because a view would keep the whole sample in memory.
        return Sample(np.ascontiguousarray(data), static)

    def _checked(self, file: h5py.File, index: int) -> Sample:
        if not 0 <= index < self.n_samples:
            raise ValueError(
                f"Sample {index} is not in {self.path.name}, which has 0..{self.n_samples - 1}."
            )
        frames, shape = len(self._stored.times), self._stored.grid.shape
        expected = (frames, *shape, len(self.names))
        where = f"{self.path}, sample {index}"
        is_new = self.sealed and index not in self._sound
        with damage(where):
            if self.layout == "tensor":
                tensor = own_dataset(file, "tensor")
                sample = Sample(tensor[index][..., None])
                seal = bytes(file["sha256"][index]) if is_new else b""
                places = [Position.of(tensor, expected, index)]
            else:
                group = file[self.keys[index]]
                stored = ["data", *(["static"] if self._stored.static_names else [])]
                arrays = [own_dataset(group, key) for key in stored]
                sample = Sample(*(array[()] for array in arrays))
                seal = bytes.fromhex(group.attrs["sha256"]) if is_new else b""
                places = [Position.of(array, array.shape) for array in arrays]
        if sample.data.shape != expected:
            raise DataFileError(
                f"{where} has the shape {sample.data.shape} instead of {expected}, "
                "(time, *grid, channel); run `sfo doctor` on the file."
            )
        for array in (sample.data, sample.static):
            if array is not None and array.dtype.kind != "f":
                raise DataFileError(f"{where} must hold floating-point numbers, got {array.dtype}.")
        if is_new and sample.seal(self._stored, index) != seal:
            raise DataFileError(
                f"{where} does not match its checksum: the file is damaged. "
                "Delete it and generate or copy it again."
            )
        self._sound.add(index)
        if None not in places:
            self._positions[index] = tuple(place for place in places if place)
        return sample

    def _read_header(self, file: h5py.File) -> Header:
        if self.sealed:
            return Header.from_json(str(file.attrs["sfo"]))
        from sfo.data.recognise import recognise

        return recognise(file, self.layout, self.keys)

    @contextmanager
    def _open(self) -> Iterator[h5py.File]:
        with open_hdf5(self.path) as file:
            yield file


def _layout(path: Path, file: h5py.File) -> Layout:
    if "tensor" in file:
        return "tensor"
    keys = list(file.keys())
    if any(isinstance(file.get(k), h5py.Group) and "data" in file[k] for k in keys):
        return "groups"
    found = ", ".join(keys[:5]) or "nothing"
    raise DataFileError(
        f"{path} is none of the benchmarks' files: they hold `tensor`, or groups with `data`; "
        f"this one holds {found}."
    )


def _sample_keys(file: h5py.File) -> list[str]:
    return sorted(k for k in file if isinstance(file[k], h5py.Group))
