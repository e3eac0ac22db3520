"""Files: what is read is what was written, or an error."""

import h5py
import numpy as np
import pytest
import torch
from data.tiny import Tiny, TinyGroups

from sfo.data.generate import generate
from sfo.data.hdf5 import DataFile, DataFileError

KINDS = [Tiny(), TinyGroups()]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def made(request, tmp_path):
    kind = request.param
    path = generate(kind, tmp_path / "file.hdf5", scale="smoke", workers=1)
    return kind, path


def read_all(path):
    file = DataFile(path)
    values = file[:]
    return values.values, values.static, values.times, values.grid, values.names


def same(one, two):
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(one, two, strict=True)
    )


def test_reads_what_the_solver_made(made):
    kind, path = made
    scale = kind.scale("smoke")
    truth = kind.simulate(0, range(scale.samples), scale)
    found = DataFile(path)[:]
    assert torch.equal(found.values, truth.values.float())
    assert found.grid == truth.grid
    assert torch.equal(found.times, truth.times)
    if truth.static is not None:
        assert torch.equal(found.static, truth.static.float())


def test_strides_take_every_rth_point_from_the_first(made):
    _, path = made
    whole, part = DataFile(path)[:], DataFile(path, stride=2, time_stride=2)[[3, 1]]
    space = (slice(None, None, 2),) * whole.grid.n_dim
    every = slice(None)
    expected = whole.values[[3, 1]][(every, slice(None, None, 2), every, *space)]
    assert torch.equal(part.values, expected)
    assert part.ids == (3, 1)
    x = whole.grid.coordinates()[0][::2]
    assert torch.allclose(part.grid.coordinates()[0], x)


def test_published_tools_find_their_layout(made):
    """Other loaders read `tensor` or the sorted groups, and nothing else is in their way."""
    kind, path = made
    with h5py.File(path) as file:
        if kind.layout == "tensor":
            assert file["tensor"].shape == (10, 4, 8)
            assert file["t-coordinate"].shape == (4,)
            np.testing.assert_allclose(file["x-coordinate"], np.linspace(-1, 1, 9)[:-1])
        else:
            assert sorted(file) == [f"{i:04d}" for i in range(5)]
            assert file["0002/data"].shape == (3, 4, 4, 2)
            assert file["0002/grid/y"].shape == (4,)
            data = np.stack([file[k]["data"] for k in file])
            np.testing.assert_array_equal(
                file["0000/global_maximums"], np.abs(data).max(axis=(0, 1, 2, 3))
            )


def test_every_truncation_is_refused(made):
    _, path = made
    whole = path.read_bytes()
    cut = path.with_name("cut.hdf5")
    for length in range(0, len(whole), 1 if len(whole) < 4000 else 7):
        cut.write_bytes(whole[:length])
        with pytest.raises(DataFileError):
            read_all(cut)


def test_no_flipped_bit_is_read_silently_wrong(made):
    _, path = made
    whole = bytearray(path.read_bytes())
    truth = read_all(path)
    rng = np.random.default_rng(0)
    flipped = path.with_name("flipped.hdf5")
    noticed = 0
    for _ in range(400):
        place, bit = rng.integers(len(whole)), rng.integers(8)
        whole[place] ^= 1 << bit
        flipped.write_bytes(whole)
        whole[place] ^= 1 << bit
        try:
            found = read_all(flipped)
        except DataFileError:
            noticed += 1
            continue
        assert same(found, truth), f"bit {bit} of byte {place} changed what was read"
    assert noticed > 20


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello", "not an HDF5 file"),
        (b"", "not an HDF5 file"),
        (b"<!DOCTYPE html>", "web page"),
        (b"version https://git-lfs", "LFS pointer"),
        (b"\x89HDF\r\n\x1a\n123", "truncated or damaged"),
    ],
)
def test_other_files_are_named_for_what_they_are(tmp_path, content, message):
    path = tmp_path / "file.hdf5"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=message):
        DataFile(path)


def test_missing_files_folders_and_strangers(tmp_path):
    with pytest.raises(DataFileError, match="no file"):
        DataFile(tmp_path / "nothing.hdf5")
    with pytest.raises(DataFileError, match="is a folder"):
        DataFile(tmp_path)
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["weights"] = np.zeros(3)
    with pytest.raises(DataFileError, match="this one holds weights"):
        DataFile(tmp_path / "other.hdf5")


def test_a_stride_need_not_divide_the_grid(made):
    """Every third of the points, at the places where they were."""
    whole, third = DataFile(made[1]), DataFile(made[1], stride=3)
    torch.testing.assert_close(
        third.grid.coordinates()[0], whole.grid.coordinates()[0][::3], rtol=0, atol=1e-15
    )
    assert not third.grid.periodic
    few = third[:1].values
    every = (slice(None),) * 3
    strided = (slice(None, None, 3),) * whole.grid.n_dim
    assert torch.equal(few, whole[:1].values[(*every, *strided)])


def test_a_stride_that_leaves_no_second_point_is_refused(made):
    with pytest.raises(ValueError, match="`stride` must be between 1 and"):
        DataFile(made[1], stride=1000)
