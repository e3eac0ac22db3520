"""Files without our header: known by what is in them."""

import h5py
import numpy as np
import pytest
import torch
from data.stripped import make, strip

from sfo.data.benchmarks import Scale
from sfo.data.hdf5 import DataFile, DataFileError

NAMES = {
    "allen_cahn": "allen_cahn",
    "cahn_hilliard": "cahn_hilliard",
    "diffusion_reaction": "diffusion_reaction",
    "diffusion_reaction_f32": "diffusion_reaction",
    "diffusion_sorption": "diffusion_sorption",
    "shallow_water": "shallow_water",
    "shallow_water_rdb": "shallow_water_rdb",
    "maxwell": "maxwell",
}
TENSORS = ("allen_cahn", "cahn_hilliard", "diffusion_reaction")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A generated file and its stripped copy, by benchmark."""
    folder = tmp_path_factory.mktemp("made")
    made = {name: make(folder, name) for name in NAMES}
    return {name: (path, strip(path, folder / f"{name}-bare.h5")) for name, path in made.items()}


def tensor_file(path, u, x, t):
    with h5py.File(path, "w") as file:
        file["tensor"], file["x-coordinate"], file["t-coordinate"] = u, x, t
    return path


def subset(source, path, *index):
    """Some samples, frames and points of a `tensor` file."""
    with h5py.File(source) as file:
        u, x, t = (file[k][()] for k in ("tensor", "x-coordinate", "t-coordinate"))
    samples, frames, points = index
    return tensor_file(path, u[samples][:, frames, points], x[points], t[frames])


@pytest.mark.parametrize("name", NAMES)
def test_known_by_its_contents(files, name):
    """Benchmark, grid, times and numbers are those that the header had."""
    ours, bare = map(DataFile, files[name])
    assert not bare.sealed
    assert bare.benchmark == NAMES[name]
    assert bare.grid == ours.grid
    assert bare.names == ours.names
    np.testing.assert_allclose(bare.times, ours.times, rtol=1e-7)
    read, truth = bare[:], ours[:]
    assert torch.equal(read.values, truth.values)
    assert read.static_names == truth.static_names
    assert read.static is None or torch.equal(read.static, truth.static)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("time_stride", [1, 3])
def test_subsets_of_tensors(files, tmp_path, name, stride, time_stride):
    """A few samples, every second point, every third frame: still known, and in the same box."""
    every, frames = slice(None, None, stride), slice(None, None, time_stride)
    part = subset(files[name][0], tmp_path / "part.h5", slice(2, 6), frames, every)
    found, whole = DataFile(part), DataFile(files[name][0], stride, time_stride)
    assert found.benchmark == name
    assert found.grid == whole.grid
    assert found.times == whole.times
    assert torch.equal(found[:].values, whole[2:6].values)


@pytest.mark.parametrize("name", ["diffusion_sorption", "shallow_water_rdb", "maxwell"])
def test_subsets_of_groups(files, tmp_path, name):
    """Other keys than the published ones, every second point of each axis."""
    whole = DataFile(files[name][0], stride=2)
    with h5py.File(files[name][0]) as source, h5py.File(tmp_path / "part.h5", "w") as part:
        for key in ("0001", "0004"):
            data, axes = source[key]["data"][()], source[key]["grid"]
            every = (slice(None), *[slice(None, None, 2)] * (data.ndim - 2))
            part[f"{key}/data"], part[f"{key}/grid/t"] = data[every], axes["t"][()]
            for axis in "xyz"[: data.ndim - 2]:
                part[f"{key}/grid/{axis}"] = axes[axis][::2]
    found = DataFile(tmp_path / "part.h5")
    assert (found.benchmark, found.grid) == (name, whole.grid)
    assert torch.equal(found[:].values, whole[[1, 4]].values)


def test_one_time_too_many(files, tmp_path):
    """The published Diffusion–Reaction file: 101 frames, 102 times in float32."""
    with h5py.File(files["diffusion_reaction"][0]) as file:
        u, x = file["tensor"][()], file["x-coordinate"][()].astype("f4")
    times = np.linspace(0, 1.1, 12, dtype="f4")
    found = DataFile(tensor_file(tmp_path / "long.h5", u, x, times))
    assert found.benchmark == "diffusion_reaction"
    assert found.times == (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
    assert found.grid == DataFile(files["diffusion_reaction"][0]).grid


def test_a_stagnating_reaction_is_still_diffusion_reaction(tmp_path):
    """As published: float32, steps of 2⁻²², frames 0.01 apart."""
    scale = Scale(samples=3, n=32, frames=101)
    made = make(tmp_path, "diffusion_reaction_f32", 3, scale, max_step=2.0**-22)
    found = DataFile(strip(made, tmp_path / "bare.h5"))
    assert found.benchmark == "diffusion_reaction"
    assert found.header.source["misfit"] < 0.05


@pytest.mark.parametrize("gamma", [1e-6, 1e-5])
def test_the_constant_of_cahn_hilliard_is_found(tmp_path, gamma):
    """Sources disagree on γ; the data decide."""
    scale = Scale(samples=3, n=128, frames=11)
    made = make(tmp_path, "cahn_hilliard", 3, scale, gamma=gamma)
    found = DataFile(strip(made, tmp_path / "bare.h5")).header
    assert found.benchmark == "cahn_hilliard"
    assert found.source["equation"]["gamma"] == gamma


@pytest.mark.parametrize(("lower", "n"), [(0.0, 64), (-1.0, 64)])
def test_other_equations_are_not_taken_for_ours(tmp_path, lower, n):
    """Waves that travel, u(x − t), in either box."""
    x = np.linspace(lower, 1, n, endpoint=False)
    t = np.linspace(0, 1, 11)
    u = [0.5 + 0.5 * np.sin(2 * np.pi * k * (x - t[:, None])) for k in (1, 2, 3)]
    found = DataFile(tensor_file(tmp_path / "waves.h5", np.asarray(u, "f4"), x, t))
    assert found.benchmark == "unknown"
    np.testing.assert_allclose(found.grid.coordinates()[0], x, atol=1e-6)


@pytest.mark.parametrize("content", ["nan", "zero", "constant", "huge"])
def test_broken_numbers_have_no_equation(tmp_path, content):
    value = {"nan": np.nan, "zero": 0.0, "constant": 0.3, "huge": 1e30}[content]
    u = np.full((4, 5, 32), value, "f4")
    u[:, 1:] *= 2 if content == "huge" else 1
    x, t = np.linspace(-1, 1, 32, endpoint=False), np.linspace(0, 1, 5)
    assert DataFile(tensor_file(tmp_path / "u.h5", u, x, t)).benchmark == "unknown"


def test_both_ends_of_the_period(tmp_path):
    """Points that include both ends keep their coordinates; the box is a step longer."""
    x, t = np.linspace(-1, 1, 33), np.linspace(0, 1, 3)
    u = np.exp(-t[:, None]) * np.cos(np.pi * x)
    grid = DataFile(tensor_file(tmp_path / "u.h5", u[None], x, t)).grid
    np.testing.assert_allclose(grid.coordinates()[0], x, atol=1e-6)


def test_boxes_elsewhere_keep_their_coordinates(files, tmp_path):
    """Maxwell's window counted from its centre."""
    with h5py.File(files["maxwell"][1]) as source, h5py.File(tmp_path / "m.h5", "w") as file:
        source.copy("0000", file)
        for axis in "xyz":
            file[f"0000/grid/{axis}"][...] -= np.float32(2e-6)
        x = file["0000/grid/x"][()]
    found = DataFile(tmp_path / "m.h5").grid
    assert found.lower[0] == pytest.approx(-2e-6)
    np.testing.assert_allclose(found.coordinates()[0], x, atol=1e-11)


def test_swapped_axes_are_named(files, tmp_path):
    """The message says which order was found and how to put it right."""
    with h5py.File(files["allen_cahn"][0]) as file:
        u, x, t = (file[k][()] for k in ("tensor", "x-coordinate", "t-coordinate"))
    path = tensor_file(tmp_path / "swapped.h5", u.transpose(0, 2, 1), x, t)
    expected = r"\(sample, x, time\).*np\.transpose\(…, \(0, 2, 1\)\)"
    with pytest.raises(DataFileError, match=expected):
        DataFile(path)
    path = tensor_file(tmp_path / "cycled.h5", u.transpose(2, 0, 1), x, t)
    with pytest.raises(DataFileError, match=r"\(x, sample, time\).*\(1, 2, 0\)"):
        DataFile(path)


@pytest.mark.parametrize(
    ("name", "order", "message"),
    [
        ("diffusion_sorption", (1, 0, 2), r"\(x, time, channel\).*\(1, 0, 2\)"),
        ("diffusion_sorption", (0, 2, 1), r"\(time, channel, x\).*\(0, 2, 1\)"),
        ("maxwell", (0, 4, 1, 2, 3), r"\(time, channel, x, y, z\).*\(0, 2, 3, 4, 1\)"),
    ],
)
def test_swapped_axes_of_groups(files, tmp_path, name, order, message):
    with h5py.File(files[name][1]) as source, h5py.File(tmp_path / "s.h5", "w") as file:
        for key in ("0000", "0001"):
            source.copy(key, file)
            del file[key]["data"]
            file[key]["data"] = source[key]["data"][()].transpose(order)
    with pytest.raises(DataFileError, match=message):
        DataFile(tmp_path / "s.h5")


def test_missing_and_misshapen_arrays(tmp_path):
    x, t = np.linspace(0, 1, 8, endpoint=False), np.linspace(0, 1, 3)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["tensor"] = np.zeros((2, 3, 8))
    with pytest.raises(DataFileError, match="no `x-coordinate`"):
        DataFile(tmp_path / "x.h5")
    with pytest.raises(DataFileError, match=r"must be \(sample, time 3, x 8\)"):
        DataFile(tensor_file(tmp_path / "rank.h5", np.zeros((2, 3, 8, 1)), x, t))
    with pytest.raises(DataFileError, match="times that do not increase"):
        DataFile(tensor_file(tmp_path / "t.h5", np.zeros((2, 3, 8)), x, t[::-1]))
    with pytest.raises(DataFileError, match="along x that are not increasing"):
        DataFile(tensor_file(tmp_path / "s.h5", np.zeros((2, 3, 8)), x**2, t))
    with pytest.raises(DataFileError, match="holds no sample"):
        DataFile(tensor_file(tmp_path / "e.h5", np.zeros((0, 3, 8)), x, t))
    with h5py.File(tmp_path / "grid.h5", "w") as file:
        file["0000/data"] = np.zeros((3, 8, 1))
    with pytest.raises(DataFileError, match="no sample with all of data, grid/x, grid/t"):
        DataFile(tmp_path / "grid.h5")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["0000/data"] = np.zeros((3, 8, 8, 2))
        file["0000/grid/x"], file["0000/grid/y"], file["0000/grid/t"] = x, x, t
    with pytest.raises(DataFileError, match="channel 1 or 3"):
        DataFile(tmp_path / "two.h5")
