"""One experiment from beginning to end: train, evaluate, draw, record."""

import json
import os
import statistics
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sfo.data.arrays import Arrays, check_finite, check_kind
from sfo.data.generate import generate
from sfo.data.load import benchmark_path, file_pairs, load_file
from sfo.data.pairs import Pairs, Split, SplitName
from sfo.data.sources import open_data
from sfo.evaluation.cost import count_parameters, measure_cost
from sfo.evaluation.errors import Errors, evaluate, to_model
from sfo.experiments.record import Record
from sfo.files import read_json_lines, save_figure
from sfo.models.operator import Operator
from sfo.models.pretrained import RUN_MODEL
from sfo.registry import BENCHMARKS, MODELS
from sfo.shapes import Field
from sfo.training.config import Experiment
from sfo.training.fit import Run, Status, fit, load_best
from sfo.training.folder import RunFolder
from sfo.training.prepare import (
    DataShape,
    check_arrays,
    described,
    load_pairs,
    load_splits,
    own_shape,
)
from sfo.training.processes import on_rank_zero
from sfo.training.wrappers import Normalised

EVALUATION_BATCH = 10


def run(
    experiment: Experiment,
    out: str | os.PathLike[str],
    *,
    resume: Any = False,
    arrays: Arrays | None = None,
    plugins: Sequence[str] = (),
    cost: bool = True,
    memory: bool = False,
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
        arrays: Data of the user's own, for an experiment with such.
        plugins: What the run needs of the user's own modules, to be loaded again.
        cost: Also measure seconds and FLOPs.
        memory: With them, the memory of a training step, which takes some seconds.
        picture: Also draw the best, the median and the worst test sample.
        progress: Called after every step.
        fabric: Accelerator, devices, … as `fit` has them.
    """
    given: dict[str, Any] = {}
    test: Pairs | None = None
    sources: dict[str, Any] = {"plugins": list(plugins)} if plugins else {}
    if arrays is not None:
        train, validation, test = load_splits(experiment, arrays=arrays)
        given = dict(train=train, validation=validation)
        if arrays.path is not None:
            sources["data"] = str(arrays.path)
    trained = fit(
        experiment, Path(out), resume=resume, progress=progress, sources=sources, **given, **fabric
    )
    test = trained.test if arrays is None else test
    measured = (cost, memory)
    return on_rank_zero(trained.fabric, lambda: _finish(trained, test, measured, picture=picture))


def _finish(
    trained: Run, test: Pairs | None, measured: tuple[bool, bool], *, picture: bool
) -> Record:
    """Evaluate a trained model, and leave what there is to say of it in the run's folder."""
    assert test is not None
    record = make_record(trained, test)
    folder = RunFolder(trained.folder)
    cost, memory = measured
    if cost:
        folder.write("cost.json", json.dumps(_cost(trained, test, memory), indent=1) + "\n")
    if picture:
        draw(trained.model, test, folder.path / "predictions.png", record.errors.per_sample)
        save_model(trained.model, folder)
    # Last: a run with a Record is finished.
    record.save(folder.path / "record.json")
    return record


def draw(
    model: nn.Module,
    pairs: Pairs,
    path: str | os.PathLike[str],
    errors: Sequence[float] | None = None,
) -> Path:
    """Draw the best, the median and the worst sample; `errors` are those of all, if known."""
    from sfo.plot.predictions import prediction_figure

    if errors is None:
        errors = evaluate(model, pairs).per_sample
    order = np.argsort(errors)
    chosen = [int(order[0]), int(order[len(order) // 2]), int(order[-1])]
    few = pairs[chosen]
    figure = prediction_figure(few, predict(model, few.a), [errors[i] for i in chosen])
    return save_figure(figure, path)


def exported(model: nn.Module) -> nn.Module:
    """A run's model as a user wants it: units of the data inside of the model, if it has any."""
    return model.absorbed() if isinstance(model, Normalised) else model


def save_model(model: nn.Module, folder: RunFolder) -> None:
    """Leave the best model where `from_pretrained` finds it, if it is one that it can read."""
    model = exported(deepcopy(model))
    if isinstance(model, Operator) and type(model) in map(MODELS.__getitem__, MODELS):
        model.save_pretrained(folder.path / RUN_MODEL)


def run_arrays(
    folder: RunFolder, experiment: Experiment, file: str | os.PathLike[str] | None = None
) -> Arrays | None:
    """The arrays that a run was trained on, where they were or are said to be now.

    None for a run on a benchmark. A run whose data are gone, or are others, is refused.
    """
    known = own_shape(experiment)
    if known is None:
        if file is not None:
            raise ValueError(f"{folder} is a run on a benchmark, which has no --data.")
        return None
    path = file or folder.sources().get("data")
    if path is None:
        raise ValueError(
            f"{folder} was trained on arrays in memory, which must be given again: call sfo.fit "
            "with them and the same folder, or pass a file with them as --data."
        )
    if not Path(path).exists():
        raise ValueError(f"The data of {folder} are gone: {path} does not exist; pass --data.")
    arrays = described(open_data(path, n_input=experiment.train.rollout or 1), known)
    check_arrays(experiment, arrays)
    return arrays


def make_record(trained: Run, test: Pairs) -> Record:
    """The Record of a trained model on test samples."""
    validated = [row for row in trained.history if row["validation"] is not None]
    best = min(validated, key=lambda row: row["validation"])
    return Record(
        experiment=trained.experiment,
        errors=evaluate(trained.model, test, batch_size=_at_once(trained.experiment)),
        parameters=count_parameters(trained.model),
        best_epoch=best["epoch"],
        validation=best["validation"],
        epochs=len(trained.history),
    )


def _at_once(experiment: Experiment) -> int:
    """Samples in a batch of the evaluation: no more than a run was told to take at a time."""
    return min(experiment.train.micro_batch or EVALUATION_BATCH, EVALUATION_BATCH)


@torch.no_grad()
def predict(model: nn.Module, a: Field, batch_size: int = EVALUATION_BATCH) -> Field:
    """u for every input, in the model's own precision, but float32 at least."""
    u = torch.cat([model(to_model(model, rows)) for rows in a.split(batch_size)])
    # NumPy has no bfloat16.
    return u.to(torch.promote_types(u.dtype, torch.float32))


def _cost(trained: Run, test: Pairs, memory: bool) -> dict[str, Any]:
    train = trained.experiment.train
    batch = min(train.micro_batch or train.batch_size, len(test))
    a, u = test.a[:batch], test.u[:batch]
    measured = asdict(measure_cost(trained.model, a, u, memory=memory))
    timing = trained.folder / "timing.jsonl"
    seconds = [row["seconds"] for row in read_json_lines(timing)]
    return {"seconds_per_epoch": statistics.median(seconds) if seconds else None, **measured}


def evaluate_run(
    path: str | os.PathLike[str],
    *,
    points: int | None = None,
    file: str | os.PathLike[str] | None = None,
    data: str | os.PathLike[str] | None = None,
    split: SplitName = "test",
    device: torch.device | None = None,
) -> tuple[Errors, Pairs]:
    """The errors of a finished run, on its own test samples or elsewhere.

    Args:
        path: The run's folder.
        points: Evaluate on a grid of so many points along each axis: fewer of the stored
            points, or more of the solver's, solved again from the same seeds. Of data of the
            user's own, fewer of their points.
        file: Evaluate on the samples of a data file.
        data: Evaluate on other data of the user's own.
        split: Which samples; of a file, "all" unless it is split.
        device: Where to compute; None: on the CPU.
    """
    folder = RunFolder(path)
    experiment = folder.experiment()
    if data is not None or experiment.data.arrays is not None:
        if file is not None:
            raise ValueError(
                f"`file` is for benchmarks, got {file}; pass data of your own with --data."
            )
        pairs = own_pairs(folder, experiment, data, split, points)
    else:
        pairs = run_pairs(experiment, points=points, file=file, split=split)
    model = load_best(folder).to(device)
    return evaluate(model, pairs, batch_size=_at_once(experiment)), pairs


def own_pairs(
    folder: RunFolder,
    experiment: Experiment,
    data: str | os.PathLike[str] | None,
    split: SplitName,
    points: int | None = None,
) -> Pairs:
    """Pairs of the user's own: one split of the run's data, or all samples of other data."""
    known = experiment.data.arrays
    arrays: Arrays | None
    if data is None:
        arrays = run_arrays(folder, experiment)
        is_known = True
    else:
        n_input = experiment.train.rollout or 1
        arrays = described(open_data(data, n_input=n_input), folder.data_shape())
        digest = arrays.check()
        is_known = known is not None and digest == known.sha256
    assert arrays is not None
    if points is not None:
        stride = _stride(arrays.grid.shape[0], points)
        for n in arrays.grid.shape:
            _stride(n, n // stride)
        arrays = arrays.subsample(stride)
    if is_known:
        return load_pairs(experiment, split, arrays=arrays)
    everything = tuple(range(len(arrays)))
    return arrays.pairs(Split("default", everything, (), ()), "all")


def run_pairs(
    experiment: Experiment,
    *,
    points: int | None = None,
    file: str | os.PathLike[str] | None = None,
    split: SplitName = "test",
) -> Pairs:
    """The pairs to evaluate a run on, see `evaluate_run`."""
    data = experiment.data
    if file is not None:
        data = data.model_copy(update=dict(file=str(file)))
    if points is None:
        return load_pairs(experiment.model_copy(update=dict(data=data)), split)
    if data.file is not None:
        stored = load_file(data.file, 1).grid.shape[0]
        changed = data.model_copy(update=dict(stride=_stride(stored, points)))
        return load_pairs(experiment.model_copy(update=dict(data=changed)), split)
    benchmark = BENCHMARKS[data.benchmark].with_options(**data.options)
    scale = benchmark.scale(data.scale)
    stored = benchmark.stored(scale)[0].shape[0]
    if points <= stored:
        changed = data.model_copy(update=dict(stride=_stride(stored, points)))
        return load_pairs(experiment.model_copy(update=dict(data=changed)), split)
    finer = replace(scale, stored=_stride(scale.n, points), stride=1)
    samples = data.samples or scale.samples
    path = benchmark_path(benchmark, finer, samples, data.seed)
    generate(benchmark, path, scale=finer, samples=samples, seed=data.seed)
    return file_pairs(load_file(path, 1, data.time_stride), split, data.scheme)


def _stride(stored: int, points: int) -> int:
    if points < 1 or stored % points:
        possible = [str(stored // r) for r in range(1, stored // 4 + 1) if stored % r == 0]
        raise ValueError(
            f"`grid` must divide the {stored} points that there are, got {points}; possible: "
            f"{', '.join(possible)}."
        )
    return stored // points


def predict_run(
    path: str | os.PathLike[str], inputs: np.ndarray, device: torch.device | None = None
) -> np.ndarray:
    """u for inputs `(sample, in, *grid)`, or one input `(in, *grid)`, by a run's best model."""
    folder = RunFolder(path)
    model = load_best(folder).to(device)
    return predict_inputs(model, folder.data_shape(), inputs).cpu().numpy()


def predict_inputs(model: nn.Module, shape: DataShape, a: Any) -> Tensor:
    """u for inputs `(sample, in, *grid)`, or one input `(in, *grid)`, that are checked first."""
    check_kind("a", a if hasattr(a, "dtype") else np.asarray(a))
    values = torch.as_tensor(np.asarray(a, dtype=np.float64) if not isinstance(a, Tensor) else a)
    single = values.ndim == shape.grid.n_dim + 1
    values = values[None] if single else values
    if values.ndim != shape.grid.n_dim + 2 or values.shape[1] != shape.in_channels:
        raise ValueError(
            f"The input must be (sample, {shape.in_channels}, *grid) on {shape.grid.n_dim} axes, "
            f"its channels {', '.join(shape.inputs)}, got the shape {tuple(a.shape)}."
        )
    if 0 in values.shape:
        raise ValueError(f"The input must not be empty, got the shape {tuple(a.shape)}.")
    check_finite("a", values.detach().cpu())
    u = predict(model, values)
    bad = (~u.isfinite()).flatten(1).any(1)
    if bad.any():
        row = int(bad.nonzero()[0])
        raise ValueError(
            f"The prediction for sample {row} is not finite, though its input is: that reaches "
            f"{values[row].abs().max():.3g} in absolute value. Pass inputs of the size of the "
            "training data."
        )
    return u[0] if single else u
