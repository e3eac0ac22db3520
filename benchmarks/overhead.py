"""What the training loop costs beside the bare step: forward, relative L2, backward, Adam.

    OMP_NUM_THREADS=1 python benchmarks/overhead.py [--epochs 3]

The 1D problem at desk size: 256 points, batches of 10, 101 outputs, the paper's SFO, 500 samples in
memory. After every step of `fit` a bare step is taken, on a batch made before, once with the
same fused Adam and once with torch's default one; a row gives medians and ratios. Last: what the
end of an epoch costs, which is a checkpoint, the metrics and one validation sample.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from sfo import SFO
from sfo.data.pairs import Pairs
from sfo.grid import Grid
from sfo.machine import keep_freed_blocks
from sfo.training.config import Experiment
from sfo.training.fit import Status, fit
from sfo.training.loss import relative_l2

BATCH, POINTS, FRAMES, SAMPLES = 10, 256, 101, 500
WARM_UP = 5


def random_pairs(samples: int) -> Pairs:
    a, u = torch.randn(samples, 1, POINTS), torch.randn(samples, FRAMES, POINTS)
    times = tuple(range(FRAMES))
    return Pairs(
        a, u, Grid((POINTS,), (-1.0,), (1.0,)), tuple(range(samples)), times, ("u",), ("u",)
    )


def bare_step(fused: bool | None) -> Callable[[], None]:
    model = SFO.from_paper("allen_cahn")
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)
    batch = random_pairs(BATCH)

    def step() -> None:
        optimizer.zero_grad()
        relative_l2(model(batch.a), batch.u).mean().backward()
        optimizer.step()

    return step


class Stopwatch:
    """Wall and CPU milliseconds since it was last read."""

    def __init__(self) -> None:
        self.last = time.perf_counter(), time.process_time()

    def read(self) -> tuple[float, float]:
        now = time.perf_counter(), time.process_time()
        wall, cpu = (1e3 * (b - a) for a, b in zip(self.last, now, strict=True))
        self.last = now
        return wall, cpu


def measure_epochs(epochs: int) -> dict[str, list[tuple[float, float]]]:
    bare = {"bare, fused Adam": bare_step(True), "bare, default Adam": bare_step(None)}
    times: dict[str, list[tuple[float, float]]] = {"fit": [], "end of an epoch": []}
    times |= {name: [] for name in bare}
    watch = Stopwatch()

    def after_step(status: Status) -> None:
        taken = watch.read()
        first_of_epoch = status.step % (SAMPLES // BATCH) == 1
        if status.step > WARM_UP:
            times["end of an epoch" if first_of_epoch else "fit"].append(taken)
        for name, step in bare.items():
            watch.read()
            step()
            times[name].append(watch.read())
        watch.read()

    train = dict(epochs=epochs, batch_size=BATCH)
    experiment = Experiment.of("allen_cahn", scale="desk", train=train)
    with tempfile.TemporaryDirectory() as folder:
        pairs = dict(train=random_pairs(SAMPLES), validation=random_pairs(1))
        fit(experiment, Path(folder) / "run", progress=after_step, **pairs)
    return times


def show(times: dict[str, list[tuple[float, float]]]) -> None:
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in times.items()
    }
    wall, cpu = medians["fit"]
    table = Table(title="One step, medians of interleaved steps")
    for heading in ("", "wall ms", "CPU ms", "fit / it, wall", "fit / it, CPU"):
        table.add_column(heading, justify="right" if heading else "left")
    for name in ("fit", "bare, fused Adam", "bare, default Adam"):
        w, c = medians[name]
        table.add_row(name, f"{w:.1f}", f"{c:.1f}", f"{wall / w:.3f}", f"{cpu / c:.3f}")
    console = Console()
    console.print(table)
    w, c = (
        end - step for end, step in zip(medians["end of an epoch"], medians["fit"], strict=True)
    )
    share = 100 * w / (SAMPLES // BATCH * wall)
    console.print(f"The end of an epoch: {w:.0f} ms ({c:.0f} ms CPU), {share:.1f} % of its steps.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3, help="of 40 steps, at least 2")
    options = parser.parse_args()
    keep_freed_blocks()
    show(measure_epochs(options.epochs))


if __name__ == "__main__":
    main()
