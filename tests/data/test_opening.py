"""Damaged and malicious files: one sentence, and neither another file nor memory is touched."""

import os
import struct
import zipfile

import h5py
import numpy as np
import pytest

from sfo.data import opening
from sfo.data.doctor import examine
from sfo.data.hdf5 import DataFile
from sfo.data.header import DataFileError
from sfo.data.sources import holds_arrays, load_inputs, open_data

A = np.linspace(-1, 1, 5 * 8).reshape(5, 1, 8).astype("f4")


def npy(header):
    """The bytes of a .npy file with a header and no numbers."""
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()


def header(shape, dtype="<f4"):
    return f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}\n"


NUMPY = {
    "more than there is": npy(header("(1099511627776, 1, 16)")),
    "more than is free": npy(header("(300000000, 1, 16)")),
    "negative": npy(header("(-5, 1, 16)")),
    "objects": npy(header("(2, 1, 16)", "|O")) + bytes(1000),
    "cut": npy(header("(5, 1, 8)"))[:20],
    "deep": npy("[" * 9000),
    "deeper": npy("-" * 9000),
    "version": b"\x93NUMPY\x09\x00" + bytes(100),
    "text": b"hello",
    "nothing": b"",
}


@pytest.mark.parametrize("name", NUMPY)
def test_numpy_files_that_lie_are_refused_before_memory_is_taken(name, tmp_path):
    """A declared size was allocated, and a damaged header ended in a traceback."""
    (tmp_path / "lies.npy").write_bytes(NUMPY[name])
    with zipfile.ZipFile(tmp_path / "lies.npz", "w") as parts:
        parts.writestr("a.npy", NUMPY[name])
        parts.writestr("u.npy", NUMPY[name])
    for path in (tmp_path / "lies.npy", tmp_path / "lies.npz"):
        with pytest.raises(ValueError, match=r"lies.* is neither a .npy or .npz file of numbers"):
            load_inputs(path)
        with pytest.raises(ValueError, match=r"lies.* is neither a .npy or .npz file of numbers"):
            open_data(path)


def test_arrays_larger_than_the_memory_are_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "zeros.npz", a=np.zeros((9, 1, 99)), u=np.zeros((9, 1, 99)))
    monkeypatch.setattr(opening, "free_memory", lambda: 20_000.0)
    with pytest.raises(ValueError, match=r"takes 0.0 GB in memory.*with np.savez, or as HDF5"):
        open_data(tmp_path / "zeros.npz")
    assert load_inputs(tmp_path / "zeros.npz").shape == (9, 1, 99)


def test_a_small_file_that_inflates_to_gigabytes_is_not_read(tmp_path, monkeypatch):
    """Memory being free, 10 MB were inflated to 10 GB. What is declared is refused, unread."""
    monkeypatch.setattr(opening, "free_memory", lambda: 1e15)
    monkeypatch.setattr(opening, "MOST_INFLATED", 4e8, raising=False)
    with zipfile.ZipFile(
        tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED, compresslevel=1
    ) as parts:
        for name in ("a", "u"):
            with parts.open(f"{name}.npy", "w", force_zip64=True) as part:
                part.write(npy(header((500, 1, 125_000))))
                for _ in range(25):
                    part.write(bytes(10_000_000))
    assert (tmp_path / "bomb.npz").stat().st_size < 5e6
    monkeypatch.setattr(np.lib.format, "read_array", None)
    with pytest.raises(ValueError, match=r"takes 0.5 GB in memory, and 0.4 GB may be taken"):
        open_data(tmp_path / "bomb.npz")


def test_large_arrays_without_compression_are_read_by_rows(tmp_path, monkeypatch):
    """They take no memory, have the same numbers, and damage and changes are noticed."""
    rng = np.random.default_rng(0)
    a, u = rng.normal(size=(2, 40, 2, 99)).astype(">f8")
    path = tmp_path / "mine.npz"
    np.savez(path, a=a, u=np.asfortranarray(u), times=[0.0, 0.5])
    whole = open_data(path)
    monkeypatch.setattr(opening, "LARGE", 1)
    monkeypatch.setattr(opening, "free_memory", lambda: 2 * u.nbytes + 100.0)
    rows = open_data(path)
    assert rows.check() == whole.check()
    assert rows.times == (0.0, 0.5)
    assert rows.a[[4, 0, 4]].equal(whole.a[[4, 0, 4]])
    np.testing.assert_array_equal(load_inputs(path)[3], a[3])
    np.savez(path, a=2 * a, u=u)
    with pytest.raises(DataFileError, match="was written again while it was read"):
        rows.a[[0]]
    content = bytearray(path.read_bytes())
    content[content.index((2 * a).tobytes()) + 11] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged: its checksum does not match"):
        open_data(path)


def tensor(file, key="tensor"):
    file[key] = np.zeros((4, 3, 8), "f4")


def hdf5(folder, **parts):
    """A file with arrays, links and groups."""
    path = folder / "made.h5"
    with h5py.File(path, "w") as file:
        for name, value in parts.items():
            file[name.replace("__", "/")] = value
    return path


@pytest.fixture
def other(tmp_path):
    """A file of others, with everything in it."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["a"] = file["g/a"] = A
        file["time"] = np.arange(4.0)
        file["t0_fields/rho"] = np.ones((5, 4, 8), "f4")
    return h5py.ExternalLink(str(tmp_path / "other.h5"), "a")


def well(folder, **changed):
    parts = {"t0_fields__rho": np.ones((5, 4, 8), "f4"), "dimensions__time": np.arange(4.0)}
    return hdf5(folder, **{**parts, "dimensions__x": np.arange(8.0), **changed})


def test_links_to_other_files_are_refused_at_any_depth(tmp_path, other):
    """A soft link to an external one, and external parts of The Well's layout, were followed."""
    to_other = h5py.ExternalLink(other.filename, "t0_fields")
    files = [
        lambda: hdf5(tmp_path, a=h5py.SoftLink("/g/a"), g__a=other, u=A),
        lambda: hdf5(tmp_path, a=h5py.SoftLink("/g/a"), g=h5py.ExternalLink(other.filename, "g")),
        lambda: well(tmp_path, dimensions__time=h5py.ExternalLink(other.filename, "time")),
        lambda: hdf5(tmp_path, dimensions__x=np.arange(8.0), t0_fields=to_other),
        lambda: hdf5(tmp_path, tensor=np.ones((2, 3, 8), "f4"), deep__in__it=other),
    ]
    for make in files:
        path = make()
        for read in (open_data, load_inputs, DataFile):
            with pytest.raises(DataFileError, match="in another file; copy it into one"):
                read(path)
        assert "in another file" in str(examine(path))


def virtual():
    layout = h5py.VirtualLayout((8,), "f8")
    layout[:] = h5py.VirtualSource("other.h5", "time", (8,))
    return layout


@pytest.mark.parametrize("name", ["dimensions/x", "t0_fields/rho", "x-coordinate"])
def test_no_array_is_kept_elsewhere(name, tmp_path, other):
    path = well(tmp_path)
    with h5py.File(path, "a") as file:
        if name == "x-coordinate":
            del file["t0_fields"], file["dimensions"]
            file["tensor"], file["t-coordinate"] = np.zeros((2, 3, 8), "f4"), np.arange(3.0)
        else:
            del file[name]
        file.create_virtual_dataset(name, virtual())
    with pytest.raises(DataFileError, match="in another file"):
        open_data(path)


BROKEN = {
    "nothing in it": dict(a=h5py.Empty("f4"), u=A),
    "one number": dict(a=1.0, u=1.0),
    "text": dict(a="hello", u="hello"),
    "groups": dict(a__x=A, u__x=A),
    "links in a circle": dict(a=h5py.SoftLink("/u"), u=h5py.SoftLink("/a")),
    "a link to nothing": dict(a=h5py.SoftLink("/x"), u=h5py.SoftLink("/x")),
    "times in text": dict(dimensions__time="now", dimensions__x=A[0, 0], t0_fields__rho=A),
    "a field in a group": dict(
        t0_fields__rho__x=A, dimensions__time=A[0, 0], dimensions__x=A[0, 0]
    ),
    "no number as a place": dict(
        t0_fields__rho=np.ones((5, 4, 8), "f4"),
        dimensions__time=np.arange(4.0),
        dimensions__x=np.full(8, np.nan),
    ),
    "coordinates in a group": dict(
        tensor=np.zeros((2, 3, 8), "f4"), **{"x-coordinate__x": A, "t-coordinate__x": A}
    ),
    "coordinates in text": dict(
        tensor=np.zeros((2, 3, 8), "f4"), **{"x-coordinate": "x", "t-coordinate": "t"}
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_not_an_array_is_said_in_a_sentence(name, tmp_path):
    path = hdf5(tmp_path, **BROKEN[name])
    with pytest.raises((ValueError, OSError)):
        open_data(path).check()
    assert examine(path).problems


@pytest.mark.parametrize("text", ["null", "5", "[]", "{", "[" * 50_000, '{"format": 1}'])
def test_a_damaged_header_is_said_in_a_sentence(text, tmp_path):
    path = hdf5(tmp_path, tensor=np.zeros((2, 3, 8), "f4"))
    with h5py.File(path, "a") as file:
        file.attrs["sfo"] = text
    with pytest.raises(DataFileError, match="cannot be read"):
        DataFile(path)
    assert "cannot be read" in str(examine(path))


def test_the_doctor_bears_what_is_not_an_array(tmp_path):
    """The second sample's coordinates are a group: that ended in a traceback."""
    path = tmp_path / "groups.h5"
    with h5py.File(path, "w") as file:
        for key in ("0000", "0001"):
            file[f"{key}/data"] = np.ones((3, 8, 8, 3), "f4")
            for axis, n in (("x", 8), ("y", 8), ("t", 3)):
                file[f"{key}/grid/{axis}"] = np.arange(n) / n
        del file["0001/grid/x"]
        file["0001/grid/x/deep"] = 1.0
    assert "cannot be read" in str(examine(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_not_waited_for(tmp_path):
    """Nobody writes to it, so that reading it would never end."""
    os.mkfifo(tmp_path / "pipe")
    for read in (open_data, load_inputs, holds_arrays, DataFile, examine):
        with pytest.raises(DataFileError, match="is a pipe or a device"):
            read(tmp_path / "pipe")
