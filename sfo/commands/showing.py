"""`sfo show`: pictures of data, and how a run went."""

from pathlib import Path
from typing import Any

from sfo.checks import check_at_least
from sfo.registry import BENCHMARKS


def show(
    target: str,
    *,
    scale: str,
    samples: int,
    seed: int,
    out: Path | None,
    options: dict[str, Any],
) -> None:
    """Find out what `target` is, and show it."""
    path = Path(target)
    if (path / "experiment.json").exists():
        show_run(path)
        return
    if target in BENCHMARKS:
        from sfo.plot.fields import show_benchmark

        picture = out or Path("runs") / f"{target}.png"
        show_benchmark(target, scale=scale, samples=samples, seed=seed, out=picture, **options)
    elif path.is_file():
        picture = out or Path("runs") / f"{path.stem}.png"
        show_file(path, samples, picture)
    elif path.exists():
        raise ValueError(f"{path} is a folder, but not a run: it has no experiment.json.")
    else:
        raise ValueError(
            f"{target!r} is no benchmark, no file and no run; benchmarks: "
            f"{', '.join(BENCHMARKS.names())}."
        )
    print(f"Picture: {picture}")


def show_file(path: Path, samples: int, picture: Path) -> None:
    """Draw the first samples of a data file: trajectories, or inputs beside their solutions."""
    from sfo.data.sources import holds_arrays, open_data
    from sfo.files import save_figure

    check_at_least(1, samples=samples)
    if holds_arrays(path):
        from sfo.plot.answers import answer_figure

        data = open_data(path)
        first = list(range(min(samples, len(data))))
        a, u = data.a[first].numpy(), data.u[first].numpy()
        meaning = data.grid, data.times, data.names, data.inputs
        figure = answer_figure(a, u, *meaning, word="solution")
        points = " × ".join(map(str, data.grid.shape))
        channels = f"{', '.join(data.inputs)} → {', '.join(data.names)}"
        print(f"{data.name}: {len(data)} samples, {channels}, {points} points")
    else:
        from sfo.data.load import load_file
        from sfo.plot.fields import picture as draw

        file = load_file(path)
        figure = draw(file[: min(samples, len(file))], samples)
    save_figure(figure, picture)


def show_run(path: Path) -> None:
    """How far a run is, its last epochs, and its errors if it is finished."""
    from sfo.commands.training import print_errors
    from sfo.experiments.record import run_record
    from sfo.training.folder import RunFolder

    folder = RunFolder(path)
    experiment = folder.experiment()
    own = experiment.data.arrays
    if own is None:
        size = str(experiment.data.scale)
    else:
        points = " × ".join(map(str, own.grid["shape"]))
        size = f"{own.samples} samples of your own, {points} points, SHA-256 {own.sha256[:16]}…"
    print(
        f"{experiment.model.name} ({experiment.model.preset}) on {experiment.data.benchmark}, "
        f"{size}, seed {experiment.seed}",
    )
    rows = folder.history()
    print(f"{len(rows)} of {experiment.train.epochs} epochs")
    for row in rows[-3:]:
        validation = row["validation"]
        shown = "–" if validation is None else f"{100 * validation:.4g} %"
        print(
            f"  epoch {row['epoch'] + 1}: loss {100 * row['loss']:.4g} %, validation {shown}",
        )
    if (path / "record.json").exists():
        record = run_record(folder)
        print_errors(record.errors, f"Test errors, best epoch {record.best_epoch + 1}")
        print(f"Picture: {path / 'predictions.png'}")
    else:
        print(f"Not finished. Go on: sfo resume {path}")
