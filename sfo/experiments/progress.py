"""The bar of a run at work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from sfo.training.loop import Status


@contextmanager
def training_bar(console: Console) -> Iterator[Callable[[Status], None]]:
    """A bar on a terminal, which vanishes at the end; give what it yields to `fit`."""
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
                loss=f"{100 * status.loss:.3g} %",
                validation="–" if status.validation is None else f"{100 * status.validation:.3g} %",
                pace=f"{status.samples_per_second:.0f} samples/s",
                left=_duration(status.seconds_left),
            )

        yield show


def _duration(seconds: float) -> str:
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
