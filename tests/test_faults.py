"""A full disk, a closed pipe, a folder that takes no file, sizes beyond all: one sentence each."""

import os
import resource
import signal
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from training.small_runs import ended, in_child

from sfo.cli import main
from sfo.experiments import estimate
from sfo.experiments.progress import generating_lines
from sfo.files import locked

TRAIN = "train --benchmark allen_cahn --scale smoke --samples 12 --epochs 1"
GENERATE = "generate allen_cahn --scale smoke --samples 3 --workers 1 --out"


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    # Without processes that import everything again.
    monkeypatch.setattr("sfo.data.generate.usable_cores", lambda: 1)


def refusal(line, capsys):
    """The one line with which a command is refused."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    said = [text for text in capsys.readouterr().err.splitlines() if text.startswith("sfo: ")]
    assert len(said) == 1
    return said[0]


def on_a_full_disk(line):
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
    with open("said", "w") as file:
        os.dup2(file.fileno(), 2)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    main(line.split())


def test_a_full_disk_while_data_are_made(tmp_path):
    """Nothing gets the file's name; with room again, the same command makes it."""
    assert ended(in_child(on_a_full_disk, f"{GENERATE} made.hdf5")) == 2
    said = (tmp_path / "said").read_text().lstrip()
    assert said.startswith("sfo: Cannot write made.hdf5: File too large. Make room or choose")
    assert said.count("\n") == 1
    assert not (tmp_path / "made.hdf5").exists()
    main(f"{GENERATE} made.hdf5".split())
    main(f"{GENERATE} other.hdf5".split())
    assert (tmp_path / "made.hdf5").read_bytes() == (tmp_path / "other.hdf5").read_bytes()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="/proc is Linux's")
def test_a_folder_in_which_no_file_can_be_made_is_not_waited_for(capsys):
    """FileLock alone tries for ever."""
    with pytest.raises(OSError, match="/proc/x"), locked(Path("/proc/x.lock"), timeout=20):
        pass
    assert "Cannot write /proc/x.hdf5" in refusal(f"{GENERATE} /proc/x.hdf5", capsys)


def list_into_a_closed_pipe(by_line):
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(reading)
    os.close(writing)
    with open("said", "w") as file:
        os.dup2(file.fileno(), 2)
    sys.stdout = os.fdopen(1, "w", buffering=1 if by_line else -1, closefd=False)
    sys.stderr = os.fdopen(2, "w", closefd=False)
    main(["list"])


@pytest.mark.parametrize("by_line", [True, False])
def test_a_closed_pipe_ends_a_command_without_a_word(by_line, tmp_path):
    """As `sfo list | head -1`, with the exit code of other programs, 128 + SIGPIPE."""
    assert ended(in_child(list_into_a_closed_pipe, by_line)) == 141
    assert (tmp_path / "said").read_text() == ""


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--model.mlp-ratio 1e300", "The model sfo cannot be built with the settings"),
        ("--model.mlp-ratio Infinity", "Settings must be what JSON can hold"),
        ("--model.n-layers 100000000", "`n_layers` of sfo must be at most 10000, got 100000000"),
        ("--num-nodes 3", "`num_nodes` must be 1 where nothing says where"),
    ],
)
def test_sizes_beyond_all_are_refused_at_once(options, sentence, capsys, monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    begin = time.process_time()
    assert sentence in refusal(f"{TRAIN} --out run {options}", capsys)
    assert time.process_time() - begin < 20
    assert not os.path.exists("run/experiment.json")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--epochs ten", "sfo: `--epochs` must be a whole number, got 'ten'."),
        ("--samples 1.5", "sfo: `--samples` must be a whole number, got '1.5'."),
        ("--learning-rate fast", "sfo: `--learning-rate` must be a number, got 'fast'."),
    ],
)
def test_numbers_in_letters(options, sentence, capsys):
    """In place of the parser's box of a dozen lines."""
    assert refusal(f"{TRAIN} {options}", capsys) == sentence


def test_other_boxes_of_the_parser_are_printed(capsys):
    with pytest.raises(SystemExit) as stop:
        main(f"{TRAIN} --epcohs 3".split())
    assert stop.value.code == 2
    assert "Perhaps you meant" in capsys.readouterr().err


def test_a_peer_that_is_not_installed(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "neuralop", None)
    monkeypatch.setitem(sys.modules, "neuralop.models", None)
    said = refusal(f"{TRAIN} --model neuralop_fno --out run", capsys)
    assert "pip install '.[peers]' in the clone" in said
    assert not os.path.exists("run/experiment.json")


def test_damaged_archives_of_inputs(tmp_path, capsys):
    """Cut off, and with a byte changed, which its checksum shows."""
    from sfo.data.sources import load_inputs, open_data

    np.savez(tmp_path / "whole.npz", a=np.ones((3, 1, 8)), u=np.ones((3, 1, 8)))
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[:300])
    with zipfile.ZipFile(tmp_path / "whole.npz") as archive:
        at = archive.getinfo("a.npy").header_offset + 250
    (tmp_path / "changed.npz").write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    for name in ("cut.npz", "changed.npz"):
        with pytest.raises(ValueError, match=f"{name} is neither a .npy or .npz file"):
            load_inputs(tmp_path / name)
        with pytest.raises(ValueError, match=f"{name} is neither a .npy or .npz file"):
            open_data(tmp_path / name)


def test_training_says_how_far_its_data_are(capsys):
    small = "--model.n-modes 4 --model.hidden-channels 8 --model.n-layers 1"
    # A start that fails leaves its folder free for the next one.
    assert "`strategy` must be" in refusal(f"{TRAIN} {small} --out run --strategy magic", capsys)
    main(f"{TRAIN} {small} --out run".split())
    said = capsys.readouterr().err
    assert "generating data: 0/12 samples" in said
    assert "generating data: 12/12 samples" in said
    main(f"{TRAIN} {small} --out again".split())
    assert "generating" not in capsys.readouterr().err


def test_lines_come_at_the_beginning_at_times_and_at_the_end():
    class Lines(list):
        def print(self, line, soft_wrap):
            self.append(line.split()[2])

    lines, now = Lines(), iter([0, 4, 9, 12, 12, 13, 14])
    show = generating_lines(lines, every=10, clock=lambda: next(now))
    for done in (0, 1, 2, 3, 4, 6):
        show(done, 6)
    assert lines == ["0/6", "3/6", "6/6"]


def test_a_busy_machine_does_not_lengthen_an_estimate(monkeypatch, tmp_path):
    """A step that waits, as for a core, takes the CPU time of one that does not."""
    monkeypatch.setattr(estimate, "training_step", lambda experiment: lambda: time.sleep(0.3))
    experiment = estimate.Experiment.of("allen_cahn", scale="smoke")
    (tmp_path / "steps.json").write_text('{"damaged')
    assert estimate.Estimates(tmp_path / "steps.json").step(experiment) < 0.1


def test_a_seed_of_more_than_64_bits(capsys):
    """torch takes no more."""
    line = f"{TRAIN} --out run --seed {10**30} --model.n-modes 4 --model.hidden-channels 8"
    assert "`seed` must be less than or equal to" in refusal(f"{line} --model.n-layers 1", capsys)
