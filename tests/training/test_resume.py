"""A run that was killed and resumed leaves the same bytes as one that was not."""

import os
import random
import signal
import time

import pytest
from small_runs import dying_at, ended, fit_or_resume, in_child, small, traces
from torch import nn

from sfo.training import loop
from sfo.training.fit import fit
from sfo.training.folder import RunFolder
from sfo.training.loop import Loop
from sfo.training.prepare import build

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

RUNS = {
    "the paper's": small(),
    "a checkpoint a step": small(checkpoint_every=1),
    "every second step, rarely validated": small(checkpoint_every=2, validate_every=2),
    "best before the last": small(learning_rate=0.03, schedule="constant", checkpoint_every=4),
    "threads": small(checkpoint_every=1, loader_workers=2),
    "average, clip, one cycle": small(
        checkpoint_every=1, ema=0.9, clip=0.5, schedule="one_cycle", loader_workers=1
    ),
    "muon": small(checkpoint_every=1, optimizer="muon", weight_decay=0.1, clip=0.5, ema=0.9),
    "all else": small(
        checkpoint_every=2,
        optimizer="adamw",
        weight_decay=0.1,
        schedule="cosine",
        loss="h1",
        normaliser="standard",
        precision="64-true",
    ),
}
DEATHS = [
    (loop, "gather", 2),  # In a step: gradients are there, weights are not yet changed.
    (RunFolder, "write_metrics", 2),
    (Loop, "_validate", 1),
    (os, "replace", 4),  # As a file is written, be it a checkpoint or the metrics.
    (os, "link", 1),
    (Loop, "_train_step", 3),
    (os, "fsync", 7),
    (Loop, "_train_step", 5),
]


def fit_and_die(experiment, folder, *death):
    dying_at(*death)
    fit(experiment, folder, resume="auto")


QUICK = ("the paper's", "threads", "average, clip, one cycle", "muon")


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in RUNS]
)
def test_killed_at_chosen_moments(tmp_path, name):
    experiment = RUNS[name]
    fit(experiment, tmp_path / "whole")
    kills = 0
    for death in DEATHS:
        killed = in_child(fit_and_die, experiment, tmp_path / "killed", *death)
        kills += ended(killed) == -signal.SIGKILL
    fit(experiment, tmp_path / "killed", resume=True)
    assert kills > 6
    assert traces(tmp_path / "killed") == traces(tmp_path / "whole")
    left = {path.name for path in (tmp_path / "killed").rglob(".*")}
    assert left == {".lock"}


def test_random_numbers_go_on(tmp_path, monkeypatch):
    """With dropout, weights depend on how many numbers were drawn before."""

    def with_dropout(*arguments):
        return nn.Sequential(build(*arguments), nn.Dropout(0.2))

    monkeypatch.setattr("sfo.training.fit.build", with_dropout)
    experiment = small(checkpoint_every=1)
    fit(experiment, tmp_path / "whole")
    killed = in_child(fit_and_die, experiment, tmp_path / "killed", Loop, "_train_step", 5)
    assert ended(killed) == -signal.SIGKILL
    fit(experiment, tmp_path / "killed", resume=True)
    assert traces(tmp_path / "killed") == traces(tmp_path / "whole")


@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.slow)])
def test_killed_at_random(tmp_path, kills):
    experiment = small(epochs=12, checkpoint_every=1, ema=0.9, loader_workers=1)
    fit(experiment, tmp_path / "whole")
    delay, runs = random.Random(0), 0
    while kills:
        process = in_child(fit_or_resume, experiment, tmp_path / f"{runs}")
        time.sleep(delay.uniform(0, 0.4))
        process.kill()
        killed = ended(process) != 0
        kills -= killed
        if not killed or not kills:
            fit_or_resume(experiment, tmp_path / f"{runs}")  # Killed before it began, it begins.
            assert traces(tmp_path / f"{runs}") == traces(tmp_path / "whole")
            runs += 1
