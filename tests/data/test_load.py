"""From a name or a path to pairs."""

import h5py
import numpy as np
import pytest
import torch

import sfo
from sfo.data import benchmark_path, file_split
from sfo.registry import BENCHMARKS


def test_generated_once_and_kept(tmp_path, monkeypatch):
    one = sfo.load_benchmark("diffusion_sorption", "smoke", folder=tmp_path, workers=1)
    monkeypatch.setattr(type(BENCHMARKS["diffusion_sorption"]), "simulate", None)
    two = sfo.load_benchmark("diffusion_sorption", "smoke", folder=tmp_path, workers=1)
    assert torch.equal(one.u, two.u)


def test_the_data_folder_is_an_environment_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("SFO_DATA", str(tmp_path))
    path = benchmark_path(BENCHMARKS["maxwell"], "desk", seed=3)
    assert path.parent == tmp_path
    fixed = BENCHMARKS["maxwell"].with_options(period="fixed")
    assert benchmark_path(fixed, "desk", seed=3) != path


def test_a_file_gives_the_same_pairs_as_the_benchmark(tmp_path):
    test = sfo.load_benchmark("maxwell", "smoke", "test", folder=tmp_path, workers=1)
    (path,) = tmp_path.glob("*.hdf5")
    file = sfo.load_file(path)
    from sfo.data import file_pairs

    again = file_pairs(file, "test")
    assert torch.equal(test.a, again.a)
    assert torch.equal(test.u, again.u)
    assert test.ids == again.ids


def test_the_radial_dam_break_repeats_itself_and_can_be_deduplicated(tmp_path):
    """On 32 cells few radii differ: the paper's split tests on samples it has trained on."""
    sfo.load_benchmark("shallow_water_rdb", "smoke", folder=tmp_path, workers=1)
    (path,) = tmp_path.glob("*.hdf5")
    file = sfo.load_file(path)
    prints = [file.raw(i).fingerprint() for i in range(len(file))]
    paper, clean = file_split(file, "paper"), file_split(file, "deduplicated")
    assert {prints[i] for i in paper.test} <= {prints[i] for i in paper.train}
    assert not {prints[i] for i in clean.test} & {prints[i] for i in clean.train}
    assert len(clean.ids("all")) == len(set(prints)) < len(file)


def test_1024_points_are_read_every_fourth(tmp_path):
    from data.tiny import Tiny

    from sfo.data.benchmarks import Scale
    from sfo.data.generate import generate

    path = generate(Tiny(), tmp_path / "file", scale=Scale(samples=3, n=1024, frames=2), workers=1)
    assert sfo.load_file(path).grid.shape == (256,)
    assert sfo.load_file(path, stride=1).grid.shape == (1024,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("alen_cahn",), "Unknown benchmark 'alen_cahn'.*Did you mean 'allen_cahn'"),
        (("allen_cahn", "huge"), "`scale` must be one of 'smoke', 'desk', 'paper'"),
        (("diffusion_sorption", "smoke", "paper"), "scheme='paper'"),
    ],
)
def test_bad_names_get_one_clear_sentence(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        sfo.load_benchmark(*arguments, folder=tmp_path, workers=1)


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_a_number_is_named_by_its_sample_when_it_is_read(stream, tmp_path):
    """Not as a loss that diverges. A published file has no checksums that would show it."""
    from sfo.data import file_pairs

    with h5py.File(tmp_path / "1D_Allen-Cahn_0.0001_5.hdf5", "w") as file:
        values = np.random.default_rng(0).normal(size=(6, 4, 16)).astype("f4")
        values[3, 2, 7] = np.nan
        file["tensor"] = values
        file["x-coordinate"], file["t-coordinate"] = np.arange(16) / 16, np.arange(4.0)
        path = file.filename
    with pytest.raises(ValueError, match=r"Sample 3 of `u` in .* holds NaN or infinity, first in"):
        file_pairs(sfo.load_file(path), "all", inputs=["u"], n_input=1, stream=stream).u[:]
