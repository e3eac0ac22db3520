"""Commands about training: train, resume, evaluate, predict."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import tyro
from rich.table import Table

from sfo import plugins
from sfo.commands.choosing import Chosen, choose
from sfo.commands.console import plain_console
from sfo.commands.data import Options, parse_options
from sfo.commands.help import argument_texts, option_help
from sfo.data.benchmarks import ScaleName
from sfo.data.pairs import Scheme, SplitName
from sfo.models.build import Preset
from sfo.training.config import Experiment, TrainConfig
from sfo.training.folder import new_folder

PICTURE_SAMPLES = 4
"""Samples in the picture of a prediction."""
RunPath = Annotated[Path, tyro.conf.Positional]


def _flags() -> type:
    """One optional flag for each field of `TrainConfig`; left out, the protocol decides."""
    texts = argument_texts(TrainConfig.__doc__)
    entries = []
    for name, field in TrainConfig.model_fields.items():
        usual = "none" if field.default is None else field.default
        hint = f"(default: {usual}, if the protocol has no other)"
        kind: Any = Optional[field.annotation]  # noqa: UP045
        optional: Any = Annotated[kind, option_help(texts.get(name, ""), hint, kind)]
        entries.append((name, optional, dataclasses.field(default=None)))
    return dataclasses.make_dataclass("TrainFlags", entries, frozen=True)


TrainFlags: Any = _flags()


def train(
    benchmark: str | None = None,
    model: str | None = None,
    preset: Preset | None = None,
    scale: ScaleName | None = None,
    seed: int | None = None,
    out: Path | None = None,
    memory: bool = False,
    config: Path | None = None,
    setting: Options = [],  # noqa: B006
    data: Path | None = None,
    periodic: bool = False,
    validation: float | None = None,
    samples: int | None = None,
    train_samples: int | None = None,
    data_seed: int | None = None,
    scheme: Scheme | None = None,
    stride: int | None = None,
    time_stride: int | None = None,
    file: str | None = None,
    option: Options = [],  # noqa: B006
    accelerator: str = "auto",
    devices: str = "1",
    num_nodes: int = 1,
    strategy: str = "auto",
    logger: list[str] = [],  # noqa: B006
    stream: bool | None = None,
    training: Annotated[TrainFlags, tyro.conf.OmitArgPrefixes] = TrainFlags(),  # noqa: B008
) -> None:
    """Train a model on a benchmark or on data of your own, evaluate it, and write a Record.

    For example:
    $ sfo train --benchmark allen_cahn --model sfo --model.n-modes 16 --scale desk --seed 0
    $ sfo train --data mine.npz --out runs/mine
    $ sfo train --benchmark shallow_water --model fno --epochs 50 --learning-rate 2e-3
    $ sfo train --config run.json --seed 1 --out runs/mine
    $ torchrun --nproc-per-node 2 -m sfo train --benchmark maxwell --devices 2

    Args:
        benchmark: The benchmark, allen_cahn if left out; `sfo list` names them.
        model: The model, sfo if left out; `sfo list` names them.
        preset: The paper's settings for its benchmarks, our recommended ones, or the model's
            defaults; if left out, the paper's where it has some, else the recommended ones.
        scale: Size of the data and length of the training, desk if left out.
        seed: Seed of the weights and the order of samples, 0 if left out.
        out: The run's folder; if left out, a new one in runs/.
        memory: Also measure the memory of a training step, in a process of its own.
        config: A JSON file with the whole experiment, which other options change.
        setting: A setting of the model as name=value; --model.NAME VALUE is the same.
        data: Data of your own: .npz or HDF5 with the arrays a and u (sample, channel, *grid),
            or an HDF5 file of trajectories in The Well's or the benchmarks' layout.
        periodic: Whether the arrays of --data are periodic. The recommended SFO gets coordinates
            all the same, because a forcing may be fixed in place; --model.coordinates false
            leaves them out.
        validation: Share of the samples of --data that select the best epoch, 0.1 if left out;
            as many others are the test samples.
        samples: Number of samples; as many as the scale says if left out.
        train_samples: Train on this many of the training samples, the first ones; all if left out.
        data_seed: Seed of the data, 0 if left out.
        scheme: How samples are divided, default if left out; with paper, 90 % train, and the
            same 10 % select the best epoch and give the reported error.
        stride: Take every stride-th stored point; the paper's stride if left out.
        time_stride: Take every time_stride-th frame, 1 if left out.
        file: A data file of the benchmark to use instead of a generated one.
        option: An option of the benchmark or a constant of its equation, as name=value.
        accelerator: Kind of device: auto, cpu, cuda or mps.
        devices: Number of processes on this machine, or the GPUs to use, such as 0,1,2,3.
        num_nodes: Number of machines.
        strategy: auto or ddp: every process holds the whole model; fsdp: a shard of each weight.
        logger: Where else the training curves are written: csv, wandb, mlflow or tensorboard.
        stream: Read samples from the file batch by batch; if left out, where the training samples
            take more than 512 MB.
        training: Settings of the training; what is not given is as in the protocol of the benchmark
            at this scale.
    """
    chosen = Chosen(
        benchmark=benchmark,
        scale=scale,
        model=model,
        preset=preset,
        settings=parse_options(setting),
        seed=seed,
        data=dict(
            samples=samples,
            train_samples=train_samples,
            seed=data_seed,
            scheme=scheme,
            stride=stride,
            time_stride=time_stride,
            file=file,
            options=parse_options(option) or None,
        ),
        train={k: v for k, v in dataclasses.asdict(training).items() if v is not None},
        periodic=periodic,
        validation=validation,
    )
    experiment, arrays = choose(chosen, config, data)
    folder = out or new_folder(experiment)
    fabric: dict[str, Any] = dict(
        accelerator=accelerator, devices=devices, num_nodes=num_nodes, strategy=strategy
    )
    how = dict(loggers=logger, stream=stream)
    _run(experiment, folder, arrays=arrays, resume=False, memory=memory, **how, **fabric)


def resume(
    run: RunPath,
    data: Path | None = None,
    accelerator: str = "auto",
    devices: str = "1",
    num_nodes: int = 1,
    strategy: str = "auto",
    logger: list[str] = [],  # noqa: B006
    stream: bool | None = None,
) -> None:
    """Continue a run that was stopped or killed, bit for bit as if it had not been.

    Example: sfo resume runs/allen_cahn-sfo-0

    Args:
        run: The run's folder.
        data: File of your own data that the run was started with, if it has moved.
        accelerator: Kind of device: auto, cpu, cuda or mps.
        devices: Number of processes on this machine, or the GPUs to use, such as 0,1,2,3.
        num_nodes: Number of machines.
        strategy: auto, ddp or fsdp; it may differ from the one that the run was started with.
        logger: Where else the training curves are written: csv, wandb, mlflow or tensorboard.
        stream: Read samples from the file batch by batch; see `sfo train`.
    """
    from sfo.experiments.run import run_arrays
    from sfo.training.folder import RunFolder

    experiment = RunFolder(run).experiment()
    if (run / "record.json").exists():
        print(f"{run} is finished; see `sfo show {run}`.")
        return
    fabric: dict[str, Any] = dict(
        accelerator=accelerator, devices=devices, num_nodes=num_nodes, strategy=strategy
    )
    arrays = run_arrays(RunFolder(run), experiment, data)
    how = dict(loggers=logger, stream=stream)
    _run(experiment, run, arrays=arrays, resume=True, **how, **fabric)


def evaluate(
    run: RunPath,
    grid: int | None = None,
    file: Path | None = None,
    data: Path | None = None,
    split: SplitName = "test",
    json_out: Path | None = None,
    accelerator: str = "auto",
    devices: str | None = None,
) -> None:
    """Print the errors of a run's best model, by every definition in use.

    For example:
    $ sfo evaluate runs/ac
    $ sfo evaluate runs/ac --grid 128
    $ sfo evaluate runs/ac --file 1D_Allen-Cahn_0.0001_5.hdf5
    $ sfo evaluate runs/mine --data other.npz

    Args:
        run: The run's folder.
        grid: Evaluate on another number of points along each axis, without training.
        file: Evaluate on the samples of a data file of the run's benchmark.
        data: Evaluate on all samples of other data of your own, with the run's channels.
        split: Which samples of the run's data.
        json_out: Also write all numbers to this file.
        accelerator: Kind of device: auto, cpu, cuda or mps.
        devices: The GPU to take, by its number and a comma, such as 1,.
    """
    from sfo.experiments.run import evaluate_run
    from sfo.files import replacing
    from sfo.training.devices import Devices

    device = Devices.of(accelerator, devices).one()
    errors, pairs = evaluate_run(run, points=grid, file=file, data=data, split=split, device=device)
    shape = " × ".join(map(str, pairs.grid.shape))
    which = "" if data is not None else f"{split} "
    print_errors(errors, f"{run}: {len(pairs)} {which}samples of {pairs.benchmark}, {shape} points")
    if json_out is not None:
        with replacing(json_out) as path:
            path.write_text(json.dumps(dict(errors), indent=1) + "\n")


def predict(
    run: RunPath,
    inputs: RunPath,
    out: Path = Path("prediction.npy"),
    picture: Path | None = None,
    accelerator: str = "auto",
    devices: str | None = None,
) -> None:
    """Apply a run's best model to inputs of your own.

    Example: sfo predict runs/ac input.npy --out prediction.npy --picture prediction.png

    Args:
        run: The run's folder.
        inputs: A .npy file (sample, channel, *grid), or one sample without the first axis; or a
            .npz or HDF5 file with such an array `a`.
        out: Where the predictions go, as .npy.
        picture: Also draw inputs and predictions of the first samples.
        accelerator: Kind of device: auto, cpu, cuda or mps.
        devices: The GPU to take, by its number and a comma, such as 1,.
    """
    from sfo.data.sources import load_inputs
    from sfo.experiments.run import predict_run
    from sfo.files import replacing, resolved, save_figure
    from sfo.plot.answers import answer_figure
    from sfo.training.devices import Devices
    from sfo.training.folder import RunFolder

    for written in (out, picture):
        if written is not None and resolved(written) == resolved(inputs):
            raise ValueError(f"{inputs} is the input; choose another file for what is written.")
    a = load_inputs(inputs)
    u = predict_run(run, a, Devices.of(accelerator, devices).one())
    with replacing(out) as path, path.open("wb") as file:
        np.save(file, u)
    print(f"{tuple(a.shape)} → {tuple(u.shape)}: {out}")
    if picture is not None:
        shape = RunFolder(run).data_shape()
        if a.ndim == shape.grid.n_dim + 2:
            a, u = a[:PICTURE_SAMPLES], u[:PICTURE_SAMPLES]
        figure = answer_figure(a, u, shape.grid, shape.times, shape.names, shape.inputs)
        save_figure(figure, picture)
        print(f"Picture: {picture}")


def print_errors(errors: Any, title: str) -> None:
    """A table of all metrics."""
    from sfo.evaluation.metric import printed_metrics

    table = Table(show_header=False)
    for row in printed_metrics(errors):
        table.add_row(*row)
    console = plain_console()
    console.print(title, soft_wrap=True)
    console.print(table)


def _run(experiment: Experiment, folder: Path, **how: Any) -> None:
    from lightning_fabric.utilities.rank_zero import rank_zero_only

    from sfo.experiments.progress import generating_lines, training_bar
    from sfo.experiments.run import run
    from sfo.machine import keep_freed_blocks
    from sfo.training.advice import memory_advice
    from sfo.training.signals import Stopped

    keep_freed_blocks()
    # Of several processes, the first speaks.
    is_first = rank_zero_only.rank == 0  # type: ignore[attr-defined]
    console = plain_console(stderr=True, quiet=not is_first)
    title = f"{experiment.model.name} on {experiment.data.benchmark} → {folder}"
    console.print(title, soft_wrap=True)
    if advice := memory_advice(experiment, how["stream"]):
        console.print(advice, soft_wrap=True)
    try:
        with training_bar(console) as show:
            record = run(
                experiment,
                folder,
                progress=show,
                generating=generating_lines(console),
                plugins=plugins.loaded(),
                **how,
            )
    except Stopped as stop:
        saved = f"Stopped by {stop.signal.name} and saved. Go on: sfo resume {folder}"
        console.print(saved, soft_wrap=True)
        raise
    if not is_first:
        return
    print_errors(record.errors, f"{folder}: test errors, best epoch {record.best_epoch + 1}")
    print(f"Record, metrics, checkpoints, predictions.png, model: {folder}")
