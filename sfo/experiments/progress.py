"""The bar of a run at work."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sfo.data.generate import SampleProgress
from sfo.training.loop import Status


@contextmanager
def training_bar(console: Console) -> Iterator[Callable[[Status], None]]:
    """A bar on a terminal, which vanishes at the end; elsewhere a line for each epoch.

    Give what it yields to `fit`.
    """
    if not console.is_terminal:
        yield lambda status: _print_epoch(status, console)
        return
    columns = (
        TextColumn("epoch {task.fields[epoch]}/{task.fields[epochs]}"),
        BarColumn(),
        TextColumn("loss {task.fields[loss]}  validation {task.fields[validation]}"),
        TextColumn("{task.fields[pace]}  {task.fields[left]} left"),
    )
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
                loss=_percent(status.loss),
                validation=_percent(status.validation),
                pace=f"{status.samples_per_second:.0f} samples/s",
                left=_duration(status.seconds_left),
            )

        yield show


def generating_lines(
    console: Console, every: float = 10.0, clock: Callable[[], float] = time.monotonic
) -> SampleProgress:
    """Prints how far the making of data is: when it begins, every so many seconds, and at its end.

    Give it to `fit` as `generating`.

    Args:
        console: Where to print.
        every: Seconds between two lines.
        clock: What time it is.
    """
    printed: float | None = None

    def show(done: int, total: int) -> None:
        nonlocal printed
        ends = printed is not None and done == total
        if ends or printed is None or clock() - printed >= every:
            printed = clock()
            console.print(f"generating data: {done}/{total} samples", soft_wrap=True)

    return show


def _print_epoch(status: Status, console: Console) -> None:
    """A line for a log file, at the end of an epoch."""
    if status.ends_epoch:
        console.print(
            f"epoch {status.epoch + 1}/{status.epochs}  loss {_percent(status.loss)}  "
            f"validation {_percent(status.validation)}  {status.samples_per_second:.0f} samples/s  "
            f"{_duration(status.seconds_left)} left",
            soft_wrap=True,
        )


def _percent(error: float | None) -> str:
    return "–" if error is None else f"{100 * error:.3g} %"


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
