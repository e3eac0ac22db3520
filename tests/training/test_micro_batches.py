"""A batch passed through the model in parts makes the step of the whole batch."""

import json
import os

import pytest
import torch
from small_runs import dying_at, ended, in_child, side_by_side, small, traces

from sfo.training import checkpoint
from sfo.training.batches import batch_shards, micro_batches
from sfo.training.config import Experiment, TrainConfig
from sfo.training.fit import fit
from sfo.training.loop import Loop


def weights(folder):
    return checkpoint.load(checkpoint.latest(folder / "checkpoints"))["model"]


@pytest.mark.parametrize("processes", [1, 2, 3])
@pytest.mark.parametrize("most", [1, 2, 3, 50])
def test_the_parts_of_all_processes_weigh_each_sample_the_same(most, processes):
    values = torch.rand(20, dtype=torch.float64)
    shares = [
        batch_shards(20, 7, seed=0, epoch=0, rank=rank, processes=processes)
        for rank in range(processes)
    ]
    for batch in zip(*shares, strict=True):
        parts = [micro_batches(shard, most, processes) for shard in batch]
        assert len({len(some) for some in parts}) == 1, "sharded processes need each other"
        assert all(len(part.rows) <= most for some in parts for part in some)
        mean = sum(p.weight * values[p.rows].mean() for some in parts for p in some) / processes
        rows = torch.cat([shard.rows for shard in batch if shard.weight])
        torch.testing.assert_close(mean, values[rows].mean())


@pytest.mark.parametrize(
    ("precision", "rounding"),
    [
        ("64-true", 1e-14),
        ("32-true", 1e-6),
        ("16-mixed", 1e-2),  # A CPU takes bfloat16.
        ("bf16-mixed", 1e-2),
        ("16-true", 2e-3),
        ("bf16-true", 1e-2),
    ],
)
def test_a_step_in_parts_has_the_loss_and_the_gradient_of_the_batch(
    precision, rounding, tmp_path, monkeypatch
):
    """One batch of all 20 samples, in one part and in parts of 3, 3, 3, 3, 3, 3 and 2."""
    save, gradients, losses = Loop.save, [], []

    def keep(loop, best=False):
        parts = [p.grad for p in loop.module.parameters()]
        real = [torch.view_as_real(p) if p.is_complex() else p for p in parts]
        gradients.append(torch.cat([p.flatten().double() for p in real]))
        save(loop, best)

    monkeypatch.setattr(Loop, "save", keep)
    for most in (None, 3):
        experiment = small(epochs=1, batch_size=20, precision=precision, micro_batch=most)
        losses.append(fit(experiment, tmp_path / str(most)).history[0]["loss"])
    whole, parts = gradients
    assert torch.dist(whole, parts) <= rounding * whole.norm()
    # Errors are float32 in every precision.
    assert losses[1] == pytest.approx(losses[0], rel=max(rounding, 1e-6))


def test_a_run_in_parts_is_that_of_whole_batches_but_for_rounding(tmp_path):
    """In float64, with clipping and a weight average, after three epochs."""
    how = dict(precision="64-true", clip=1.0, ema=0.9)
    fit(small(**how), tmp_path / "whole")
    fit(small(**how, micro_batch=3), tmp_path / "parts")
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    for name, value in whole.items():
        torch.testing.assert_close(parts[name], value, rtol=1e-9, atol=1e-11)


def fit_again(experiment, folder, strategy="auto"):
    fit(experiment, folder, resume="auto", strategy=strategy)


def fit_and_die(experiment, folder):
    dying_at(checkpoint, "save", 3)
    fit_again(experiment, folder)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_it_is_exact_after_a_kill(tmp_path):
    experiment = small(checkpoint_every=1, micro_batch=3)
    fit(experiment, tmp_path / "calm")
    assert ended(in_child(fit_and_die, experiment, tmp_path / "killed")) == -9
    fit_again(experiment, tmp_path / "killed")
    assert traces(tmp_path / "killed") == traces(tmp_path / "calm")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_two_processes_make_the_same_steps(strategy, tmp_path):
    """Batches of 7: one process has a sample more than the other."""
    experiment = small(precision="64-true", batch_size=7, micro_batch=1)
    fit(small(precision="64-true", batch_size=7), tmp_path / "one")
    assert side_by_side(fit_again, experiment, tmp_path / "two", strategy) == [0, 0]
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-9, atol=1e-11)


def test_what_has_none_is_written_as_before():
    assert "micro_batch" not in json.loads(small().to_json())["train"]
    with_parts = small(micro_batch=2)
    assert Experiment.from_json(with_parts.to_json()) == with_parts
    assert with_parts.key != small().key
    assert "micro_batch" in TrainConfig.model_fields
