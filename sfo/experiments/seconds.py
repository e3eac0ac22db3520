"""Training seconds of runs on one thread: a step's time over a reference step's, taken in turn.

Machines are busy and differ; a ratio of two steps that take turns in one process does not much.
The seconds of a run are that ratio times the reference's own seconds, measured once per
benchmark, times the number of steps. So runs that are measured on different days compare.
"""

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from sfo.experiments.estimate import batches, training_step
from sfo.experiments.record import model_revision
from sfo.files import json_sha256
from sfo.models.build import installed
from sfo.training.config import Experiment

REFERENCE = "neuralop_fno"
"""The model whose step the others are compared with: with Adam, at the benchmark's batch size."""


def step_key(experiment: Experiment) -> str:
    """Ten letters for what a step's time depends on."""
    parts = [
        experiment.data.model_dump(mode="json", exclude={"seed", "samples", "train_samples"}),
        experiment.model.model_dump(mode="json"),
        experiment.train.batch_size,
        experiment.train.optimizer,
    ]
    revision = model_revision(experiment)
    # What was measured before there were revisions keeps its key.
    return json_sha256([*parts, revision] if revision > 1 else parts)[:10]


def reference(experiment: Experiment) -> Experiment:
    """The run whose step is the unit on an experiment's benchmark."""
    model = REFERENCE if installed(REFERENCE) else "fno"
    return Experiment.of(experiment.data.benchmark, model, scale=experiment.data.scale)


def measure_steps(
    experiments: Iterable[Experiment],
    known: Mapping[str, Any] | None = None,
    *,
    rounds: int = 7,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Ratios of steps to their reference's, and the reference's seconds, on one thread.

    Args:
        experiments: The runs.
        known: What was measured before; only what is not in it is measured.
        rounds: Pairs of steps that are timed for each, after one that is not.
        report: Called with a line on what is being measured.
    """
    ratios: dict[str, float] = dict((known or {}).get("ratios", {}))
    units: dict[str, float] = dict((known or {}).get("units", {}))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for experiment in experiments:
            key, benchmark = step_key(experiment), experiment.data.benchmark
            if key in ratios and benchmark in units:
                continue
            report(f"{benchmark}, {experiment.model.name}")
            unit, ratio = _in_turn(experiment, rounds)
            units.setdefault(benchmark, unit)
            ratios[key] = ratio
    finally:
        torch.set_num_threads(threads)
    return {"ratios": ratios, "units": units, "rounds": rounds}


def _in_turn(experiment: Experiment, rounds: int) -> tuple[float, float]:
    """Median seconds of a reference step, and the median ratio of a step to the one before."""
    first, second = training_step(reference(experiment)), training_step(experiment)
    units, ratios = [], []
    for k in range(rounds + 1):
        unit, own = _timed(first), _timed(second)
        if k:  # The first is for warming up.
            units.append(unit)
            ratios.append(own / unit)
    return statistics.median(units), statistics.median(ratios)


def _timed(step: Callable[[], None]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def run_seconds(experiment: Experiment, measured: Mapping[str, Any] | None) -> float | None:
    """Training seconds of a whole run, if its step was measured."""
    if measured is None:
        return None
    ratio = measured["ratios"].get(step_key(experiment))
    unit = measured["units"].get(experiment.data.benchmark)
    if ratio is None or unit is None:
        return None
    return ratio * unit * batches(experiment) * experiment.train.epochs
