"""Generation: the same bytes whatever the workers, the kills and the number of samples."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from data.tiny import Failing, Tiny, TinyGroups

import sfo
from sfo.data.generate import generate
from sfo.data.hdf5 import DataFile, DataFileError

PROGRAM = """
import sys
from data.tiny import Tiny
from sfo.data.generate import generate
generate(Tiny(seconds=0.03), sys.argv[1], scale="smoke", samples=60, workers=int(sys.argv[2]))
"""


@pytest.mark.parametrize("kind", [pytest.param(Tiny(), marks=pytest.mark.slow), TinyGroups()])
def test_the_same_bytes_whatever_the_workers(kind, tmp_path):
    made = [
        generate(kind, tmp_path / f"{workers}.hdf5", scale="smoke", workers=workers).read_bytes()
        for workers in (1, 2)
    ]
    assert made[0] == made[1]
    assert not list(tmp_path.glob("*.parts"))


def test_a_smaller_set_is_the_beginning_of_a_larger(tmp_path):
    """Even where it ends within a chunk of samples that are solved together."""
    few = DataFile(generate(Tiny(), tmp_path / "4", scale="smoke", samples=4, workers=1))
    many = DataFile(generate(Tiny(), tmp_path / "9", scale="smoke", samples=9, workers=1))
    assert few[:].values.equal(many[:4].values)


def test_a_worker_that_fails_says_why(tmp_path, monkeypatch):
    """And the chunks that were solved are kept."""
    with pytest.raises(DataFileError, match="ZeroDivisionError"):
        generate(Failing(), tmp_path / "file", scale="smoke", workers=2)
    assert (tmp_path / "file.parts" / "000000").exists()


def test_other_seeds_and_options_give_other_numbers(tmp_path):
    one = generate(Tiny(), tmp_path / "0", scale="smoke", workers=1)
    other = generate(Tiny(), tmp_path / "1", scale="smoke", seed=1, workers=1)
    assert not DataFile(one)[:].values.equal(DataFile(other)[:].values)


@pytest.mark.parametrize(
    ("workers", "kills"),
    [
        (2, 1),
        pytest.param(2, 2, marks=pytest.mark.slow),
        pytest.param(1, 3, marks=pytest.mark.slow),
        pytest.param(1, 20, marks=pytest.mark.slow),
    ],
)
def test_killed_again_and_again_ends_in_the_same_file(workers, kills, tmp_path):
    truth = generate(
        Tiny(seconds=0.03), tmp_path / "truth.hdf5", scale="smoke", samples=60, workers=1
    )
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    path = tmp_path / "killed.hdf5"
    rng = random.Random(workers)
    # The package that is tested here, whatever is installed for the interpreter.
    places = [
        Path(__file__).parents[1],
        Path(sfo.__file__).parents[1],
        os.environ.get("PYTHONPATH"),
    ]
    path_of_all = os.pathsep.join(str(place) for place in places if place)
    environment = {**os.environ, "PYTHONPATH": path_of_all}
    command = [sys.executable, str(program), str(path), str(workers)]
    for _ in range(kills):
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        parts = path.with_name(path.name + ".parts")
        before = len(list(parts.glob("0*"))) if parts.exists() else 0
        # Wait until it works, then a random moment.
        while process.poll() is None and not path.exists():
            if parts.exists() and len(list(parts.glob("*"))) > before:
                break
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.06))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if path.exists():
            break
    subprocess.run(command, env=environment, check=True)
    assert path.read_bytes() == truth.read_bytes()


def test_finished_chunks_are_not_solved_again(tmp_path, monkeypatch):
    solved = []
    simulate = Tiny.simulate

    def count(self, seed, ids, scale):
        solved.append(tuple(ids))
        if len(solved) == 3:
            raise KeyboardInterrupt
        return simulate(self, seed, ids, scale)

    monkeypatch.setattr(Tiny, "simulate", count)
    with pytest.raises(KeyboardInterrupt):
        generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)
    generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)
    assert solved == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (6, 7, 8), (9, 10, 11)]


def test_a_damaged_chunk_is_solved_again(tmp_path, monkeypatch):
    truth = generate(Tiny(), tmp_path / "truth", scale="smoke", workers=1).read_bytes()

    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfo.data.generate.write", full)
    with pytest.raises(OSError, match="No space left"):
        generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)
    monkeypatch.undo()
    part = tmp_path / "file.parts" / "000001"
    damaged = bytearray(part.read_bytes())
    damaged[100] ^= 4
    part.write_bytes(damaged)
    assert generate(Tiny(), tmp_path / "file", scale="smoke", workers=1).read_bytes() == truth


def test_a_file_of_other_settings_is_never_overwritten(tmp_path):
    path = generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)
    before = path.read_bytes()
    with pytest.raises(DataFileError, match="10 samples of tiny made with other settings"):
        generate(Tiny(), path, scale="smoke", seed=5, workers=1)
    assert path.read_bytes() == before
    assert generate(Tiny(), path, scale="smoke", workers=1) == path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(samples=0), "`samples` must be at least 1, got 0"),
        (dict(workers=0), "`workers` must be at least 1"),
        (dict(seed=-1), "`seed` must be at least 0"),
        (dict(scale="huge"), "`scale` must be one of 'smoke', got 'huge'"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        generate(Tiny(), tmp_path / "file", **{"scale": "smoke", **arguments})
    assert not list(tmp_path.iterdir())
