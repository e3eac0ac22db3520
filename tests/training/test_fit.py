"""What a run is: repeatable, honest about divergence, and at home in its folder only."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import dying_at, ended, fit_or_resume, in_child, small, traces
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn

from sfo.registry import MODELS
from sfo.training import checkpoint, folder
from sfo.training.config import Experiment
from sfo.training.fit import Diverged, fit, load_best
from sfo.training.folder import RunFolder
from sfo.training.loop import Loop
from sfo.training.loss import relative_l2
from sfo.training.optimizers import optimizer
from sfo.training.prepare import load_pairs

SCRIPT = """
import sys
from pathlib import Path

import torch
from small_runs import small

from sfo.training.fit import fit

torch.set_num_threads(1)
print(fit(small(ema=0.9), Path(sys.argv[1])).experiment.key)
"""


def test_the_same_bits_in_another_process(tmp_path):
    """A fresh interpreter gives the same weights, metrics and key."""
    (tmp_path / "script.py").write_text(SCRIPT)
    answer = subprocess.run(
        [sys.executable, tmp_path / "script.py", tmp_path / "other"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
    )
    torch.rand(3)  # What was drawn before does not matter.
    assert fit(small(ema=0.9), tmp_path / "here").experiment.key == answer.stdout.strip()
    assert traces(tmp_path / "here") == traces(tmp_path / "other")


def test_another_seed_gives_another_run(tmp_path):
    one, two = (fit(small(seed=seed), tmp_path / str(seed)) for seed in (1, 2))
    assert one.history[-1]["loss"] != two.history[-1]["loss"]


def test_the_callers_random_numbers_are_left_alone(tmp_path):
    before = torch.get_rng_state()
    fit(small(), tmp_path / "run")
    assert torch.equal(torch.get_rng_state(), before)


def test_the_model_of_a_run_is_its_best(tmp_path):
    """Its error is the least in the history, computed here again."""
    run = fit(small(epochs=6, learning_rate=0.03, schedule="constant"), tmp_path)
    validation = load_pairs(run.experiment, "validation")
    with torch.no_grad():
        errors = relative_l2(run.model(validation.a), validation.u)
    assert float(errors.mean()) == pytest.approx(min(r["validation"] for r in run.history))
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == run.history


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in MODELS.names() if MODELS[n].extra is None])
def test_every_model_is_trained_and_found_again(tmp_path, name):
    """Registering a model tests it: its best weights give the error that was written down."""
    train = dict(epochs=2, ema=0.9, normaliser="standard")
    experiment = Experiment.of("allen_cahn", name, scale="smoke", train=train)
    run = fit(experiment, tmp_path)
    assert run.history[1]["loss"] < run.history[0]["loss"]
    validation = load_pairs(experiment, "validation")
    with torch.no_grad():
        errors = relative_l2(load_best(tmp_path)(validation.a), validation.u)
    assert float(errors.mean()) == pytest.approx(min(r["validation"] for r in run.history))


def test_the_average_is_what_is_validated_and_kept(tmp_path):
    """m ← βm + (1 − β)w after every step, from the first weights after a step on."""
    experiment = small(ema=0.75, checkpoint_every=1)
    seen = []
    update = Loop._train_step

    def spy(loop, *arguments):
        result = update(loop, *arguments)
        seen.append([p.detach().clone() for p in loop.module.parameters()])
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_train_step", spy)
        run = fit(experiment, tmp_path)
    mean = seen[0]
    for weights in seen[1:]:
        mean = [0.75 * m + 0.25 * w for m, w in zip(mean, weights, strict=True)]
    torch.testing.assert_close(list(run.model.parameters()), mean)


@pytest.mark.parametrize(
    ("precision", "weights"),
    [
        ("32-true", torch.float32),
        ("64-true", torch.float64),
        ("bf16-mixed", torch.float32),
        ("bf16-true", torch.bfloat16),
    ],
)
def test_it_learns_in_every_precision(tmp_path, precision, weights):
    """And its model comes back in it: nothing is rounded."""
    settings = dict(epochs=15, learning_rate=0.02, schedule="one_cycle")
    run = fit(small(**settings, precision=precision), tmp_path)
    assert run.history[-1]["validation"] < 0.6 * run.history[0]["validation"]
    saved = checkpoint.load(checkpoint.best(tmp_path / "checkpoints"))["model"]
    for name, value in run.model.named_parameters():
        assert value.dtype == weights
        assert torch.equal(value, saved[name])


def test_a_rollout_learns(tmp_path):
    """Its first frame is the input, and the rest gets closer."""
    settings = dict(rollout=1, normaliser="standard", epochs=5, learning_rate=0.02, clip=1.0)
    run = fit(small(**settings, schedule="one_cycle"), tmp_path)
    assert run.history[-1]["validation"] < 0.6 * run.history[0]["validation"]
    pairs = load_pairs(run.experiment, "validation")
    with torch.no_grad():
        assert torch.equal(run.model(pairs.a)[:, :1], pairs.a)


@pytest.mark.parametrize("clip", [None, 1.0])
def test_a_rate_that_is_far_too_large(tmp_path, clip):
    experiment = small(learning_rate=1e6, schedule="constant", checkpoint_every=1, clip=clip)
    with pytest.raises(Diverged, match=r"with the learning rate 1e\+06\. The last") as raised:
        fit(experiment, tmp_path)
    good = checkpoint.latest(tmp_path / "checkpoints", require_finite=("model",))
    step = int(str(raised.value).split("at step ")[1].split()[0])
    assert checkpoint.load(good)["step"] == step
    assert f"The last good checkpoint is {good}." in str(raised.value)


def test_a_gradient_that_is_not_a_number(tmp_path):
    """The loss is sound, the weights after it are not: they are not saved."""
    step = Loop._train_step

    def poisoned(loop, *arguments):
        result = step(loop, *arguments)
        if loop.step == 5:
            next(loop.module.parameters()).data[0] = float("nan")
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_train_step", poisoned)
        with pytest.raises(Diverged, match=r"nan at step 5 .*step-00000004\.safetensors\. Try"):
            fit(small(checkpoint_every=1), tmp_path)
    assert fit(small(checkpoint_every=1), tmp_path, resume=True).history[-1]["step"] == 9


def test_divergence_before_anything_is_saved(tmp_path):
    train = load_pairs(small(), "train")
    with pytest.raises(Diverged, match=r"nan at step 0 .*rate 0\.001\. No checkpoint was saved"):
        fit(small(), tmp_path, train=replace(train, u=train.u * float("nan")))


def test_folders_that_are_refused(tmp_path):
    experiment = small(epochs=1)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="is not empty; choose another folder with out= "):
        fit(experiment, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    with pytest.raises(ValueError, match=r"is not a run: it has no experiment\.json"):
        fit(experiment, tmp_path / "none", resume=True)
    assert not (tmp_path / "none").exists()
    fit(experiment, tmp_path / "run")
    with pytest.raises(ValueError, match=r"holds a run already\. Continue it with `sfo resume"):
        fit(experiment, tmp_path / "run")
    with pytest.raises(ValueError, match=r"`train\.epochs` is 1 there, not 2\. Resume it as it"):
        fit(small(epochs=2), tmp_path / "run", resume=True)
    train = load_pairs(experiment, "train")
    with pytest.raises(ValueError, match=r"The data are not those that .* was begun with"):
        fit(experiment, tmp_path / "run", resume=True, train=train[:-1])


def test_a_folder_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(folder, "LOCK_TIMEOUT", 0)
    experiment = small(epochs=1)
    with RunFolder(tmp_path).opened(experiment, resume=False) as is_resuming:
        assert not is_resuming
        with pytest.raises(ValueError, match="in use: another process is training there"):
            fit(experiment, tmp_path, resume=True)
    assert fit(experiment, tmp_path, resume=True).history


def test_a_finished_run_is_left_as_it_is(tmp_path):
    experiment = small()
    fit(experiment, tmp_path)
    before = traces(tmp_path)
    statuses = []
    run = fit(experiment, tmp_path, resume=True, progress=statuses.append)
    assert not statuses
    assert len(run.history) == 3
    assert traces(tmp_path) == before


def test_what_is_reported_after_every_step(tmp_path):
    statuses = []
    run = fit(small(validate_every=2), tmp_path, progress=statuses.append)
    assert [status.step for status in statuses] == [*range(1, 10)]
    assert [status.epoch for status in statuses] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert [row["validation"] is None for row in run.history] == [True, False, False]
    assert statuses[-1].validation == run.history[-1]["validation"]
    assert statuses[-1].seconds_left == 0


def test_a_run_without_a_best_epoch(tmp_path):
    with (
        RunFolder(tmp_path).opened(small(), resume=False),
        pytest.raises(ValueError, match="see `s"),
    ):
        load_best(tmp_path)


def fit_and_die(experiment, folder):
    dying_at(Loop, "_train_step", 8)
    fit(experiment, folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_tensorboard_reads_the_metrics(tmp_path):
    """Each once, though the run was killed and the sixth step taken twice."""
    experiment = small(epochs=4, checkpoint_every=5, validate_every=2)
    assert ended(in_child(fit_and_die, experiment, tmp_path)) == -signal.SIGKILL
    assert ended(in_child(fit_or_resume, experiment, tmp_path)) == 0
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    events = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    for name in ("loss", "validation", "learning_rate"):
        kept = [(row["step"], np.float32(row[name])) for row in rows if row[name] is not None]
        assert [(event.step, event.value) for event in events.Scalars(name)] == kept
    assert len(list((tmp_path / "tensorboard").iterdir())) == 2


def test_without_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    assert len(fit(small(epochs=1), tmp_path).history) == 1
    assert not (tmp_path / "tensorboard").exists()


def test_weights_may_be_complex():
    """The fused optimizer takes real ones only; the usual one does the same, more slowly."""
    weights = {name: nn.Linear(3, 2, dtype=name) for name in (torch.float32, torch.complex64)}
    chosen = {name: optimizer(model, small().train) for name, model in weights.items()}
    assert [o.defaults["fused"] for o in chosen.values()] == [True, False]
    for name, model in weights.items():
        before = model.weight.detach().clone()
        model(torch.ones(1, 3, dtype=name)).abs().sum().backward()
        chosen[name].step()
        # Adam's first step is as long as the rate in every real direction.
        step = (
            torch.view_as_real(model.weight - before) if name.is_complex else model.weight - before
        )
        torch.testing.assert_close(step.abs(), torch.full_like(step, 1e-3), rtol=1e-3, atol=1e-6)


def test_what_a_model_is_told_of_the_frames_that_it_knows():
    """Shallow Water: h is in channel 0, u and v in none; Maxwell: the last of two frames each."""
    from sfo.training.prepare import DataShape

    carried = [
        DataShape.of_benchmark(Experiment.of(name, scale="smoke")).carried()
        for name in ("allen_cahn", "shallow_water", "maxwell")
    ]
    assert carried == [[0], [0, None, None], [1, 3, 5, 7, 9, 11]]
