"""The doctor: every defect is found and named, and healthy files are called healthy."""

import re
import shutil

import h5py
import numpy as np
import pytest
from data.stripped import make, strip
from data.tiny import Tiny, TinyGroups

from sfo.data.benchmarks import Scale
from sfo.data.doctor import examine
from sfo.data.generate import generate
from sfo.data.hdf5 import DataFileError
from sfo.data.published import PUBLISHED, PublishedFile
from sfo.registry import BENCHMARKS

SAMPLES = 6


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """One small file per benchmark."""
    folder = tmp_path_factory.mktemp("made")
    return {name: make(folder, name, SAMPLES) for name in BENCHMARKS.names()}


@pytest.fixture
def bare(files, tmp_path):
    """Stripped copies, to be damaged."""
    return lambda name: strip(files[name], tmp_path / f"{name}.h5")


def problem(path):
    """The one problem of a file."""
    report = examine(path)
    assert len(report.problems) == 1, str(report)
    return report.problems[0]


FACTS = {
    "allen_cahn": [
        "64 points on -1 < x < 1",
        "11 frames, t = 0 … 1",
        "a of 1 channels (u), u of 11",
    ],
    "cahn_hilliard": ["64 points on -1 < x < 1", "u of 11, on 64 points (all)"],
    "diffusion_reaction": ["64 points on 0 < x < 1", "layout `tensor`"],
    "diffusion_reaction_f32": ["1D Diffusion–Reaction, as published"],
    "diffusion_sorption": ["t = 0 … 500", "layout `groups`"],
    "diffusion_sorption_rk45": ["As published: sample 0 is 0.071 % from the solution"],
    "shallow_water": ["16 × 16 points", "fields h, u, v, b", "a of 2 channels (h, b), u of 18"],
    "shallow_water_rdb": ["fields h", "As published: 3 samples (1, 2, 3): the same as an earlier"],
    "burgers": ["64 points on 0 < x < 1", "11 frames, t = 0 … 1"],
    "kuramoto_sivashinsky": ["64 points on 0 < x < 64", "t = 0 … 20"],
    "navier_stokes": ["16 × 16 points", "fields w", "a of 1 channels (w), u of 6"],
    "darcy": ["1 frames, t = 0 … 0", "fields p, a", "a of 1 channels (a), u of 1, on 16 × 16"],
    "maxwell": ["8 × 8 × 8 points", "4 frames", "a of 12 channels", "u of 24"],
}


@pytest.mark.parametrize("name", FACTS)
def test_healthy_files(files, name):
    """Of all benchmarks, with what they hold and what the loader makes of it."""
    report = examine(files[name])
    assert report.problems == []
    text = str(report)
    assert f"{BENCHMARKS[name].title} ({name}), {SAMPLES} samples" in text
    assert "SHA-256 of every sample" in text
    for fact in FACTS[name]:
        assert fact in text


def test_every_benchmark_has_facts():
    assert sorted(FACTS) == BENCHMARKS.names()


@pytest.mark.parametrize("name", ["allen_cahn", "cahn_hilliard", "diffusion_reaction", "maxwell"])
def test_healthy_files_of_others(bare, name):
    """Without our header too, known by their equation or their shape."""
    report = examine(bare(name))
    assert report.problems == []
    assert f"({name}), {SAMPLES} samples" in report.facts[0]
    assert "none: not written by sfo" in report.facts[-1]
    assert ("Recognised by its equation" in str(report)) == (name != "maxwell")


def test_own_benchmarks_are_healthy(tmp_path):
    """A sealed file need not belong to one of ours."""
    for kind in (Tiny(), TinyGroups()):
        path = generate(kind, tmp_path / kind.name, scale="smoke", workers=1)
        assert examine(path).problems == []


def test_reports_as_it_goes(files):
    seen = []
    examine(files["allen_cahn"], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(i, SAMPLES) for i in range(SAMPLES + 1)]


def test_no_file_is_an_error(tmp_path):
    with pytest.raises(DataFileError, match="no file"):
        examine(tmp_path / "nothing.h5")
    with pytest.raises(DataFileError, match="folder"):
        examine(tmp_path)


@pytest.mark.parametrize("name", ["allen_cahn", "maxwell"])
@pytest.mark.parametrize("part", [0.01, 0.5, 0.999])
def test_truncated(files, tmp_path, name, part):
    path = tmp_path / "cut.hdf5"
    whole = files[name].read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    assert "truncated or damaged" in problem(path)


def test_a_web_page(tmp_path):
    path = tmp_path / "page.h5"
    path.write_text("<!DOCTYPE html>")
    assert "web page" in problem(path)


def test_unwritten_chunks(bare):
    """Of one sample: they read as zeros."""
    path = bare("allen_cahn")
    with h5py.File(path, "a") as file:
        u = file["tensor"][()]
        del file["tensor"]
        tensor = file.create_dataset("tensor", u.shape, "f4", chunks=(1, 11, 32), compression="lzf")
        for sample in (0, 1, 3, 4, 5):
            tensor[sample] = u[sample]
    assert examine(path).problems == [
        "1 sample (2): parts were never written and read as zeros.",
        "1 sample (2): zero everywhere.",
    ]


def test_unwritten_corner(bare):
    """One chunk of 24 is missing."""
    path = bare("allen_cahn")
    with h5py.File(path, "a") as file:
        u = file["tensor"][()]
        del file["tensor"]
        tensor = file.create_dataset("tensor", u.shape, "f4", chunks=(1, 6, 32))
        for sample, late, right in np.ndindex(6, 2, 2):
            if (sample, late, right) != (4, 1, 1):
                part = np.s_[sample, 6 * late : 6 * late + 6, 32 * right : 32 * right + 32]
                tensor[part] = u[part]
    assert problem(path) == "1 sample (4): parts were never written and read as zeros."


def test_unwritten_contiguous(bare):
    """Never written at all: HDF5 has not even set the place aside."""
    path = bare("diffusion_sorption")
    with h5py.File(path, "a") as file:
        del file["0003/data"]
        file.create_dataset("0003/data", (11, 64, 1), "f4")
    assert examine(path).problems == [
        "1 sample (3): parts were never written and read as zeros.",
        "1 sample (3): zero everywhere.",
    ]
    with h5py.File(path, "a") as file:
        data = file["0000/data"]
        data[:] = data[()]
        data[7:] = 0
    assert "1 sample (0): some frames are zero everywhere." in examine(path).problems


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["cahn_hilliard", "shallow_water"])
def test_not_finite(bare, name, bad):
    path = bare(name)
    with h5py.File(path, "a") as file:
        if name == "shallow_water":
            file["0001/static"][3, 4] = bad
        else:
            file["tensor"][1, 10, 5] = bad
    assert problem(path) == "1 sample (1): numbers that are not finite (NaN or infinite)."


def test_swapped_axes(bare):
    path = bare("allen_cahn")
    with h5py.File(path, "a") as file:
        u = file["tensor"][()]
        del file["tensor"]
        file["tensor"] = u.transpose(0, 2, 1)
    assert "axes look swapped, (sample, x, time)" in problem(path)


def test_swapped_axes_in_groups(bare):
    """All, or one sample among others."""
    path = bare("diffusion_sorption")
    with h5py.File(path, "a") as file:
        for key in [*file][::-1]:
            u = file[key]["data"][()]
            del file[key]["data"]
            file[key]["data"] = u.transpose(1, 0, 2)
            file.flush()
            if key == "0005":
                one = examine_copy(path)
    assert one == [
        "1 sample (5): has the shape (64, 11, 1) instead of (11, 64, 1), (time, *grid, channel); "
        "run `sfo doctor` on the file."
    ]
    assert "axes look swapped, (x, time, channel)" in problem(path)


def examine_copy(path):
    copy = shutil.copy(path, path.with_name("copy.h5"))
    return examine(copy).problems


def test_wrong_rank(bare):
    path = bare("allen_cahn")
    with h5py.File(path, "a") as file:
        u = file["tensor"][()]
        del file["tensor"]
        file["tensor"] = u[..., None]
    assert "must be (sample, time 11, x 64)" in problem(path)


def test_missing_arrays(bare):
    """A sample without data, a sample without its grid, a file without coordinates."""
    path = bare("diffusion_sorption")
    with h5py.File(path, "a") as file:
        del file["0000/data"], file["0004/grid/t"]
    grid, data = examine(path).problems
    assert grid == "1 sample (4): `grid/t` is missing."
    assert data.startswith("1 sample (0): cannot be read")
    with h5py.File(path, "a") as file:
        for group in file.values():
            del group["grid"]
    assert "no sample with all of data, grid/x, grid/t" in problem(path)
    path = bare("allen_cahn")
    with h5py.File(path, "a") as file:
        del file["x-coordinate"]
    assert "no `x-coordinate`" in problem(path)


def test_missing_samples(files, tmp_path):
    """A sealed file knows how many it must have."""
    path = tmp_path / "few.hdf5"
    shutil.copy(files["maxwell"], path)
    with h5py.File(path, "a") as file:
        del file["0002"]
    assert "5 samples instead of 6" in problem(path)


def test_coordinates_of_another_grid(files, tmp_path):
    """Data and header are as they were, but other tools would read wrong coordinates."""
    path = tmp_path / "moved.hdf5"
    shutil.copy(files["shallow_water_rdb"], path)
    with h5py.File(path, "a") as file:
        file["0002/grid/y"][:] += 1
    assert problem(path).startswith("1 sample (2): `grid/y` is not as long as the data, or holds")
    shutil.copy(files["allen_cahn"], path)
    with h5py.File(path, "a") as file:
        file["t-coordinate"][3] = 2
    assert problem(path).startswith("`t-coordinate` is not as long as the data, or holds")


@pytest.mark.parametrize("name", ["allen_cahn", "shallow_water"])
def test_a_flipped_bit(files, tmp_path, name):
    """One bit of one number."""
    path = tmp_path / "flipped.hdf5"
    shutil.copy(files[name], path)
    with h5py.File(path) as file:
        data = file["tensor"] if name == "allen_cahn" else file["0000/data"]
        place = data.id.get_offset() + 4 * 100
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    assert problem(path).startswith("1 sample (0): does not match its checksum")


def test_a_stagnating_reaction(tmp_path):
    """As published: in float32, 2⁻²² a step. A fact of our copy, a problem of a file without."""
    scale = Scale(samples=3, n=32, frames=101)
    made = make(tmp_path, "diffusion_reaction_f32", 3, scale, max_step=2.0**-22)
    ours = examine(made)
    assert ours.problems == []
    assert "As published: the reaction stagnates" in ours.facts[-1]
    text = problem(strip(made, tmp_path / "bare.h5"))
    assert "does not solve its equation: the reaction stagnates, means grow by" in text
    assert "`diffusion_reaction_f32`" in text
    grown, asked = map(float, re.search(r"by (0.\d+) instead of (0.\d+)", text).groups())
    assert grown < 0.5 * asked
    assert asked == pytest.approx(0.24, abs=0.02)


def test_other_rates_do_not_stagnate(tmp_path):
    """The rate that the header names is what means must grow by."""
    for rho in (0.0, 0.1):
        folder = tmp_path / str(rho)
        assert examine(make(folder, "diffusion_reaction", 3, rho=rho)).problems == []


def test_loose_tolerances(files, tmp_path):
    """Diffusion–Sorption by RK45 at its defaults, as published, without our header."""
    bare = strip(files["diffusion_sorption_rk45"], tmp_path / "bare.h5")
    text = problem(bare)
    assert "does not solve its equation: sample 0 is 0.071 % from the solution" in text
    assert "`diffusion_sorption_rk45`" in text
    accurate = strip(files["diffusion_sorption"], tmp_path / "accurate.h5")
    assert examine(accurate).problems == []


def test_other_constants(tmp_path):
    """Cahn–Hilliard with ten times the paper's γ."""
    made = make(tmp_path, "cahn_hilliard", 3, gamma=1e-5)
    assert examine(made).problems == []
    bare = strip(made, tmp_path / "bare.h5")
    assert problem(bare) == "It solves its equation with gamma = 1e-05; the paper states 1e-06."


def test_repeated_samples(bare):
    path = bare("maxwell")
    with h5py.File(path, "a") as file:
        for key in ("0003", "0005"):
            file[key]["data"][...] = file["0001/data"][()]
    assert problem(path).startswith("2 samples (3, 5): the same as an earlier one. Only 4 differ")


def test_equal_depths_over_other_beds_are_no_repeats(bare):
    """What differs in the static field differs."""
    path = bare("shallow_water")
    with h5py.File(path, "a") as file:
        file["0003/data"][...] = file["0001/data"][()]
    assert examine(path).problems == []


def test_frames_that_do_not_change(bare):
    """As an early version of the public Maxwell generator stored them."""
    path = bare("maxwell")
    with h5py.File(path, "a") as file:
        for group in file.values():
            group["data"][...] = group["data"][:1]
    assert problem(path) == "All 6 samples: no change in time, all frames are equal."


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("diffusion_sorption", lambda u: u**2 * u.mean(axis=0), "the first frame is not constant"),
        ("diffusion_sorption", lambda u: 3 * u, "numbers outside 0 … 1"),
        ("shallow_water_rdb", lambda u: -u, "depths below zero"),
    ],
)
def test_another_benchmark_of_the_same_shape(bare, name, change, message):
    """Groups are told by their shape; what cannot be of that benchmark is a problem."""
    path = bare(name)
    with h5py.File(path, "a") as file:
        for group in file.values():
            group["data"][...] = change(group["data"][()])
    assert any(message in text for text in examine(path).problems)


def test_no_benchmark_at_all(bare):
    path = bare("allen_cahn")
    with h5py.File(path, "a") as file:
        file["tensor"][...] = np.random.default_rng(0).normal(size=file["tensor"].shape)
    assert "solves none of their equations" in problem(path)


def test_the_name_of_another_file(files, tmp_path):
    """A name that promises another benchmark."""
    path = tmp_path / PUBLISHED["allen_cahn"].file_name
    strip(files["cahn_hilliard"], path)
    assert problem(path) == "Its name is that of the published allen_cahn file."


def test_a_subset_under_the_published_name(files, tmp_path, monkeypatch):
    """Size and checksum tell it from the published file."""
    path = tmp_path / PUBLISHED["shallow_water"].file_name
    strip(files["shallow_water_rdb"], path)
    assert "where 6626098972 were published: it is a subset or was changed" in problem(path)
    like = dict(name="maxwell", file_name="maxwell.h5", address=None, sha256=None)
    size = files["maxwell"].stat().st_size
    file = PublishedFile(**like, size=size, md5="0" * 32, licence="", note="")
    monkeypatch.setitem(PUBLISHED, "maxwell", file)
    path = shutil.copy(files["maxwell"], tmp_path / "maxwell.h5")
    assert "has the md5" in problem(path)
