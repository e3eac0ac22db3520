"""Commands about training: train, resume, evaluate, predict."""

import dataclasses
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import numpy as np
import tyro
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from sfo.commands.console import plain_console
from sfo.commands.data import Options, parse_options
from sfo.data.pairs import Part, Scheme
from sfo.training.config import Experiment, TrainConfig

RunPath = Annotated[Path, tyro.conf.Positional]


def _flags() -> type:
    """One optional flag for each field of `TrainConfig`; left out, the protocol decides."""
    help_texts = dict(
        re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", TrainConfig.__doc__ or "", re.M)
    )
    entries = []
    for name, field in TrainConfig.model_fields.items():
        text = re.sub(r"\s+", " ", help_texts.get(name, ""))
        optional: Any = Annotated[Optional[field.annotation], tyro.conf.arg(help=text)]  # noqa: UP045
        entries.append((name, optional, dataclasses.field(default=None)))
    return dataclasses.make_dataclass("TrainFlags", entries, frozen=True)


TrainFlags: Any = _flags()


def train(
    benchmark: str = "allen_cahn",
    model: str = "sfo",
    preset: Literal["paper", "recommended", "default"] = "paper",
    scale: Literal["smoke", "desk", "paper"] = "desk",
    seed: int = 0,
    out: Path | None = None,
    config: Path | None = None,
    setting: Options = [],  # noqa: B006
    samples: int | None = None,
    data_seed: int = 0,
    scheme: Scheme = "default",
    stride: int | None = None,
    time_stride: int = 1,
    file: str | None = None,
    option: Options = [],  # noqa: B006
    accelerator: str = "auto",
    devices: int = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
    training: Annotated[TrainFlags, tyro.conf.OmitArgPrefixes] = TrainFlags(),  # noqa: B008
) -> None:
    """Train a model on a benchmark, evaluate it, and write a Record.

    Examples:
    sfo train --benchmark allen_cahn --model sfo --model.n-modes 16 --scale desk --seed 0
    sfo train --benchmark shallow_water --model fno --epochs 50 --learning-rate 2e-3
    sfo train --config run.json --out runs/mine
    torchrun --nproc-per-node 2 -m sfo train --benchmark maxwell --devices 2

    Args:
        benchmark: The data; `sfo list` names the benchmarks.
        model: The model; `sfo list` names the models.
        preset: The paper's settings for the benchmark, our recommended ones, or the defaults.
        scale: Size of the data and length of the training.
        seed: Of the weights and the order of samples.
        out: The run's folder; if left out, a new one in runs/.
        config: A JSON file with the whole experiment; all other choices are then left out.
        setting: A setting of the model as name=value; --model.NAME VALUE is the same.
        samples: Samples in all; as many as the scale says if left out.
        data_seed: Of the data.
        scheme: How samples are divided; paper is 90/10 %, selected and reported on the same.
        stride: Take every stride-th stored point.
        time_stride: Take every time_stride-th frame.
        file: A data file to use instead of a generated one.
        option: An option of the benchmark or a constant of its equation, as name=value.
        accelerator: As Lightning Fabric has it: auto, cpu, cuda, mps.
        devices: Processes on this machine.
        num_nodes: Machines.
        strategy: auto or ddp: the whole model in every process; fsdp: a part of each weight.
        training: How to train; left out, as the benchmark's protocol at this scale has it.
    """
    chosen = {k: v for k, v in dataclasses.asdict(training).items() if v is not None}
    if config is not None:
        if chosen or setting or option:
            raise ValueError("`--config` holds the whole experiment; leave out other choices.")
        experiment = Experiment.load(config)
    else:
        experiment = Experiment.of(
            benchmark,
            model,
            scale=scale,
            seed=seed,
            preset=preset,
            settings=parse_options(setting),
            data=dict(
                samples=samples,
                seed=data_seed,
                scheme=scheme,
                stride=stride,
                time_stride=time_stride,
                file=file,
                options=parse_options(option),
            ),
            train=chosen,
        )
    folder = out or _new_folder(experiment)
    fabric = dict(accelerator=accelerator, devices=devices, num_nodes=num_nodes, strategy=strategy)
    _run(experiment, folder, resume=False, **fabric)


def resume(
    run: RunPath,
    accelerator: str = "auto",
    devices: int = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
) -> None:
    """Go on with a run that was stopped or killed, bit for bit as if it had not been.

    Example: sfo resume runs/allen_cahn-sfo-0

    Args:
        run: The run's folder.
        accelerator: As Lightning Fabric has it.
        devices: Processes on this machine.
        num_nodes: Machines.
        strategy: auto, ddp or fsdp; it need not be the one that the run was begun with.
    """
    from sfo.training.folder import RunFolder

    experiment = RunFolder(run).experiment()
    if (run / "record.json").exists():
        print(f"{run} is finished; see `sfo show {run}`.")
        return
    fabric = dict(accelerator=accelerator, devices=devices, num_nodes=num_nodes, strategy=strategy)
    _run(experiment, run, resume=True, **fabric)


def evaluate(
    run: RunPath,
    grid: int | None = None,
    file: Path | None = None,
    split: Part = "test",
    json_out: Path | None = None,
) -> None:
    """Print the errors of a run's best model, by every definition in use.

    Examples:
    sfo evaluate runs/ac
    sfo evaluate runs/ac --grid 128
    sfo evaluate runs/ac --file 1D_Allen-Cahn_0.0001_5.hdf5

    Args:
        run: The run's folder.
        grid: Evaluate on another number of points along each axis, without training.
        file: Evaluate on the samples of a data file.
        split: Which samples.
        json_out: Also write all numbers to this file.
    """
    from sfo.experiments.run import evaluate_run

    errors, pairs = evaluate_run(run, points=grid, file=file, part=split)
    shape = " × ".join(map(str, pairs.grid.shape))
    print_errors(
        errors, f"{run}: {len(pairs)} {split} samples of {pairs.benchmark}, {shape} points"
    )
    if json_out is not None:
        json_out.parent.mkdir(parents=True, exist_ok=True)
        json_out.write_text(json.dumps(dict(errors), indent=1) + "\n")


def predict(run: RunPath, inputs: RunPath, out: Path = Path("prediction.npy")) -> None:
    """Apply a run's best model to inputs of your own.

    Example: sfo predict runs/ac input.npy --out prediction.npy

    Args:
        run: The run's folder.
        inputs: A .npy file (sample, channel, *grid), or one sample without the first axis.
        out: Where the predictions go, as .npy.
    """
    from sfo.experiments.run import predict_run

    try:
        a = np.load(inputs, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{inputs} is not a .npy file of numbers: {error}") from error
    u = predict_run(run, a)
    out.parent.mkdir(parents=True, exist_ok=True)
    np.save(out, u)
    print(f"{tuple(a.shape)} → {tuple(u.shape)}: {out}")


def print_errors(errors: Any, title: str) -> None:
    """A table of all metrics."""
    from sfo.evaluation.metric import printed_metrics

    table = Table(show_header=False)
    for row in printed_metrics(errors):
        table.add_row(*row)
    console = plain_console()
    console.print(title, soft_wrap=True)
    console.print(table)


def _new_folder(experiment: Experiment) -> Path:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{experiment.data.benchmark}-{experiment.model.name}-{experiment.seed}-{stamp}"
    return Path("runs") / name


def _run(experiment: Experiment, folder: Path, **how: Any) -> None:
    from lightning_fabric.utilities.rank_zero import rank_zero_only

    from sfo.allocator import keep_freed_blocks
    from sfo.experiments.run import run
    from sfo.training.fit import Status
    from sfo.training.signals import Stopped

    keep_freed_blocks()
    # Of several processes, the first speaks.
    is_first = rank_zero_only.rank == 0  # type: ignore[attr-defined]
    columns = (
        TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]}  validation {task.fields[validation]}"),
        TextColumn("{task.fields[pace]}  {task.fields[left]} left"),
    )
    console = plain_console(stderr=True, quiet=not is_first)
    title = f"{experiment.model.name} on {experiment.data.benchmark} → {folder}"
    console.print(title, soft_wrap=True)
    with Progress(*columns, console=console, transient=True) as bar:
        unknown: dict[str, Any] = dict(
            epoch=0, epochs="?", loss="–", validation="–", pace="", left="?"
        )
        task = bar.add_task("train", total=None, **unknown)

        def show(status: Status) -> None:
            bar.update(
                task,
                completed=status.step,
                total=status.steps,
                epoch=status.epoch + 1,
                epochs=status.epochs,
                loss=f"{100 * status.loss:.3g} %",
                validation="–" if status.validation is None else f"{100 * status.validation:.3g} %",
                pace=f"{status.samples_per_second:.0f} samples/s",
                left=_duration(status.seconds_left),
            )

        try:
            record = run(experiment, folder, progress=show, **how)
        except Stopped as stop:
            bar.stop()
            saved = f"Stopped by {stop.signal.name} and saved. Go on: sfo resume {folder}"
            console.print(saved, soft_wrap=True)
            raise
    if not is_first:
        return
    print_errors(record.errors, f"{folder}: test errors, best epoch {record.best_epoch + 1}")
    print(f"Record, metrics, checkpoints, predictions.png: {folder}")


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
