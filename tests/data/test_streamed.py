"""Samples that are read as they are asked for are the same as those in memory."""

import h5py
import numpy as np
import pytest
import torch

from sfo.data import load_benchmark
from sfo.data.hdf5 import DataFile, Header, Sample, write
from sfo.data.load import file_pairs, open_benchmark
from sfo.data.rows import Rows
from sfo.data.streamed import streamed_pairs
from sfo.grid import Grid
from sfo.training.batches import batch_shards, fetch


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("data")


@pytest.mark.parametrize("name", ["allen_cahn", "darcy"])
def test_batches_are_those_of_the_set_in_memory(name, folder):
    kept = load_benchmark(name, "smoke", folder=folder, workers=1)
    read = load_benchmark(name, "smoke", folder=folder, stream=True)
    assert isinstance(read.u, Rows)
    assert (read.ids, read.times, read.names, read.grid) == (
        kept.ids,
        kept.times,
        kept.names,
        kept.grid,
    )
    chosen = batch_shards(len(kept), 3, seed=0, epoch=1)
    for workers in (0, 2):
        for one, other in zip(fetch(kept, chosen), fetch(read, chosen, workers), strict=True):
            assert torch.equal(one[0], other[0])
            assert torch.equal(one[1], other[1])
    assert torch.equal(read.select([2, 0]).u[:], kept.u[[2, 0]])


def test_what_is_large_is_read_and_what_is_small_is_kept(folder, monkeypatch):
    assert isinstance(load_benchmark("allen_cahn", "smoke", folder=folder).u, torch.Tensor)
    monkeypatch.setattr("sfo.data.streamed.STREAM_BYTES", 1000)
    assert isinstance(load_benchmark("allen_cahn", "smoke", folder=folder).u, Rows)


def test_test_samples_are_not_kept(folder, monkeypatch):
    """They are read once, at the end; those that are read in every epoch are."""
    read = {
        part: file_pairs(open_benchmark("allen_cahn", "smoke", folder=folder), part, stream=True)
        for part in ("train", "validation", "test")
    }
    held = [pairs.u[[0]] for pairs in read.values()]
    monkeypatch.setattr(DataFile, "__getitem__", lambda file, ids: 1 / 0)
    for part, first in zip(read, held, strict=True):
        if part == "test":
            with pytest.raises(ZeroDivisionError):
                read[part].u[[0]]
        else:
            assert torch.equal(read[part].u[[0]], first)


def test_a_sample_is_read_once_for_both(folder, monkeypatch):
    read = load_benchmark("allen_cahn", "smoke", folder=folder, stream=True)
    asked, checked = [], DataFile._checked

    def count(self, file, index):
        asked.append(index)
        return checked(self, file, index)

    monkeypatch.setattr(DataFile, "_checked", count)
    chosen = batch_shards(len(read), 3, seed=0, epoch=0)
    assert len(list(fetch(read, chosen))) == len(chosen)
    assert sorted(asked) == sorted(read.ids)


@pytest.mark.parametrize("room", [0, 1, 7, 100])
def test_samples_are_kept_as_far_as_there_is_room(room, folder, monkeypatch):
    kept = load_benchmark("allen_cahn", "smoke", folder=folder, workers=1)
    size = kept.a[0].nbytes + kept.u[0].nbytes
    read = streamed_pairs(
        open_benchmark("allen_cahn", "smoke", folder=folder), kept.ids, cache_bytes=room * size
    )
    asked, samples = [], DataFile._samples

    def count(self, ids):
        asked.extend(ids)
        return samples(self, ids)

    monkeypatch.setattr(DataFile, "_samples", count)
    for epoch in range(3):
        asked.clear()
        chosen = batch_shards(len(kept), 3, seed=0, epoch=epoch)
        for one, other in zip(fetch(kept, chosen), fetch(read, chosen, 2), strict=True):
            assert torch.equal(one[0], other[0])
            assert torch.equal(one[1], other[1])
        assert len(asked) == (len(kept) if epoch == 0 else max(0, len(kept) - room))
    # What is handed out can be changed without harm.
    read.u[[0]].zero_()
    assert torch.equal(read.u[[0]], kept.u[[0]])


def test_damage_and_nan_are_found_when_they_are_read(tmp_path):
    grid = Grid((8,), lower=(0.0,), upper=(1.0,), periodic=True)
    header = Header("mine", 3, grid, (0.0, 1.0), ("u",))
    values = np.zeros((3, 2, 8, 1), "f4")
    values[1, 1, 5, 0] = np.nan
    write(tmp_path / "file.hdf5", header, map(Sample, values), "tensor")
    pairs = file_pairs(DataFile(tmp_path / "file.hdf5"), "all", stream=True)
    assert pairs.u[[0, 2]].isfinite().all()
    with pytest.raises(
        ValueError, match=r"Sample 1 of `u` .* NaN .* channel 1 at the point \(5,\)"
    ):
        pairs.u[[1]]


def stored(path, values, **how):
    """Samples (time, x, channel) in a group each, as the published files have them."""
    with h5py.File(path, "w", userblock_size=512) as file:
        for index, sample in enumerate(values):
            group = file.create_group(f"{index:04d}")
            group.create_dataset("data", data=sample, **how)
            group["grid/x"] = np.linspace(0, 1, sample.shape[1]).astype("f4")
            group["grid/t"] = np.arange(len(sample)).astype("f4")


@pytest.mark.parametrize(
    ("how", "by_position"),
    [
        (dict(dtype="<f4"), True),
        (dict(dtype=">f8"), True),
        (dict(dtype="f4", chunks=(1, 4, 1), compression="gzip"), False),
    ],
    ids=["float32", "float64 of the other order", "compressed"],
)
def test_a_sample_read_by_position_is_what_hdf5_reads(how, by_position, tmp_path):
    values = np.random.default_rng(0).random((4, 5, 16, 1)).astype("f4")
    stored(tmp_path / "file.hdf5", values, **how)
    file = DataFile(tmp_path / "file.hdf5", stride=2, time_stride=3)
    first, again = file[[2, 0]], file[[2, 0]]
    assert set(file._positions) == ({0, 2} if by_position else set())
    assert torch.equal(first.values, again.values)
    assert np.array_equal(again.values[:, :, 0], values[[2, 0], ::3, ::2, 0])


def test_a_file_that_was_replaced_is_read_and_checked_anew(tmp_path):
    grid = Grid((8,), lower=(0.0,), upper=(1.0,), periodic=True)
    header = Header("mine", 3, grid, (0.0, 1.0), ("u",))
    values, path = np.random.default_rng(0).random((3, 2, 8, 1)).astype("f4"), tmp_path / "f.hdf5"
    write(path, header, map(Sample, values), "tensor")
    file = DataFile(path)
    assert all(np.array_equal(file[[0]].values[0, :, 0], values[0, :, :, 0]) for _ in range(2))
    write(path, header, map(Sample, values[::-1]), "tensor")
    assert np.array_equal(file[[0]].values[0, :, 0], values[2, :, :, 0])
    pairs = streamed_pairs(file, [0, 1, 2])
    assert np.array_equal(pairs.u[[0, 1]], values[[2, 1], ..., 0])
    with h5py.File(path, "r+") as changed:
        changed["tensor"][0, 0, 0] += 1
    with pytest.raises(OSError, match="does not match its checksum"):
        pairs.u[[0, 1]]
    with pytest.raises(OSError, match="does not match its checksum"):
        file[[0]]
