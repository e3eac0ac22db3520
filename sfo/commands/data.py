"""Commands about data: generate, download, doctor."""

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sfo.commands.console import plain_console
from sfo.data.benchmarks import ScaleName
from sfo.files import parse_json
from sfo.registry import BENCHMARKS

Name = Annotated[str, tyro.conf.Positional]
Options = Annotated[list[str], tyro.conf.UseAppendAction]


def generate(
    name: Name,
    scale: ScaleName = "desk",
    samples: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    workers: int | None = None,
    option: Options = [],  # noqa: B006
) -> None:
    """Generate a benchmark's data file; one that was interrupted is completed.

    For example:
    $ sfo generate allen_cahn --samples 1000 --scale desk --seed 0
    $ sfo generate cahn_hilliard --option gamma=1e-5 --out ch.hdf5

    Args:
        name: The benchmark; `sfo list` names them.
        scale: Size of the data: smoke takes seconds, desk minutes, paper is the published size.
        samples: Number of samples; as many as the scale says if left out.
        seed: Seed of the initial states.
        out: The file to write; if left out, one in the data folder ($SFO_DATA).
        workers: Number of processes; one per core if left out.
        option: An option of the benchmark or a constant of its equation, as name=value.
    """
    from sfo.data import benchmark_path
    from sfo.data.generate import generate as make

    benchmark = BENCHMARKS[name].with_options(**parse_options(option))
    path = out or benchmark_path(benchmark, scale, samples, seed)
    with ProgressBar(benchmark.title, "{task.completed:.0f}/{task.total} samples") as bar:
        make(
            benchmark,
            path,
            scale=scale,
            samples=samples,
            seed=seed,
            workers=workers,
            progress=bar.update,
        )
    size = path.stat().st_size / 1e6
    print(f"{benchmark.title}: {path} ({size:.1f} MB)")


def download(name: Name, out: Path = Path("data"), address: str | None = None) -> None:
    """Download a published data file; an interrupted download continues where it stopped.

    Example: sfo download diffusion_sorption --out data

    Args:
        name: The benchmark whose file to download.
        out: The folder to write it to.
        address: Another address to download it from.
    """
    from sfo.data.download import download as fetch

    with ProgressBar(name, "{task.percentage:.1f} %") as bar:
        path = fetch(name, out, address=address, progress=bar.update)
    print(f"{name}: {path}")


def doctor(file: Annotated[Path, tyro.conf.Positional]) -> None:
    """Say what a data file is, what the loader makes of it, and what is wrong with it.

    The exit code is 0 if nothing is wrong, otherwise 1.

    Example: sfo doctor 1D_Allen-Cahn_0.0001_5.hdf5

    Args:
        file: The data file.
    """
    from sfo.data.doctor import examine

    with ProgressBar(file.name, "{task.completed:.0f}/{task.total} samples") as bar:
        report = examine(file, progress=bar.update)
    print(report)
    if report.problems:
        raise SystemExit(1)


def parse_options(options: list[str]) -> dict[str, Any]:
    """name=value pairs, values as JSON where they are JSON, else as text.

    Example:
        >>> parse_options(["gamma=1e-5", "boundary=open"])
        {'gamma': 1e-05, 'boundary': 'open'}
    """
    values: dict[str, Any] = {}
    for entry in options:
        name, equals, text = entry.partition("=")
        if not equals or not name:
            raise ValueError(f"`--option` must be name=value, got {entry!r}.")
        try:
            values[name] = parse_json(text)
        except ValueError:
            values[name] = text
    return values


class ProgressBar:
    """A progress bar that appears when there is progress, so that errors come alone."""

    def __init__(self, title: str, count: str) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn(count),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=plain_console(stderr=True), transient=True)
        self.task = self.progress.add_task(title, total=None)

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def update(self, done: int, total: int | None) -> None:
        """Show that `done` of `total` is done."""
        self.progress.update(self.task, completed=done, total=total)
        self.progress.start()
