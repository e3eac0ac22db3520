"""Work of compiled loops, which run on one thread each, shared out among torch's threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch


def on_all_threads(work: Callable[[int, int, int], None], n: int) -> None:
    """work(i, start, stop) for the i-th share start … stop − 1 of n rows, all at a time."""
    shares = min(n, torch.get_num_threads())
    if shares < 2:
        return work(0, 0, n)
    cuts = [n * i // shares for i in range(shares + 1)]
    with ThreadPoolExecutor(shares) as pool:
        list(pool.map(work, range(shares), cuts, cuts[1:]))
