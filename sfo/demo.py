"""What `make demo` runs: from the equation to a report, in a few minutes on two cores.

Allen–Cahn data are generated, SFO and FNO are trained on them with the same protocol, both are
evaluated on samples that neither has seen, and a page with table, curves and pictures is written.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sfo.data.load import load_benchmark
from sfo.experiments.record import Record
from sfo.experiments.run import run as run_experiment
from sfo.machine import keep_freed_blocks
from sfo.plot.curves import training_curves
from sfo.report import page as html
from sfo.training.config import Experiment, TrainConfig
from sfo.training.fit import Status
from sfo.training.folder import RunFolder

RUNS = {
    "SFO, recommended": dict(model="sfo", preset="recommended"),
    "SFO, as in the paper": dict(model="sfo", preset="paper"),
    "FNO, as in the paper": dict(model="fno", preset="paper"),
}
TITLE = "SFO demo: the Allen–Cahn equation"
PROTOCOL: dict[str, Any] = dict(
    optimizer="muon", schedule="one_cycle", learning_rate=1e-2, clip=1.0, batch_size=8
)


def run(out: Path, epochs: int = 20, samples: int = 300, seed: int = 0) -> dict[str, Record]:
    """Generate, train, evaluate and report into `out`; returns the Records.

    Args:
        out: Folder for runs and report; an earlier demo there is replaced.
        epochs: Passes over the training data of each model.
        samples: Samples in all, four fifths of which train.
        seed: Seed of the data, the weights and the order of samples.
    """
    console = Console()
    keep_freed_blocks()
    _clear(out)
    out.mkdir(parents=True, exist_ok=True)
    # At once, so that a demo that was stopped can be begun again in the same folder.
    waiting = html.page(TITLE, [html.paragraph("The models are being trained; look again soon.")])
    (out / "demo.html").write_text(waiting, encoding="utf-8")
    console.print("[bold]Allen–Cahn[/]: u(x, 0) → u(x, t) at 101 times, 256 points")
    with _bar(console) as bar:
        task = bar.add_task(f"generate {samples} samples")
        update = _follow(bar, task)
        load_benchmark("allen_cahn", "desk", samples=samples, seed=seed, progress=update)
    records = {}
    for label, choice in RUNS.items():
        experiment = Experiment.of(
            "allen_cahn",
            choice["model"],
            preset=choice["preset"],  # type: ignore[arg-type]
            seed=seed,
            data=dict(samples=samples, seed=seed),
            train=dict(epochs=epochs, **PROTOCOL),
        )
        with _bar(console) as bar:
            task = bar.add_task(f"train {label}")
            follow = _follow(bar, task)

            def show(status: Status, follow: Callable[[int, int], None] = follow) -> None:
                follow(status.step, status.steps)

            records[label] = run_experiment(experiment, out / _slug(label), progress=show)
        error = records[label].errors.percent
        console.print(f"{label}: {records[label].parameters:,} parameters, [bold]{error:.2f} %[/]")
    (out / "demo.html").write_text(report(out, records), encoding="utf-8")
    console.print(f"Report: {out / 'demo.html'}", markup=False, highlight=False, soft_wrap=True)
    return records


def report(out: Path, records: dict[str, Record]) -> str:
    """The page: table, curves, and each model's best, median and worst prediction."""
    rows, histories, pictures = [], {}, []
    for label, record in records.items():
        folder = RunFolder(out / _slug(label))
        cost = folder.read("cost.json")
        errors = record.errors
        rows.append(
            [
                label,
                f"{errors.percent:.3f}",
                f"{100 * errors.per_time[-1]:.3f}",
                f"{errors.max_error:.3f}",
                f"{record.parameters:,}",
                f"{cost['seconds_per_epoch']:.2f}",
            ]
        )
        histories[label] = folder.history()
        caption = f"{label}: truth, prediction and error of the best, median and worst test sample"
        pictures.append(html.picture(folder.path / "predictions.png", caption))
    best = min(range(len(rows)), key=lambda i: float(rows[i][1]))
    experiment = next(iter(records.values())).experiment
    columns = [
        "model",
        "test error, %",
        "last frame, %",
        "largest error",
        "parameters",
        "s per epoch",
    ]
    return html.page(
        TITLE,
        [
            html.paragraph(
                "∂u/∂t = 1e-4 ∂²u/∂x² + 5 (u − u³) on (−1, 1), periodic. From the initial state to "
                "all 101 frames at once. The error is the mean relative L2 over the test samples."
            ),
            html.paragraph(
                f"{experiment.data.samples} samples (80 % train, 10 % select the epoch, 10 % are "
                f"reported), {experiment.train.epochs} epochs. {protocol_words()} A demo, not a "
                "benchmark: small data, one seed.",
                "note",
            ),
            html.table(columns, rows, {(best, 1): "best"}),
            html.command(f"sfo demo --epochs {experiment.train.epochs} --seed {experiment.seed}"),
            html.picture(training_curves(histories), "Error by epoch"),
            *pictures,
        ],
    )


def protocol_words() -> str:
    """How all models are trained.

    Example:
        >>> protocol_words()[:63]
        'All are trained alike: by Muon in batches of 8 samples, with a '
    """
    config = TrainConfig(**PROTOCOL)
    optimizers = {"muon": "Muon", "adam": "Adam", "adamw": "AdamW"}
    schedules = {
        "one_cycle": f"that rises to {config.learning_rate:g} and falls again in one cycle",
        "step": f"of {config.learning_rate:g} that falls in steps",
        "constant": f"of {config.learning_rate:g}",
    }
    schedule = schedules.get(
        config.schedule,
        f"of {config.learning_rate:g}, schedule {config.schedule}",
    )
    clipped = "" if config.clip is None else f"; gradients are clipped at {config.clip:g}"
    return (
        f"All are trained alike: by {optimizers.get(config.optimizer, config.optimizer)} in "
        f"batches of {config.batch_size} samples, with a learning rate {schedule}{clipped}."
    )


OWN_FILES = (
    "*.json",
    "*.jsonl",
    ".lock",
    ".*.????????",
    "predictions.png",
    "checkpoints/*",
    "tensorboard/events.*",
    "model/config.json",
    "model/weights-*.safetensors",
)
"""What a demo's run leaves in its folder."""


def _clear(out: Path) -> None:
    """Remove an earlier demo, and nothing but what a demo writes; refuse any other folder."""
    if not out.exists():
        return
    if not out.is_dir() or (any(out.iterdir()) and not (out / "demo.html").exists()):
        raise ValueError(f"{out} is not empty and holds no demo; choose another folder.")
    runs = [out / _slug(label) for label in RUNS]
    own = {out / "demo.html"}.union(*(run.glob(pattern) for run in runs for pattern in OWN_FILES))
    found = sorted(path for path in out.rglob("*") if path.is_symlink() or not path.is_dir())
    others = [path for path in found if path not in own or path.is_symlink()]
    if others:
        raise ValueError(
            f"{out} holds files that are not the demo's, such as {others[0].relative_to(out)}; "
            "move them, or choose another folder."
        )
    for run in runs:
        if run.exists():
            shutil.rmtree(run)


def _slug(label: str) -> str:
    return label.lower().replace(",", "").replace(" ", "-")


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


def _follow(bar: Progress, task: object) -> Callable[[int, int], None]:
    return lambda done, total: bar.update(task, completed=done, total=total)  # type: ignore[arg-type]
