"""Two processes train as one does, with the whole model each or half of it, and end together."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_runs import (
    HANGING,
    dying_at,
    ended,
    in_child,
    meeting_place,
    side_by_side,
    small,
    traces,
)
from torch import nn

from sfo.models.operator import Operator
from sfo.registry import MODELS
from sfo.training import checkpoint
from sfo.training.checkpoint import CheckpointError
from sfo.training.config import Experiment
from sfo.training.fit import Diverged, fit, load_best
from sfo.training.loop import Loop
from sfo.training.prepare import load_pairs
from sfo.training.sharding import shard
from sfo.training.tree import flatten

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def rank():
    return int(os.environ["RANK"])


def last_state(folder):
    return checkpoint.load(checkpoint.latest(folder / "checkpoints"))


def fit_whole(experiment, folder):
    fit(experiment, folder, strategy="ddp", resume="auto")


def fit_in_parts(experiment, folder):
    fit(experiment, folder, strategy="fsdp", resume="auto")


def differences(one, two):
    """How far the tensors of two states are apart, which must have the same names."""
    for part in ("model", "ema", "optimizer"):
        ours, theirs = flatten(one[part])[0], flatten(two[part])[0]
        assert list(ours) == list(theirs)
        yield from (float((ours[name] - theirs[name]).abs().max()) for name in ours)


@pytest.mark.parametrize(
    ("batch_size", "epochs", "fit_two", "optimizer"),
    [
        (7, 17, fit_whole, "adam"),
        pytest.param(19, 25, fit_whole, "adam", marks=pytest.mark.slow),
        (7, 17, fit_in_parts, "adam"),
        (7, 17, fit_whole, "muon"),
    ],
    ids=["shares of unequal size", "one sample is left for two", "half a model each", "muon"],
)
def test_two_processes_equal_one(tmp_path, batch_size, epochs, fit_two, optimizer):
    """After 50 steps. In float64, as Adam blows rounding up where a gradient is all but 0."""
    experiment = small(
        batch_size=batch_size,
        epochs=epochs,
        optimizer=optimizer,
        schedule="constant",
        clip=0.5,
        ema=0.5,
        precision="64-true",
        checkpoint_every=1000,
        validate_every=10,
    )
    fit(experiment, tmp_path / "one")
    assert side_by_side(fit_two, experiment, tmp_path / "two") == [0, 0]
    one, two = (last_state(tmp_path / name) for name in ("one", "two"))
    assert one["step"] == two["step"] >= 50
    assert max(differences(one, two)) < 1e-6
    for row, other in zip(one["history"], two["history"], strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=1e-6)
    assert row["validation"] == pytest.approx(other["validation"], rel=1e-6)


def fit_and_weigh(experiment, folder):
    """Ends with 7 if this process holds half of every weight, and of what belongs to it."""

    def weigh(loop):
        run(loop)
        for weight in loop.module.parameters():
            means = loop.optimizer.optimizer.state[weight]["exp_avg"]
            for tensor in (weight, weight.grad, means):
                assert abs(2 * tensor.to_local().numel() / tensor.numel() - 1) < 0.1
        sys.exit(7)

    run, Loop.run = Loop.run, weigh
    fit_in_parts(experiment, folder)


def test_each_process_holds_half(tmp_path):
    assert side_by_side(fit_and_weigh, small(epochs=1), tmp_path / "run") == [7, 7]


def fit_in_parts_and_die(experiment, folder):
    dying_at(Loop, "_train_step", 3)
    fit_in_parts(experiment, folder)


def fit_and_die(experiment, folder):
    dying_at(Loop, "_train_step", 3)
    fit(experiment, folder)


def test_from_one_process_to_parts_and_back(tmp_path):
    """A checkpoint does not tell how many processes have written it, nor what each of them held."""
    experiment = small(checkpoint_every=1, precision="64-true", ema=0.5, clip=0.5)
    fit(experiment, tmp_path / "one")
    folder = tmp_path / "two"
    assert ended(in_child(fit_and_die, experiment, folder)) == -signal.SIGKILL
    assert -signal.SIGKILL in side_by_side(fit_in_parts_and_die, experiment, folder)
    assert last_state(folder)["step"] == 4
    fit(experiment, folder, resume=True)
    assert max(differences(*map(last_state, (tmp_path / "one", folder)))) < 1e-6


def test_parts_resume_to_the_same_bits(tmp_path):
    """As torchrun restarts them, which keeps its store."""
    experiment = small(checkpoint_every=1, ema=0.5, clip=0.5)
    assert side_by_side(fit_in_parts, experiment, tmp_path / "whole") == [0, 0]
    lost, store = tmp_path / "killed", meeting_place()
    assert 0 not in side_by_side(fit_in_parts_and_die, experiment, lost, store=store)
    assert side_by_side(fit_in_parts, experiment, lost, store=store, restarts=1) == [0, 0]
    assert traces(tmp_path / "killed") == traces(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in MODELS.names() if MODELS[n].extra is None])
def test_every_model_in_parts(tmp_path, name):
    """Registering a model tests it. A batch norm sees a process' own samples, in parts or not."""
    train = dict(epochs=2, ema=0.5, clip=1.0, precision="64-true", normaliser="standard")
    experiment = Experiment.of("allen_cahn", name, scale="smoke", train=train)
    assert side_by_side(fit_whole, experiment, tmp_path / "whole") == [0, 0]
    assert side_by_side(fit_in_parts, experiment, tmp_path / "parts") == [0, 0]
    one, two = (tmp_path / folder for folder in ("whole", "parts"))
    assert max(differences(last_state(one), last_state(two))) < 1e-6
    a = load_pairs(experiment, "validation").a.double()
    with torch.no_grad():
        torch.testing.assert_close(load_best(one)(a), load_best(two)(a), rtol=1e-6, atol=1e-6)


class Mixed(Operator):
    """Real and complex weights side by side."""

    def __init__(self):
        super().__init__(1, 1, 1)
        self.real = nn.Parameter(torch.ones(2))
        self.complex = nn.Parameter(torch.ones(2, dtype=torch.complex64))


def test_what_cannot_be_in_parts(tmp_path):
    with pytest.raises(ValueError, match=r"'fsdp' cannot split Mixed: .* with the strategy 'ddp'"):
        shard(nn.Sequential(Mixed()), mesh=None)
    with pytest.raises(ValueError, match=r"`precision` must not be '16-mixed' with the strategy"):
        fit(small(precision="16-mixed"), tmp_path / "run", strategy="fsdp")
    with pytest.raises(ValueError, match=r"'muon' with the strategy 'fsdp': .* optimizer='adam'"):
        fit(small(optimizer="muon"), tmp_path / "run", strategy="fsdp")
    with pytest.raises(ValueError, match=r"`strategy` must be .* or 'fsdp', .* got 'deepspeed'"):
        fit(small(), tmp_path / "run", strategy="deepspeed")
    assert not (tmp_path / "run").exists()


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
from small_runs import HANGING, dying_at, small

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
    subprocess.run(command, check=True, timeout=2 * HANGING, env=environment, capture_output=True)
    assert side_by_side(fit, small(checkpoint_every=1), tmp_path / "whole") == [0, 0]
    assert traces(tmp_path / "run") == traces(tmp_path / "whole")
