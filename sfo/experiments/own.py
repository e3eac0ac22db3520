"""Arrays in, a run out; and a run from its folder."""

import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import Tensor, nn

from sfo import plugins
from sfo.data.arrays import Arrays, check_kind
from sfo.data.pairs import Pairs
from sfo.data.sources import open_data, own_name
from sfo.evaluation.errors import Errors
from sfo.experiments.progress import training_bar
from sfo.experiments.record import Record, run_record
from sfo.experiments.run import draw, exported, predict_inputs, run, run_arrays
from sfo.grid import Grid
from sfo.models.build import Preset
from sfo.training.config import Experiment
from sfo.training.fit import load_best
from sfo.training.folder import RunFolder, new_folder
from sfo.training.own_data import own_experiment
from sfo.training.prepare import DataShape, described, load_pairs


@dataclass(frozen=True)
class FinishedRun:
    """A trained model, what it was trained on and how well it does.

    Args:
        experiment: What was done.
        model: The model with the lowest validation error, on the CPU.
        record: What was measured.
        folder: The run's folder.
        shape: Channels, grid and times of the data.
        arrays: Data of the user's own, where they are available.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> a = np.random.default_rng(0).normal(size=(20, 1, 16)).astype("float32")
        >>> with TemporaryDirectory() as folder:
        ...     done = fit(a, 2 * a, epochs=1, settings=dict(hidden_channels=8), out=folder)
        ...     isinstance(done, FinishedRun), len(done.history), done.predict(a[0]).shape
        (True, 1, (1, 16))
    """

    experiment: Experiment
    model: nn.Module
    record: Record
    folder: Path
    shape: DataShape
    arrays: Arrays | None = field(default=None, repr=False)

    @property
    def errors(self) -> Errors:
        """All errors on samples that the training did not see; fractions, not percent."""
        return self.record.errors

    @property
    def history(self) -> list[dict[str, Any]]:
        """Loss and validation error of every epoch."""
        return RunFolder(self.folder).history()

    def predict(self, a: Any) -> Any:
        """u for inputs `(sample, channel, *grid)`, or one input without the first axis.

        A torch tensor is answered with a tensor, any other array with a NumPy array.
        """
        u = predict_inputs(self.model, self.shape, a)
        return u if isinstance(a, Tensor) else u.numpy()

    def plot(self, path: str | os.PathLike[str], a: Any = None, u: Any = None) -> Path:
        """Draw truth, prediction and error of the best, the median and the worst sample.

        Args:
            path: The picture to write, such as picture.png.
            a, u: Arrays to draw; None: the samples that `errors` are about.
        """
        pairs = self._test() if a is None else self._given(a, u)
        return draw(self.model, pairs, path)

    def _test(self) -> Pairs:
        arrays = self.arrays
        if arrays is None and self.experiment.data.arrays is not None:
            arrays = run_arrays(RunFolder(self.folder), self.experiment)
        return load_pairs(self.experiment, "test", arrays=arrays)

    def _given(self, a: Any, u: Any) -> Pairs:
        given = described(Arrays.of(a, u, name=self.experiment.data.benchmark), self.shape)
        given.check()
        return Pairs(
            given.a[:],
            given.u[:],
            given.grid,
            tuple(range(len(given))),
            given.times,
            given.names,
            given.inputs,
            given.name,
        )


def fit(
    a: Any,
    u: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    model: str = "sfo",
    preset: Preset = "recommended",
    settings: dict[str, Any] | None = None,
    names: Sequence[str] | None = None,
    grid: Grid | None = None,
    times: Sequence[float] | None = None,
    validation: float = 0.1,
    seed: int = 0,
    **training: Any,
) -> FinishedRun:
    """Train a model on your own arrays: a → u.

    What is not given is chosen by the data, see `sfo.training.own_data.own_protocol`. A tenth of
    the samples select the best epoch, and another tenth, which the training never sees, gives
    `errors`. Called again with the same arrays and folder, a run that was stopped continues, bit
    for bit as if it had not been; one that is finished is loaded.

    Args:
        a: Inputs `(sample, channel, *grid)`: a NumPy array, memory map, torch tensor or HDF5
            dataset, which is read batch by batch; or a path to a file, see `sfo.open_data`; or
            `sfo.Arrays`.
        u: Solutions on the same grid; None if `a` is a path or `Arrays`.
        out: The run's folder; None: a new one in runs/.
        model: A registered model.
        preset: "recommended" or "default" settings of the model.
        settings: Arguments of the model's constructor that override the preset.
        names: Names of u's fields; None: one for all frames if there are `times`, else every
            channel is a field.
        grid: The points; None: those of the unit box, not periodic.
        times: Times of u's frames, which lie side by side in the channels of each field; None:
            a steady problem, or 0, 1, … if there are fewer `names` than channels.
        validation: Share of the samples that select the best epoch; as many are held out.
        seed: Seed of the weights and the order of samples.
        training: Fields of `TrainConfig`, such as epochs, batch_size and learning_rate, and
            `accelerator`, `devices`, `num_nodes` and `strategy` as Lightning Fabric has them.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> a = np.random.default_rng(0).normal(size=(20, 1, 16)).astype("float32")
        >>> with TemporaryDirectory() as folder:
        ...     done = fit(a, 2 * a, epochs=2, settings=dict(hidden_channels=8), out=folder)
        ...     done.predict(a[:3]).shape, len(done.errors.per_sample)
        ((3, 1, 16), 2)
    """
    for key, here in OTHERWISE_CALLED.items():
        if key in training:
            raise ValueError(f"`{key}` is called `{here}` here, got {key}={training[key]!r}.")
    fabric = {k: training.pop(k) for k in FABRIC if k in training}
    arrays = as_arrays(a, u, names=names, grid=grid, times=times)
    experiment = own_experiment(
        arrays,
        model,
        preset=preset,
        settings=settings,
        seed=seed,
        validation=validation,
        train=training,
    )
    folder = Path(out) if out is not None else new_folder(experiment)
    console = Console(stderr=True, markup=False, highlight=False)
    with training_bar(console) if sys.stderr.isatty() else nullcontext() as progress:
        record = run(
            experiment,
            folder,
            resume="auto",
            arrays=arrays,
            plugins=plugins.loaded(),
            cost=False,
            progress=progress,
            **fabric,
        )
    shape = RunFolder(folder).data_shape()
    return FinishedRun(experiment, exported(load_best(folder)), record, folder, shape, arrays)


FABRIC = ("accelerator", "devices", "num_nodes", "strategy")
OTHERWISE_CALLED = {
    "lr": "learning_rate",
    "batch": "batch_size",
    "n_epochs": "epochs",
    "num_epochs": "epochs",
    "device": "accelerator",
}
"""Names that other packages have for options of `fit`."""


def load_run(folder: str | os.PathLike[str]) -> FinishedRun:
    """A finished run from its folder, which may have been copied from elsewhere.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> import numpy as np
        >>> a = np.random.default_rng(0).normal(size=(20, 1, 16)).astype("float32")
        >>> with TemporaryDirectory() as folder:
        ...     done = fit(a, 2 * a, epochs=1, settings=dict(hidden_channels=8), out=folder)
        ...     load_run(folder).errors.percent == done.errors.percent
        True
    """
    where = RunFolder(folder)
    experiment = where.experiment()
    if not (where.path / "record.json").exists():
        raise ValueError(f"{folder} is not finished; continue it with `sfo resume {folder}`.")
    record = run_record(where)
    model = exported(load_best(where))
    return FinishedRun(experiment, model, record, where.path, where.data_shape())


def as_arrays(a: Any, u: Any = None, **meaning: Any) -> Arrays:
    """Arrays, a path to some, or `Arrays`, with the meaning of their channels if it is given."""
    if isinstance(a, Arrays):
        if u is not None or any(value is not None for value in meaning.values()):
            raise ValueError(
                "`a` is `Arrays`, which hold u, names, grid and times; leave those out."
            )
        return a
    if isinstance(a, (str, os.PathLike)):
        if u is not None:
            raise ValueError(f"`u` must be left out with a file that holds both, got {a}.")
        return open_data(a, **meaning)
    check_kind("a", a)
    if u is None:
        raise ValueError("`u` is missing: pass the solutions, as many as there are inputs.")
    return Arrays.of(a, u, name=own_name(None, None), **meaning)
