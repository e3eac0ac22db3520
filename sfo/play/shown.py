"""The models that the playground shows: pretrained ones by name, runs by their folders."""

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from sfo import zoo
from sfo.data.arrays import split_by_share
from sfo.experiments.own import load_run
from sfo.experiments.run import predict_inputs, run_arrays
from sfo.play.sources import NoSource, Solver, Source, Stored, points
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder
from sfo.training.prepare import DataShape


@dataclass(frozen=True)
class LoadedModel:
    """A model that has been read, which happens when it is first asked for.

    Args:
        model: The model, in evaluation mode.
        shape: Shape of the data that it was trained on.
        source: Where states and truths come from.
        words: How it was trained and how well it does, in a sentence.
    """

    model: nn.Module
    shape: DataShape
    source: Source
    words: str

    def predict(self, a: Tensor) -> Tensor:
        """The solution `(field, time, *grid)` for inputs `(channel, *grid)`."""
        u = predict_inputs(self.model, self.shape, a)
        return self.shape.by_field(u)


@dataclass(frozen=True)
class ListedModel:
    """A model in the list, which may not have been read yet.

    Args:
        name: What it is asked for by; it never is a path.
        title: What the page calls it.
        data: Name of the benchmark or of the user's own data.
        data_title: What the page calls those.
        load: Reads the rest.
    """

    name: str
    title: str
    data: str
    data_title: str
    load: Callable[[], LoadedModel] = field(repr=False)

    @property
    def is_loaded(self) -> bool:
        """Whether `parts` have been read."""
        return "parts" in self.__dict__

    @cached_property
    def parts(self) -> LoadedModel:
        """The model itself, read once."""
        return self.load()


def find_models(
    targets: Sequence[str], data: str | os.PathLike[str] | None = None
) -> dict[str, ListedModel]:
    """Models by name: those asked for, or all pretrained ones.

    Args:
        targets: Names of pretrained models, folders of runs, and folders that hold such.
        data: File with the data of those runs that were trained on arrays of the user's own;
            None: the file that each was trained on.
    """
    known = zoo.names()
    found: list[ListedModel] = []
    for target in targets or known:
        path = Path(target)
        if target in known:
            found.append(_pretrained(target))
        elif (path / "experiment.json").exists():
            found.append(_run(path, data))
        elif path.is_dir():
            inside = sorted(p.parent for p in path.glob("*/record.json"))
            if not inside:
                raise ValueError(f"{path} is not a finished run, and holds none.")
            found += [_run(folder, data) for folder in inside]
        else:
            names = ", ".join(known) or "none is installed"
            raise ValueError(
                f"{target!r} is no run's folder and no pretrained model; pretrained: {names}."
            )
    if not found:
        raise ValueError(
            "There is no model to show: name the folder of a run, as in `sfo play runs/demo`."
        )
    models: dict[str, ListedModel] = {}
    for shown in found:
        name, number = shown.name, 2
        while name in models:
            name, number = f"{shown.name}-{number}", number + 1
        models[name] = shown
    return models


def _pretrained(name: str) -> ListedModel:
    card = zoo.card(name)
    experiment = Experiment(**card["experiment"])
    data = experiment.data.benchmark

    def load() -> LoadedModel:
        shape = DataShape.of_benchmark(experiment)
        words = (
            f"Pretrained on {card['train_samples']:,} samples. "
            f"Test error {two_digits(card['test_error_percent'])} %. {speed_text(card)}"
        )
        return LoadedModel(
            zoo.load_pretrained(name), shape, solver_source(experiment, shape), words
        )

    title = f"{experiment.model.name.upper()}, pretrained"
    return ListedModel(name, title, data, BENCHMARKS[data].title, load)


def speed_text(card: dict[str, Any]) -> str:
    """How a pretrained model compares with the solver, in a sentence.

    Example:
        >>> speed = {"speed_up": 0.6302, "solver_points": 64}
        >>> speed_text({"speed": speed, "grid": [64, 64]})[:45]
        'In batches 0.63 times as fast as the coarsest'
    """
    speed, axes = card["speed"], len(card["grid"])
    grid = " × ".join([f"{speed['solver_points']:,}"] * axes)
    times = two_digits(speed["speed_up"])
    return (
        f"In batches {times} times as fast as the coarsest solver that is as accurate, on {grid} "
        "points."
    )


def two_digits(value: float) -> str:
    """A positive number in two digits, without an exponent.

    Example:
        >>> [two_digits(x) for x in (0.0011067, 1.96, 18.12, 1234.0)]
        ['0.0011', '2.0', '18', '1,200']
    """
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.{max(0, 1 - math.floor(math.log10(rounded)))}f}"


def _run(path: Path, file: str | os.PathLike[str] | None = None) -> ListedModel:
    experiment = RunFolder(path).experiment()
    data, what = experiment.data, experiment.model
    own = data.arrays is not None
    title = f"{data.benchmark} (own data)" if own else BENCHMARKS[data.benchmark].title
    label = f"{what.name.upper()}, {what.preset}, {path.name}"
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", path.resolve().name).strip("-.") or "run"

    def load() -> LoadedModel:
        run = load_run(path)
        source = (
            _stored(path, experiment, run.shape, file)
            if own
            else solver_source(experiment, run.shape)
        )
        words = (
            f"{run.record.epochs} epochs, seed {experiment.seed}. "
            f"Test error {run.errors.percent:.3g} %."
        )
        return LoadedModel(run.model.eval(), run.shape, source, words)

    if own and file is not None:
        # A file that is not the run's is refused now, not when somebody looks at the run.
        run_arrays(RunFolder(path), experiment, file)
    return ListedModel(name, label, data.benchmark, title, load)


def solver_source(experiment: Experiment, shape: DataShape) -> Source:
    """The benchmark's solver, if its points contain the model's."""
    data = experiment.data
    benchmark = BENCHMARKS[data.benchmark].with_options(**data.options)
    scale = benchmark.scale(data.scale)
    if Solver.fits(benchmark, scale, shape):
        return Solver(benchmark, scale, shape)
    why = (
        f"There is no truth to compare with: the points of the model, {points(shape.grid)}, are "
        f"not among those of the solver of {benchmark.title}, {points(benchmark.grid(scale))}."
    )
    return NoSource(shape, why)


def _stored(
    path: Path, experiment: Experiment, shape: DataShape, file: str | os.PathLike[str] | None
) -> Source:
    """The data of the user's own, if they still are where they were or are said to be.

    A file that was named and is not the run's is refused; without one, the page says why there
    is no truth.
    """
    assert experiment.data.arrays is not None
    try:
        arrays = run_arrays(RunFolder(path), experiment, file)
    except (ValueError, OSError):
        if file is not None:
            raise
        where = RunFolder(path).sources().get("data")
        gone = (
            f"its data, {Path(where).name}, are no longer where they were"
            if where
            else "it was trained on arrays in memory, which its folder does not hold"
        )
        why = (
            f"There is no truth to compare with: {gone}. Save the arrays with np.savez('mine.npz', "
            f"a=a, u=u) and start `sfo play {path} --data mine.npz`."
        )
        return NoSource(shape, why)
    assert arrays is not None
    ids = split_by_share(len(arrays), experiment.data.arrays.validation).test
    return Stored(arrays, ids, shape)
