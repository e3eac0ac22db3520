import pytest
import torch

from sfo.data.pairs import Pairs
from sfo.grid import Grid
from sfo.training.batches import batch_shards, fetch


def order(**arguments):
    return [shard.rows.tolist() for shard in batch_shards(23, 5, **arguments)]


def test_the_order_depends_on_seed_and_epoch_alone():
    torch.manual_seed(1)
    first = order(seed=3, epoch=7)
    torch.manual_seed(2)
    assert order(seed=3, epoch=7) == first
    assert order(seed=3, epoch=8) != first
    assert order(seed=4, epoch=7) != first
    assert sorted(row for rows in first for row in rows) == [*range(23)]


@pytest.mark.parametrize("processes", [2, 3, 4, 7])
def test_processes_divide_every_batch(processes):
    """Together they take the batch of one process, and their weighted means make its mean."""
    values = torch.randn(23, dtype=torch.float64)
    whole = batch_shards(23, 5, seed=0, epoch=0)
    parts = [
        batch_shards(23, 5, seed=0, epoch=0, rank=rank, processes=processes)
        for rank in range(processes)
    ]
    for batch, *divided in zip(whole, *parts, strict=True):
        taken = torch.cat([shard.rows for shard in divided if shard.weight])
        assert sorted(taken.tolist()) == sorted(batch.rows.tolist())
        mean = sum(shard.weight * values[shard.rows].mean() for shard in divided) / processes
        torch.testing.assert_close(mean, values[batch.rows].mean())
        assert all(len(shard.rows) for shard in divided)


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_threads_keep_the_order(workers):
    a = torch.arange(23.0).reshape(23, 1, 1).expand(23, 1, 4)
    pairs = Pairs(a, -a, Grid((4,), (0.0,), (1.0,)), tuple(range(23)), (0.0,), ("u",), ("u",))
    chosen = batch_shards(23, 2, seed=0, epoch=0)
    for shard, (inputs, solutions) in zip(chosen, fetch(pairs, chosen, workers), strict=True):
        assert inputs[:, 0, 0].tolist() == shard.rows.tolist()
        assert torch.equal(solutions, -inputs)
