"""Which samples make a batch, and which of them a process takes."""

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sfo.data.pairs import Pairs
from sfo.data.rows import Rows


@dataclass(frozen=True)
class BatchShard:
    """What one process takes of a batch.

    Args:
        rows: Its samples; never none, because every process must take part in every step.
        size: Samples of the whole batch.
        weight: Weight of the mean over `rows`, so that the mean over processes is that of the
            batch: p |rows| / size for p processes, and 0 where `rows` are another's.
    """

    rows: Tensor
    size: int
    weight: float


def batch_shards(
    n_samples: int, batch_size: int, *, seed: int, epoch: int, rank: int = 0, processes: int = 1
) -> list[BatchShard]:
    """A process' shares of the batches of an epoch.

    The order of the samples depends on `seed` and `epoch` alone; the last batch takes what is
    left.

    Example:
        >>> [shard.size for shard in batch_shards(7, 3, seed=0, epoch=0)]
        [3, 3, 1]
    """
    order = np.random.default_rng([seed, epoch]).permutation(n_samples)
    return [
        BatchShard(
            batch[rank::processes], len(batch), len(batch[rank::processes]) * processes / len(batch)
        )
        if rank < len(batch)
        else BatchShard(batch[:1], len(batch), 0.0)
        for batch in torch.from_numpy(order).split(batch_size)
    ]


def micro_batches(shard: BatchShard, most: int | None, processes: int = 1) -> list[BatchShard]:
    """A share of a batch in parts, whose weighted means add up to that of the share.

    All processes have equally many, because sharded ones need each other in all of them; who has
    fewer samples takes one of them again, with the weight 0.

    Args:
        shard: A process' share of a batch.
        most: Samples of a part at most; None: all in one.
        processes: Number of processes.

    Example:
        >>> whole = BatchShard(torch.arange(5), 5, 1.0)
        >>> [(part.rows.tolist(), part.weight) for part in micro_batches(whole, 2)]
        [([0, 1], 0.4), ([2, 3], 0.4), ([4], 0.2)]
    """
    if most is None:
        return [shard]
    largest = -(-shard.size // processes)
    parts = -(-largest // most)
    rows = shard.rows if shard.weight else shard.rows[:0]
    return [
        BatchShard(part, shard.size, len(part) * processes / shard.size)
        if len(part)
        else BatchShard(shard.rows[:1], shard.size, 0.0)
        for part in rows.tensor_split(parts)
    ]


def fetch(
    pairs: Pairs, chosen: Sequence[BatchShard], workers: int = 0
) -> Iterator[tuple[Tensor, Tensor]]:
    """The inputs and solutions of each share in turn, gathered by threads ahead of their use.

    Threads, because gathering and reading leave Python's lock free, and there are no processes to
    outlive a killed run. Samples that are read from a file are read one batch ahead in any case;
    so at most two batches per thread are in memory.
    """
    is_read = isinstance(pairs.u, Rows)
    workers = workers or int(is_read)
    most = workers if is_read else 2 * workers

    def gather(shard: BatchShard) -> tuple[Tensor, Tensor]:
        return pairs.a[shard.rows], pairs.u[shard.rows]

    if not workers:
        yield from map(gather, chosen)
        return
    with ThreadPoolExecutor(workers) as pool:
        ahead: deque[Future[tuple[Tensor, Tensor]]] = deque()
        for shard in chosen:
            ahead.append(pool.submit(gather, shard))
            if len(ahead) > most:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
