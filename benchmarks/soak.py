"""Memory and open files of a long training: a tiny model for a hundred thousand steps.

    python benchmarks/soak.py [--steps 100000] [--model sfo] [--logger csv]

Every epoch of a hundred steps validates and writes a checkpoint. The table has resident memory and
open files at ten places of the run; the first is after a twentieth of the steps, when all caches
are filled. The last line compares the second half with the first, and the exit code is 1 where
either grows by more than 1 %.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from sfo.data.arrays import Arrays, split_by_share
from sfo.machine import keep_freed_blocks
from sfo.training.fit import Status, fit
from sfo.training.own_data import own_experiment

TINY = dict(hidden_channels=8, n_modes=4, n_layers=1)
STEPS_PER_EPOCH = 100
WARM_UP = 0.05
ALLOWED = 0.01


def resident() -> int:
    """Bytes of memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def open_files() -> int:
    """File descriptors that this process holds now."""
    return len(os.listdir("/proc/self/fd"))


def soak(
    steps: int, folder: str | Path, model: str = "sfo", loggers: tuple[str, ...] = ()
) -> list[dict[str, Any]]:
    """Train for so many steps; step, seconds, memory and files after every epoch."""
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(250, 1, 16, generator=generator)
    arrays = Arrays.of(a, a.roll(1, -1), name="shifted")
    split = split_by_share(len(arrays), 0.1)
    train, validation = (arrays.pairs(split, name) for name in ("train", "validation"))
    experiment = own_experiment(
        arrays,
        model,
        preset="default",
        settings=TINY,
        train=dict(
            batch_size=len(train) // STEPS_PER_EPOCH,
            epochs=max(1, steps // STEPS_PER_EPOCH),
            ema=0.9,
            schedule="constant",
            normaliser="standard",
        ),
    )
    rows: list[dict[str, Any]] = []
    begin = time.perf_counter()

    def watch(status: Status) -> None:
        if status.ends_epoch:
            seconds = time.perf_counter() - begin
            rows.append(
                dict(step=status.step, seconds=seconds, memory=resident(), files=open_files())
            )

    fit(
        experiment,
        folder,
        train=train,
        validation=validation,
        progress=watch,
        loggers=loggers,
        accelerator="cpu",
    )
    return rows


def growth(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Largest value in the second half over the largest in the first after the warm-up, less 1."""
    warm = rows[int(WARM_UP * len(rows)) :]
    first, second = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    return {
        what: max(row[what] for row in second) / max(row[what] for row in first) - 1
        for what in ("memory", "files")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--model", default="sfo")
    parser.add_argument("--logger", nargs="*", default=[])
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_blocks()
    with tempfile.TemporaryDirectory() as folder:
        rows = soak(chosen.steps, Path(folder) / "run", chosen.model, tuple(chosen.logger))
    print("|  steps | seconds | resident MB | open files |")
    print("|---:|---:|---:|---:|")
    first = int(WARM_UP * len(rows))
    for number in range(10):
        row = rows[first + (len(rows) - 1 - first) * number // 9]
        print(
            f"| {row['step']:6d} | {row['seconds']:.0f} | {row['memory'] / 1e6:.2f} | "
            f"{row['files']} |"
        )
    grown = growth(rows)
    print(
        f"Growth from the first half to the second: {100 * grown['memory']:.2f} % of resident "
        f"memory, {100 * grown['files']:.2f} % of open files"
    )
    sys.exit(int(max(grown.values()) > ALLOWED))


if __name__ == "__main__":
    main()
