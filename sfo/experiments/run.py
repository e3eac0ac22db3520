"""One experiment from beginning to end: train, measure, draw, record."""

import json
import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from sfo.data.generate import generate
from sfo.data.load import benchmark_path, file_pairs, load_file
from sfo.data.pairs import Pairs, Part
from sfo.evaluation.cost import count_parameters, measure_cost
from sfo.evaluation.errors import Errors, evaluate, to_model
from sfo.experiments.record import Record
from sfo.registry import BENCHMARKS
from sfo.shapes import Field
from sfo.training.config import Experiment
from sfo.training.fit import Run, Status, fit, load_best
from sfo.training.folder import RunFolder
from sfo.training.prepare import load_pairs
from sfo.training.processes import in_first

EVALUATION_BATCH = 10


def run(
    experiment: Experiment,
    out: str | os.PathLike[str],
    *,
    resume: Any = False,
    cost: bool = True,
    picture: bool = True,
    progress: Callable[[Status], None] | None = None,
    **fabric: Any,
) -> Record:
    """Train, evaluate on the test samples, and leave Record, cost and picture in the run's folder.

    Many processes train; the first of them does the rest, and all return its Record.

    Args:
        experiment: What to do.
        out: The run's folder.
        resume: Go on with a run that was begun; see `fit`.
        cost: Also measure seconds, memory and FLOPs, which takes some seconds.
        picture: Also draw the best, the median and the worst test sample.
        progress: Called after every step.
        fabric: Accelerator, devices, … as `fit` has them.
    """
    trained = fit(experiment, Path(out), resume=resume, progress=progress, **fabric)
    return in_first(trained.fabric, lambda: _finish(trained, cost=cost, picture=picture))


def _finish(trained: Run, *, cost: bool, picture: bool) -> Record:
    """Evaluate a trained model, and leave what there is to say of it in the run's folder."""
    test = load_pairs(trained.experiment, "test")
    record = measure(trained, test)
    folder = RunFolder(trained.folder)
    if cost:
        folder.write("cost.json", json.dumps(_cost(trained, test), indent=1) + "\n")
    if picture:
        from sfo.evaluation.predictions import prediction_figure

        figure = prediction_figure(test, predict(trained.model, test.a), record.errors.per_sample)
        figure.savefig(folder.path / "predictions.png", dpi=110)
    # Last: a run with a Record is finished.
    record.save(folder.path / "record.json")
    return record


def measure(trained: Run, test: Pairs) -> Record:
    """The Record of a trained model on test samples."""
    validated = [row for row in trained.history if row["validation"] is not None]
    best = min(validated, key=lambda row: row["validation"])
    return Record(
        experiment=trained.experiment,
        errors=evaluate_pairs(trained.model, test),
        parameters=count_parameters(trained.model),
        best_epoch=best["epoch"],
        validation=best["validation"],
        epochs=len(trained.history),
    )


def evaluate_pairs(model: nn.Module, pairs: Pairs, batch_size: int = EVALUATION_BATCH) -> Errors:
    """All metrics of a model on some pairs."""
    return evaluate(
        model,
        pairs.a,
        pairs.u,
        components=len(pairs.names),
        n_times=pairs.n_times,
        grid=pairs.grid,
        fields=pairs.names,
        batch_size=batch_size,
    )


@torch.no_grad()
def predict(model: nn.Module, a: Field, batch_size: int = EVALUATION_BATCH) -> Field:
    """u for every input, in the model's own precision, but float32 at least."""
    u = torch.cat([model(to_model(model, rows)) for rows in a.split(batch_size)])
    # NumPy has no bfloat16.
    return u.to(torch.promote_types(u.dtype, torch.float32))


def _cost(trained: Run, test: Pairs) -> dict[str, Any]:
    batch = min(trained.experiment.train.batch_size, len(test))
    measured = asdict(measure_cost(trained.model, test.a[:batch], test.u[:batch]))
    timing = trained.folder / "timing.jsonl"
    seconds = [json.loads(line)["seconds"] for line in timing.read_text().splitlines()]
    return {"seconds_per_epoch": statistics.median(seconds) if seconds else None, **measured}


def evaluate_run(
    path: str | os.PathLike[str],
    *,
    points: int | None = None,
    file: str | os.PathLike[str] | None = None,
    part: Part = "test",
) -> tuple[Errors, Pairs]:
    """The errors of a finished run, on its own test samples or elsewhere.

    Args:
        path: The run's folder.
        points: Evaluate on a grid of so many points along each axis: fewer of the stored
            points, or more of the solver's, solved again from the same seeds.
        file: Evaluate on the samples of a data file.
        part: Which samples; of a file, "all" unless it is split.
    """
    folder = RunFolder(path)
    experiment = folder.experiment()
    pairs = run_pairs(experiment, points=points, file=file, part=part)
    return evaluate_pairs(load_best(folder), pairs), pairs


def run_pairs(
    experiment: Experiment,
    *,
    points: int | None = None,
    file: str | os.PathLike[str] | None = None,
    part: Part = "test",
) -> Pairs:
    """The pairs to evaluate a run on, see `evaluate_run`."""
    data = experiment.data
    if file is not None:
        data = data.model_copy(update=dict(file=str(file)))
    if points is None:
        return load_pairs(experiment.model_copy(update=dict(data=data)), part)
    if data.file is not None:
        stored = load_file(data.file, 1).grid.shape[0]
        changed = data.model_copy(update=dict(stride=_stride(stored, points)))
        return load_pairs(experiment.model_copy(update=dict(data=changed)), part)
    benchmark = BENCHMARKS[data.benchmark].with_options(**data.options)
    scale = benchmark.scale(data.scale)
    stored = benchmark.stored(scale)[0].shape[0]
    if points <= stored:
        changed = data.model_copy(update=dict(stride=_stride(stored, points)))
        return load_pairs(experiment.model_copy(update=dict(data=changed)), part)
    finer = replace(scale, stored=_stride(scale.n, points), stride=1)
    samples = data.samples or scale.samples
    path = benchmark_path(benchmark, finer, samples, data.seed)
    generate(benchmark, path, scale=finer, samples=samples, seed=data.seed)
    return file_pairs(load_file(path, 1, data.time_stride), part, data.scheme)


def _stride(stored: int, points: int) -> int:
    if points < 1 or stored % points:
        possible = [str(stored // r) for r in range(1, stored // 4 + 1) if stored % r == 0]
        raise ValueError(
            f"`grid` must divide the {stored} points that there are, got {points}; possible: "
            f"{', '.join(possible)}."
        )
    return stored // points


def predict_run(path: str | os.PathLike[str], inputs: np.ndarray) -> np.ndarray:
    """u for inputs `(sample, in, *grid)`, or one input `(in, *grid)`, by a run's best model."""
    model = load_best(Path(path))
    shape = RunFolder(path).data_shape()
    a = torch.as_tensor(np.asarray(inputs, dtype=np.float64))
    single = a.ndim == shape.grid.n_dim + 1
    if single:
        a = a[None]
    if a.ndim != shape.grid.n_dim + 2 or a.shape[1] != shape.in_channels:
        raise ValueError(
            f"The input must be (sample, {shape.in_channels}, *grid) on {shape.grid.n_dim} axes, "
            f"its channels {', '.join(shape.inputs)}, got the shape {tuple(inputs.shape)}."
        )
    u = predict(model, a)
    return (u[0] if single else u).numpy()
