"""SIGTERM and SIGINT: the step is finished and saved; a second one ends the process at once."""

import os
import signal
import time

import pytest
from small_runs import ended, in_child, small, traces

from sfo.training import checkpoint
from sfo.training.fit import fit
from sfo.training.loop import Loop

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def fit_and_tell(experiment, folder, pipe, slow=0.0):
    """Train, and write a byte after every step."""

    def tell(status):
        os.write(pipe, bytes([status.step]))
        time.sleep(slow)

    fit(experiment, folder, progress=tell)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["TERM", "INT"]
)
def test_a_signal_ends_the_run_after_its_step(tmp_path, number, code):
    experiment = small(epochs=7)
    fit(experiment, tmp_path / "whole")
    receive, send = os.pipe()
    process = in_child(fit_and_tell, experiment, tmp_path / "stopped", send, 0.05)
    steps = b""
    while len(steps) < 4:
        steps += os.read(receive, 1)
    os.kill(process.pid, number)
    assert ended(process) == code
    os.close(send)
    while more := os.read(receive, 64):
        steps += more
    newest = checkpoint.latest(tmp_path / "stopped" / "checkpoints")
    assert checkpoint.load(newest)["step"] == steps[-1] < 21
    fit(experiment, tmp_path / "stopped", resume=True)
    assert traces(tmp_path / "stopped") == traces(tmp_path / "whole")


def test_a_signal_in_the_last_validation_is_not_swallowed(tmp_path, monkeypatch):
    validate = Loop._validate

    def interrupted(loop):
        os.kill(os.getpid(), signal.SIGTERM)
        return validate(loop)

    monkeypatch.setattr(Loop, "_validate", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as stopped:
        fit(small(epochs=1), tmp_path)
    assert stopped.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert len(fit(small(epochs=1), tmp_path, resume=True).history) == 1


def test_a_second_signal_ends_it_at_once(tmp_path):
    receive, send = os.pipe()
    process = in_child(fit_and_tell, small(), tmp_path / "run", send, 3600)
    os.read(receive, 1)
    os.kill(process.pid, signal.SIGINT)
    time.sleep(0.1)
    assert process.is_alive()
    os.kill(process.pid, signal.SIGTERM)
    assert ended(process, seconds=10) == 143
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("order", [("SIGTERM", "SIGUSR2"), ("SIGUSR2", "SIGTERM")], ids="-".join)
def test_of_two_signals_that_slurm_sends_the_one_to_queue_again_counts(tmp_path, order):
    """A job that is preempted gets SIGTERM besides: it ended at once, and saved nothing."""
    receive, send = os.pipe()
    process = in_child(fit_and_tell, small(), tmp_path / "run", send, 0.5)
    os.read(receive, 1)
    for kind in order:
        os.kill(process.pid, getattr(signal, kind))
        time.sleep(0.05)
    assert ended(process) == 128 + signal.SIGUSR2
    assert checkpoint.latest(tmp_path / "run" / "checkpoints") is not None
