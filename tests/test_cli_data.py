"""The commands about data, as a user types them."""

import h5py
import numpy as np
import pytest

from sfo.cli import main


@pytest.fixture(autouse=True)
def _data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)


def code_of(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def test_generate_twice_is_the_same_file(tmp_path, capsys):
    arguments = ["generate", "diffusion_sorption", "--scale", "smoke", "--samples", "4"]
    main([*arguments, "--out", "one.hdf5", "--workers", "1"])
    main([*arguments, "--out", "two.hdf5", "--workers", "1"])
    assert "Diffusion–Sorption: one.hdf5" in capsys.readouterr().out
    assert (tmp_path / "one.hdf5").read_bytes() == (tmp_path / "two.hdf5").read_bytes()


def test_options_reach_the_equation(tmp_path):
    arguments = ["generate", "diffusion_sorption", "--scale", "smoke", "--samples", "3"]
    main([*arguments, "--workers", "1", "--out", "a", "--option", "left=0.5"])
    with h5py.File("a") as file:
        assert 0.3 < file["0000/data"][-1, 0, 0] < 0.5


def test_doctor_of_a_healthy_and_a_damaged_file(capsys):
    main(["generate", "maxwell", "--scale", "smoke", "--samples", "3", "--out", "mx.h5"])
    capsys.readouterr()
    main(["doctor", "mx.h5"])
    assert "Problems: none found" in capsys.readouterr().out
    with h5py.File("mx.h5", "r+") as file:
        file["0001/data"][0, 0, 0, 0, 0] = np.nan
    assert code_of(["doctor", "mx.h5"]) == 1
    assert "checksum" in capsys.readouterr().out


def test_show_draws_a_benchmark_and_a_file():
    main(["show", "diffusion_sorption", "--samples", "3", "--out", "ds.png"])
    main(["generate", "maxwell", "--scale", "smoke", "--samples", "3", "--out", "mx.h5"])
    main(["show", "mx.h5", "--samples", "2", "--out", "mx.png"])
    for name in ("ds.png", "mx.png"):
        with open(name, "rb") as file:
            assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "alen_cahn"], "Did you mean 'allen_cahn'"),
        (["generate", "allen_cahn", "--samples", "0"], "`samples` must be at least 1"),
        (["generate", "allen_cahn", "--option", "gamma=1"], "Unknown option 'gamma'"),
        (["generate", "allen_cahn", "--option", "gamma"], "must be name=value"),
        (
            ["generate", "allen_cahn", "--option", "epsilon=abc"],
            "`epsilon` must be a finite number",
        ),
        (
            ["generate", "allen_cahn", "--option", "epsilon=inf"],
            "`epsilon` must be a finite number",
        ),
        (["generate", "allen_cahn", "--out", "."], "is a folder"),
        (["doctor", "nothing.h5"], "There is no file"),
        (["doctor", "."], "is a folder"),
        (["show", "nothing"], "is no benchmark, no file and no run"),
        (["show", "."], "not a run"),
        (["download", "allen_cahn"], "allen_cahn"),
        (["download", "burgers"], "burgers"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys, tmp_path):
    assert code_of(arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.strip().count("\n") == 0
    assert not [p for p in tmp_path.iterdir() if p.name != "data"]
