"""Tables that need no training: parameter counts, and the time of an epoch side by side."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from sfo.data.benchmarks import ScaleName
from sfo.evaluation.cost import count_parameters
from sfo.experiments.blocks import Table
from sfo.experiments.estimate import batches, training_step
from sfo.experiments.measurement_tables import parameter_table, runtime_table, unit_table
from sfo.experiments.record import Revision, declared_revision
from sfo.experiments.results import Results
from sfo.experiments.seconds import measure_steps
from sfo.experiments.studies import MAIN_MODELS, PAPER_BENCHMARKS
from sfo.experiments.studies.main import main_cells
from sfo.experiments.studies.pareto import pareto_cells
from sfo.models.build import Preset, installed
from sfo.registry import Registry
from sfo.training.config import Experiment
from sfo.training.prepare import DataShape, build

Report = Callable[[str], None]
"""Takes a line on what is being measured."""


@dataclass(frozen=True)
class Measurement:
    """A table that is measured in one go.

    Args:
        name: As `sfo reproduce` has it.
        title: A line for the report.
        about: What the table tells.
        table: From what `measure` gave to a table of the report.
        measure: From the scale and the results so far to a number for each benchmark and model,
            None where there is none, and what a reader must know of how it was measured.
        grows: Whether more of it is measured as more runs are finished.
    """

    name: str
    title: str
    about: str
    table: Callable[[Mapping[str, Any]], Table]
    measure: Callable[[ScaleName, Report, Results], dict[str, Any]]
    grows: bool = False


def parameters(scale: ScaleName, report: Report, results: Results) -> dict[str, Any]:
    """Learned numbers of every model in its published size, on the meta device: none is stored."""
    counts: dict[str, dict[str, int]] = {}
    for benchmark in PAPER_BENCHMARKS:
        report(benchmark)
        counts[benchmark] = {}
        for column, (model, preset) in _columns().items():
            experiment = Experiment.of(benchmark, model, preset=preset, scale="paper")
            shape = DataShape.of_benchmark(experiment)
            with torch.device("meta"):
                counts[benchmark][column] = count_parameters(build(experiment, shape))
    return {"counts": counts, "models": _models()}


def runtime(scale: ScaleName, report: Report, results: Results, rounds: int = 5) -> dict[str, Any]:
    """Seconds of a training epoch on one thread, the models taking turns, medians of the rounds.

    Benchmarks whose models are all in the table already, as they are today, stay as they are.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    table: dict[str, dict[str, float]] = (results.table("runtime") or {}).get("seconds", {})
    try:
        for benchmark in PAPER_BENCHMARKS:
            if not {*_columns()} <= {*table.get(benchmark, {})}:
                table = {**table, benchmark: _epochs(benchmark, scale, rounds, report)}
    finally:
        torch.set_num_threads(threads)
    return {"seconds": table, "models": _models(), "rounds": rounds, "scale": scale}


def _epochs(benchmark: str, scale: ScaleName, rounds: int, report: Report) -> dict[str, float]:
    steps: dict[str, Callable[[], None]] = {}
    taken: dict[str, list[float]] = {}
    for column, (model, preset) in _columns().items():
        experiment = Experiment.of(benchmark, model, preset=preset, scale=scale)
        steps[column] = training_step(experiment)
        taken[column] = []
    for k in range(rounds + 1):
        report(f"{benchmark}, round {k + 1} of {rounds + 1}")
        for column, step in steps.items():
            start = time.perf_counter()
            step()
            if k:  # The first is for warming up.
                taken[column].append(time.perf_counter() - start)
    steps_of_epoch = batches(experiment)
    return {column: steps_of_epoch * statistics.median(s) for column, s in taken.items()}


def seconds(scale: ScaleName, report: Report, results: Results) -> dict[str, Any]:
    """Steps of all finished runs of the main table and of the study pareto, beside a reference."""
    experiments = []
    for cell in main_cells(scale, 1):
        experiments += [*cell.trials(), *cell.runs(results)]
    experiments += [cell.experiment for cell in pareto_cells(scale, 1)]
    finished = [e for e in experiments if results.record(e) is not None]
    return {**measure_steps(finished, results.table("seconds"), report=report), "scale": scale}


def measured_models() -> list[str]:
    """Models that the measurements take, installed or not."""
    return [model for model, _ in MAIN_MODELS.values()]


def _columns() -> dict[str, tuple[str, Preset]]:
    """The main table's, as far as their models are installed."""
    return {c: entry for c, entry in MAIN_MODELS.items() if installed(entry[0])}


def _models() -> dict[str, list[str | Revision]]:
    """Model, preset and revision of each column, so that a table shows what is as it was then."""
    return {c: [*entry, declared_revision(*entry)] for c, entry in _columns().items()}


MEASUREMENTS: Registry[Measurement] = Registry("measurement")
for _entry in (
    Measurement(
        "params",
        "Parameters",
        "Learned numbers of the models in their published sizes, a complex one counting once.",
        parameter_table,
        parameters,
    ),
    Measurement(
        "runtime",
        "Seconds per epoch",
        "Of training, on one thread of this machine, all models taking turns in one process; "
        "PINO without its residual. The paper's are from other hardware and larger sets: compare "
        "on one benchmark, not across.",
        runtime_table,
        runtime,
    ),
    Measurement(
        "seconds",
        "Seconds of a training step",
        "Of neuraloperator's FNO with Adam, on one thread, the unit in which the steps of all runs "
        "are measured: they take turns with it.",
        unit_table,
        seconds,
        grows=True,
    ),
):
    MEASUREMENTS.register(_entry.name)(_entry)
