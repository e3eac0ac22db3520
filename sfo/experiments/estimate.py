"""How long a run will take: the time of one training step, measured once and remembered.

It is CPU time, which is what a step takes on a core of its own: on a busy machine the time on the
clock would be longer, and would be remembered.

What a physics loss costs on top is not in it.
"""

import heapq
import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import torch

from sfo.data.load import data_folder
from sfo.files import parse_json, write_atomically
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.loss import relative_l2
from sfo.training.optimizers import optimizer
from sfo.training.prepare import DataShape, build

TRAIN_SHARE = 0.8
"""Share of the samples that train."""
MAX_TIMED_SECONDS = 60.0
"""Seconds of a step after which no second one is timed; to compile all kernels takes less."""


class Estimates:
    """Expected seconds of runs on one thread of this machine.

    Args:
        path: File in which measured steps are remembered; None: beside the data.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or data_folder().parent / "step-cpu-seconds.json"
        self._known: dict[str, float] = {}
        if self.path.exists():
            with suppress(ValueError, TypeError):  # Damaged: the steps are measured again.
                self._known = dict(parse_json(self.path.read_text()))

    def seconds(self, experiment: Experiment) -> float:
        """Expected seconds of a whole run: steps times the time of one."""
        return batches(experiment) * experiment.train.epochs * self.step(experiment)

    def step(self, experiment: Experiment) -> float:
        """Seconds of one training step."""
        key = json.dumps(
            [
                experiment.data.model_dump(mode="json", exclude={"seed"}),
                experiment.model.model_dump(mode="json"),
                experiment.train.batch_size,
                experiment.train.optimizer,
            ]
        )
        if key not in self._known:
            self._known[key] = _measure(experiment)
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.path, (json.dumps(self._known, indent=1) + "\n").encode())
        return self._known[key]


def shared(seconds: Iterable[float], workers: int) -> float:
    """Seconds until the last run ends, if each begins in turn at the first worker that is free.

    Example:
        >>> shared([3, 1, 1, 1], workers=2), shared([3, 1, 1, 1], workers=64)
        (3.0, 3.0)
    """
    ends = [0.0] * workers
    for run in seconds:
        heapq.heapreplace(ends, ends[0] + run)
    return max(ends)


def batches(experiment: Experiment) -> int:
    """Steps of an epoch."""
    scale = BENCHMARKS[experiment.data.benchmark].scale(experiment.data.scale)
    samples = experiment.data.train_samples or int(
        TRAIN_SHARE * (experiment.data.samples or scale.samples)
    )
    return -(-samples // experiment.train.batch_size)


def _measure(experiment: Experiment) -> float:
    """The second of two steps, because the first may compile; only the first if it is very long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        step = training_step(experiment)
        seconds = _timed(step)
        return _timed(step) if seconds < MAX_TIMED_SECONDS else seconds
    finally:
        torch.set_num_threads(threads)


def _timed(step: Callable[[], None]) -> float:
    start = time.process_time()
    step()
    return time.process_time() - start


def training_step(experiment: Experiment) -> Callable[[], None]:
    """A step of an experiment's model on random numbers of its data's shape, without physics."""
    shape = DataShape.of_benchmark(experiment)
    model = build(experiment, shape)
    chosen = optimizer(model, experiment.train)
    batch = experiment.train.batch_size
    a = torch.randn(batch, shape.in_channels, *shape.grid.shape)
    u = torch.randn(batch, shape.out_channels, *shape.grid.shape)

    def step() -> None:
        chosen.zero_grad()
        relative_l2(model(a), u).mean().backward()
        chosen.step()

    return step
