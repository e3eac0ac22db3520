"""Two processes train as one does, and end together whatever happens to one of them."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import dying_at, meeting_place, side_by_side, small, traces

from sfo.training import checkpoint
from sfo.training.checkpoint import CheckpointError
from sfo.training.fit import Diverged, fit
from sfo.training.loop import Loop
from sfo.training.prepare import load_pairs
from sfo.training.tree import flatten

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def rank():
    return int(os.environ["RANK"])


def last_state(folder):
    return checkpoint.load(checkpoint.latest(folder / "checkpoints"))


@pytest.mark.parametrize(
    ("batch_size", "epochs"),
    [(7, 17), (19, 25)],
    ids=["shares of unequal size", "one sample is left for two"],
)
def test_two_processes_equal_one(tmp_path, batch_size, epochs):
    """After 50 steps. In float64, as Adam blows rounding up where a gradient is all but 0."""
    experiment = small(
        batch_size=batch_size,
        epochs=epochs,
        schedule="constant",
        clip=0.5,
        ema=0.5,
        precision="64-true",
        checkpoint_every=1000,
        validate_every=10,
    )
    fit(experiment, tmp_path / "one")
    assert side_by_side(fit, experiment, tmp_path / "two") == [0, 0]
    one, two = (last_state(tmp_path / name) for name in ("one", "two"))
    assert one["step"] == two["step"] >= 50
    for part in ("model", "ema", "optimizer"):
        ours, theirs = flatten(one[part])[0], flatten(two[part])[0]
        for name in ours:
            assert (ours[name] - theirs[name]).abs().max() < 1e-6
    for row, other in zip(one["history"], two["history"], strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=1e-6)
    assert row["validation"] == pytest.approx(other["validation"], rel=1e-6)


def fit_with_nan(experiment, folder):
    train = load_pairs(experiment, "train")
    u = train.u.clone()
    u[5, 0, 0] = float("nan")
    try:
        fit(experiment, folder, train=replace(train, u=u))
    except Diverged:
        sys.exit(7)


def test_both_see_that_one_diverges(tmp_path):
    """Only one of them has the sample that is not a number, and the other is not left waiting."""
    assert side_by_side(fit_with_nan, small(), tmp_path / "run") == [7, 7]


def fit_with_full_disk(experiment, folder):
    def refuse(*_, **__):
        raise CheckpointError("Cannot save: No space left on device.")

    checkpoint.save = refuse
    try:
        fit(experiment, folder)
    except ValueError as error:
        sys.exit(7 if "No space left" in str(error) else 1)


def test_both_hear_of_a_full_disk(tmp_path):
    """The first process alone saves, and both end with its error."""
    assert side_by_side(fit_with_full_disk, small(), tmp_path / "run") == [7, 7]


def fit_with_a_signal(experiment, folder):
    def at_step_4(loop, *arguments):
        if loop.step == 4 and rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return step(loop, *arguments)

    step, Loop._train_step = Loop._train_step, at_step_4
    fit(experiment, folder)


def test_both_stop_when_one_is_asked_to(tmp_path):
    assert side_by_side(fit_with_a_signal, small(), tmp_path / "run") == [143, 143]
    assert last_state(tmp_path / "run")["step"] == 5


def fit_and_lose_one(experiment, folder):
    if rank() == 1:
        dying_at(Loop, "_train_step", 5)
    fit(experiment, folder)


def fit_late(experiment, folder):
    """One comes late, when the other has long found the addresses of the dead in the store."""
    time.sleep(2 * rank())
    fit(experiment, folder)


def test_a_restart_goes_on(tmp_path):
    """What torchrun's restart looks like from inside: the count is 1 and the folder is there."""
    experiment = small(checkpoint_every=1)
    assert side_by_side(fit, experiment, tmp_path / "whole") == [0, 0]
    store = meeting_place()
    first = side_by_side(fit_and_lose_one, experiment, tmp_path / "lost", store=store)
    assert first[0] != 0
    assert first[1] == -signal.SIGKILL
    assert side_by_side(fit, experiment, tmp_path / "lost") == [1, 1]
    assert side_by_side(fit_late, experiment, tmp_path / "lost", store=store, restarts=1) == [0, 0]
    assert traces(tmp_path / "lost") == traces(tmp_path / "whole")


SCRIPT = """
import os, sys
from pathlib import Path

import torch
from small_runs import dying_at, small

from sfo.training.fit import fit
from sfo.training.loop import Loop

torch.set_num_threads(1)
if os.environ["RANK"] == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    dying_at(Loop, "_train_step", 5)
fit(small(checkpoint_every=1), Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_torchrun_restarts_what_was_killed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--max-restarts=3", "--monitor-interval=0.1", str(script), str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, check=True, timeout=200, env=environment, capture_output=True)
    assert side_by_side(fit, small(checkpoint_every=1), tmp_path / "whole") == [0, 0]
    assert traces(tmp_path / "run") == traces(tmp_path / "whole")
