"""Files of the user's own: what is in them, and what is refused."""

import re

import h5py
import numpy as np
import pytest
import torch
from tiny import Tiny

from sfo.data.generate import generate
from sfo.data.load import load_file
from sfo.data.pairs import pairs
from sfo.data.sources import load_inputs, open_data, own_name

RNG = np.random.default_rng(0)
A, U = RNG.normal(size=(6, 1, 8)).astype("f4"), RNG.normal(size=(6, 4, 8)).astype("f4")


@pytest.fixture
def well(tmp_path):
    """A file in The Well's layout with all kinds of fields, written out axis by axis."""
    path = tmp_path / "flow.hdf5"
    numbers = {
        "density": RNG.normal(size=(3, 4, 5, 6)),
        "velocity": RNG.normal(size=(3, 4, 5, 6, 2)),
        "viscosity": RNG.normal(size=(5, 6)),
        "depth": RNG.normal(size=(3, 6)),
    }
    varying = {
        "density": ("t0_fields", True, True, (True, True)),
        "velocity": ("t1_fields", True, True, (True, True)),
        "viscosity": ("t0_fields", False, False, (True, True)),
        "depth": ("t0_fields", True, False, (False, True)),
    }
    with h5py.File(path, "w") as file:
        file.attrs["n_spatial_dims"] = 2
        file["dimensions/time"] = np.linspace(0, 1, 4)
        file["dimensions/x"], file["dimensions/y"] = np.arange(5) / 5, 2 + np.arange(6) / 2
        file["dimensions"].attrs["spatial_dims"] = ["x", "y"]
        for name, (group, by_sample, by_time, axes) in varying.items():
            file[f"{group}/{name}"] = numbers[name].astype("f4")
            attributes = file[f"{group}/{name}"].attrs
            attributes["sample_varying"], attributes["time_varying"] = by_sample, by_time
            attributes["dim_varying"] = axes
        for axis in "xy":
            border = file.create_group(f"boundary_conditions/{axis}_periodic")
            border.attrs["bc_type"] = "PERIODIC"
    return path, numbers


def test_the_wells_layout(well):
    """Scalars and components of vectors are fields; what is constant in time is input alone."""
    path, numbers = well
    data = open_data(path, n_input=2)
    assert data.names == ("density", "velocity_x", "velocity_y")
    assert data.inputs == (*data.names, "depth", "viscosity")
    assert data.grid.shape == (5, 6)
    assert data.grid.periodic
    assert data.grid.upper == pytest.approx((1.0, 5.0))
    moving = [numbers["density"], numbers["velocity"][..., 0], numbers["velocity"][..., 1]]
    np.testing.assert_allclose(data.u[:], np.concatenate(moving, axis=1).astype("f4"))
    frames = [field[:, :2] for field in moving]
    depth = np.broadcast_to(numbers["depth"][:, None, None, :], (3, 1, 5, 6))
    viscosity = np.broadcast_to(numbers["viscosity"], (3, 1, 5, 6))
    expected = np.concatenate([*frames, depth, viscosity], axis=1)[[2, 0]]
    np.testing.assert_allclose(data.a[[2, 0]], expected.astype("f4"))
    assert data.name == "flow"


def test_numpy_and_hdf5_files_hold_the_same(tmp_path):
    np.savez(tmp_path / "one.npz", a=A, u=U, names=["h", "v"], times=[0.5, 1.5])
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["u"] = A, U
    one = open_data(tmp_path / "one.npz")
    two = open_data(tmp_path / "two.h5", names=("h", "v"), times=(0.5, 1.5), periodic=True)
    assert one.check() == two.check()
    assert (one.names, one.times) == (two.names, two.times) == (("h", "v"), (0.5, 1.5))
    assert two.grid.periodic
    assert not one.grid.periodic


def test_a_benchmarks_file_is_data_under_its_own_name(tmp_path):
    """Trajectories are first frame → all frames, and never another's benchmark."""
    path = generate(Tiny(), tmp_path / "allen_cahn.hdf5", scale="smoke", workers=1)
    data = open_data(path)
    assert data.name == "allen_cahn_data"
    expected = pairs(load_file(path, 1)[[4, 1]])
    assert torch.equal(data.a[[4, 1]], expected.a)
    assert torch.equal(data.u[[4, 1]], expected.u)


def test_names_of_benchmarks_are_taken():
    with pytest.raises(ValueError, match="`name` must not be that of a benchmark, got 'maxwell'"):
        own_name(None, "maxwell")


def bad_files(folder):
    np.savez(folder / "lacks.npz", a=A, v=U)
    yield "lacks.npz", r"lacks\.npz must hold the arrays `a` and `u`, got a, v"
    (folder / "text.npz").write_text("hello")
    yield "text.npz", r"text\.npz is neither a \.npy or \.npz file of numbers nor an HDF5 file"
    np.save(folder / "plain.npy", A)
    yield "plain.npy", r"plain\.npy must hold the arrays `a` and `u`, got nothing by name"
    np.savez(folder / "objects.npz", a=np.array([{}]), u=U)
    yield "objects.npz", "is neither a .npy or .npz file of numbers nor"
    with h5py.File(folder / "link.h5", "w") as file:
        file["a"] = A
        file["u"] = h5py.ExternalLink("other.h5", "u")
    with h5py.File(folder / "other.h5", "w") as file:
        file["u"] = U
    yield "link.h5", r"link\.h5 keeps `u` in another file"
    with h5py.File(folder / "axes.h5", "w") as file:
        file["dimensions/time"], file["dimensions/x"] = np.arange(4.0), np.arange(8.0)
        file["t0_fields/u"] = U
        file["t0_fields/u"].attrs["time_varying"] = False
    yield "axes.h5", r"by its attributes it must have 2 axes"
    with h5py.File(folder / "uneven.h5", "w") as file:
        file["dimensions/time"], file["dimensions/x"] = np.arange(4.0), np.arange(8.0) ** 2
        file["t0_fields/u"] = U
    yield "uneven.h5", "has no uniform coordinates `x`"


def test_what_is_wrong_with_a_file_in_one_sentence(tmp_path):
    for name, sentence in bad_files(tmp_path):
        with pytest.raises((ValueError, OSError)) as caught:
            open_data(tmp_path / name).check()
        assert re.search(sentence, str(caught.value)), str(caught.value)
        assert "\n" not in str(caught.value)


def test_inputs_of_every_kind_of_file(tmp_path):
    np.save(tmp_path / "a.npy", A)
    np.savez(tmp_path / "a.npz", a=A, u=U)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = A
    for name in ("a.npy", "a.npz", "a.h5"):
        np.testing.assert_array_equal(load_inputs(tmp_path / name), A)
    np.savez(tmp_path / "b.npz", b=A)
    with pytest.raises(ValueError, match=r"b\.npz must hold the array `a`, got b"):
        load_inputs(tmp_path / "b.npz")
