"""Train a model on a benchmark: one function, exact on resume, in one process or many."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from lightning_fabric import Fabric
from torch import nn
from torch.optim.swa_utils import AveragedModel

from sfo.data.generate import SampleProgress
from sfo.data.pairs import Pairs
from sfo.memory import check_training_fits
from sfo.training import checkpoint
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder
from sfo.training.loggers import check_loggers
from sfo.training.loop import Diverged, Loop, Status
from sfo.training.optimizers import check_strategy
from sfo.training.origin import check_origin
from sfo.training.prepare import DataShape, build, load_splits
from sfo.training.processes import on_rank_zero, restarts, start
from sfo.training.signals import Stopped, StopRequest

__all__ = ["Diverged", "Run", "Status", "Stopped", "fit", "load_best"]


@dataclass(frozen=True)
class Run:
    """A finished run: the model with the best validation error, and the course of it all.

    `fabric` holds the processes that have trained it, each of which has a `Run` of its own. `test`
    are the samples to report on, if they were loaded along with the others.
    """

    experiment: Experiment
    model: nn.Module
    history: list[dict[str, Any]]
    folder: Path
    fabric: Fabric = field(repr=False, compare=False)
    test: Pairs | None = field(default=None, repr=False, compare=False)


def fit(
    experiment: Experiment,
    out: str | Path,
    *,
    resume: bool | Literal["auto"] = False,
    train: Pairs | None = None,
    validation: Pairs | None = None,
    sources: dict[str, Any] | None = None,
    progress: Callable[[Status], None] | None = None,
    generating: SampleProgress | None = None,
    stream: bool | None = None,
    loggers: Sequence[str] = (),
    accelerator: str = "auto",
    devices: int | str = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
) -> Run:
    """Train, and keep in the folder `out` all that is needed to continue or to look back.

    A run with the same experiment on the same machine gives the same bits, however often it
    was killed and resumed. SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 end it after the step, saved, with
    the exit code 128 + the signal's number. If a file cannot be written, it ends with an error
    that says so; the checkpoints that were saved are whole, and resuming completes the run to the
    same bits.

    Args:
        experiment: What to do.
        out: The run's folder, which all processes must be able to read.
        resume: Go on from the newest whole checkpoint in `out`; "auto": if a run is there.
            Processes that torchrun has restarted resume in any case.
        train, validation: Pairs, if they are available; None: loaded as the experiment says.
        sources: Where data of the user's own and plugins are, kept in the folder.
        progress: Called after every step.
        generating: Called with the samples done and in all while data are generated.
        stream: Read samples from the data file batch by batch; None: where the training samples
            take more than 512 MB.
        loggers: Loggers besides TensorBoard: csv, wandb or mlflow.
        accelerator, devices, num_nodes: As Lightning Fabric has them; under torchrun, the
            processes are those it has started.
        strategy: "ddp" or "auto": the whole model in every process; "fsdp": a part of each
            weight, its gradient and the optimizer's means in each. The checkpoints are the same,
            so that a run may continue with another strategy or another number of processes.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> e = Experiment.of("allen_cahn", scale="smoke", settings=dict(hidden_channels=8))
        >>> with TemporaryDirectory() as folder:
        ...     train, validation, _ = load_splits(e, folder=f"{folder}/data", workers=1)
        ...     run = fit(e, f"{folder}/run", train=train, validation=validation)
        >>> [sorted(row) for row in run.history][0]
        ['epoch', 'learning_rate', 'loss', 'step', 'validation']
    """
    check_strategy(experiment.train, strategy)
    check_loggers(loggers)
    fabric = start(
        experiment.train.precision,
        accelerator=accelerator,
        devices=devices,
        num_nodes=num_nodes,
        strategy=strategy,
    )
    folder, test = RunFolder(out), None
    if restarts() and not resume:
        resume = "auto"
    with ExitStack() as stack:
        is_resuming = on_rank_zero(
            fabric, lambda: stack.enter_context(folder.opened(experiment, resume, sources))
        )
        # One process makes the data, the others find them.
        with fabric.rank_zero_first():
            if train is None or validation is None:
                loaded = load_splits(experiment, stream=stream, progress=generating)
                train = loaded[0] if train is None else train
                validation = loaded[1] if validation is None else validation
                test = loaded[2]
        on_rank_zero(fabric, lambda: folder.describe_data(train, validation, begun=is_resuming))
        # The caller's random numbers are left alone.
        gpus = [fabric.device] if fabric.device.type == "cuda" else []
        stack.enter_context(torch.random.fork_rng(gpus))
        # torch warns of changing the output of a sharded model in place, which no loss does.
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view", UserWarning)
        stop = stack.enter_context(StopRequest())
        model = build(experiment, DataShape.of(train), train)
        if fabric.device.type == "cpu" and strategy != "fsdp":
            check_training_fits(model)
        loop = Loop(fabric, experiment, folder, model, train, validation, stop, progress, loggers)
        if is_resuming:
            loop.restore()
        loop.run()
    return Run(experiment, load_best(folder), loop.history, folder.path, fabric, test)


def load_best(run: RunFolder | str | Path) -> nn.Module:
    """The model of a run with the weights of its best epoch, on the CPU, in their precision."""
    folder = run if isinstance(run, RunFolder) else RunFolder(run)
    state = checkpoint.load_best(folder.checkpoints)
    if state is None:
        raise ValueError(f"{folder} has no checkpoint of a validated epoch yet; see `sfo resume`.")
    experiment = folder.experiment()
    check_origin(state, experiment, folder.path)
    model = build(experiment, folder.data_shape())
    average = None if state["ema"] is None else AveragedModel(model)
    try:
        # Assigned, not copied: a run in float64 has its weights in float64.
        if average is None:
            model.load_state_dict(state["model"], assign=True)
        else:
            average.load_state_dict(state["ema"], assign=True)
            model = average.module
    except RuntimeError as error:
        first = " ".join(line.strip() for line in str(error).splitlines()[:2])
        raise ValueError(
            f"The weights in {folder.checkpoints} are not of the model in experiment.json: "
            f"{first:.200} Put back the file that belongs here."
        ) from None
    return model.eval()
