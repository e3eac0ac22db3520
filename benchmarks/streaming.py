"""Training from a file against training from memory, and the memory of Shallow Water.

    python benchmarks/streaming.py [--epochs 3] [--benchmarks allen_cahn …]

Epochs of the two are taken in turn, so that what else the machine does falls on both; seconds are
those of the cores, of all threads. Once every sample is read in each epoch, and once as it is by
default, where the samples that fit into 128 MB are kept: all of a desk set. Checksums are compared
beforehand, as they are for the set in memory.

Shallow Water is trained once with whole batches and once in parts (--micro-batch). Its file has the
paper's shape, 1,000 samples of 101 frames of three fields on 128² points, 20 GB, but stores no
numbers: HDF5 reads what was never written as one value. So it costs no disk, and a run reads,
converts and holds as much as of a real one.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch

from sfo.data.generate import Recipe
from sfo.data.hdf5 import DataFile, Sample
from sfo.data.load import file_pairs, load_benchmark, open_benchmark
from sfo.data.pairs import Pairs, split
from sfo.data.streamed import streamed_pairs
from sfo.machine import keep_freed_blocks
from sfo.registry import BENCHMARKS
from sfo.training.batches import batch_shards, fetch, micro_batches
from sfo.training.config import Experiment
from sfo.training.loss import relative_l2
from sfo.training.optimizers import optimizer
from sfo.training.prepare import DataShape, build

ONE_D = ["allen_cahn", "cahn_hilliard", "diffusion_reaction", "diffusion_sorption"]


def epoch(model: torch.nn.Module, train: Pairs, experiment: Experiment, steps: int | None) -> float:
    """Seconds of the cores for an epoch, or for its first steps."""
    config = experiment.train
    chosen = optimizer(model, config)
    batches = batch_shards(len(train), config.batch_size, seed=0, epoch=0)[:steps]
    parts = [micro_batches(batch, config.micro_batch) for batch in batches]
    fetched = fetch(train, [p for step in parts for p in step], config.loader_workers)
    start = time.process_time()
    for step in parts:
        chosen.zero_grad()
        for part in step:
            a, u = next(fetched)
            (relative_l2(model(a), u).mean() * part.weight).backward()
            del a, u
        chosen.step()
    return time.process_time() - start


def compare(name: str, epochs: int) -> None:
    """Print the ratio of the two ways for one benchmark."""
    experiment = Experiment.of(name, scale="desk")
    kept = load_benchmark(name, "desk", stream=False)
    file = open_benchmark(name, "desk")
    how: dict[str, Any] = dict(inputs=kept.inputs, n_input=kept.n_input, benchmark=file.benchmark)
    read = {
        "all samples": streamed_pairs(file, kept.ids, cache_bytes=0, **how),
        "what is not kept of them": streamed_pairs(file, kept.ids, **how),
    }
    model = build(experiment, DataShape.of(kept), kept)
    for pairs in read.values():
        epoch(model, pairs, experiment, None)
    ratios: dict[str, list[float]] = {what: [] for what in read}
    for _ in range(epochs):
        for what, pairs in read.items():
            one = epoch(model, pairs, experiment, None)
            ratios[what].append(one / epoch(model, kept, experiment, None))
    for what, found in ratios.items():
        ratio = statistics.median(found)
        print(
            f"{name}: an epoch that reads {what} takes {ratio:.3f} of one from memory", flush=True
        )


STEPS = 2
"""Training steps on Shallow Water."""


def water_file(path: Path) -> None:
    """A file of Shallow Water at the paper's scale, without numbers.

    Only the samples that `water` reads have a checksum: that of all would take a pass over 20 GB.
    """
    benchmark = BENCHMARKS["shallow_water"]
    scale = benchmark.scale("paper")
    header = Recipe(benchmark, scale, 0).header(scale.samples)
    shape = header.grid.shape
    data = np.ones((len(header.times), *shape, len(header.names)), "f4")
    static = np.ones((*shape, len(header.static_names)), "f4")
    parts = split(header.n_samples)
    shards = batch_shards(len(parts.train), water_experiment().train.batch_size, seed=0, epoch=0)
    rows = [*range(4), *(row for shard in shards[:STEPS] for row in shard.rows.tolist())]
    sealed = {*(parts.train[row] for row in rows), *parts.validation[:10]}
    with h5py.File(path, "w") as file:
        file.attrs["sfo"] = header.to_json()
        for index in range(header.n_samples):
            group = file.create_group(f"{index:04d}")
            group.create_dataset("data", data.shape, "f4", fillvalue=1.0)
            group.create_dataset("static", static.shape, "f4", fillvalue=1.0)
            seal = Sample(data, static).seal(header, index).hex() if index in sealed else ""
            group.attrs["sha256"] = seal


def water_experiment(micro_batch: int | None = None) -> Experiment:
    return Experiment.of("shallow_water", scale="paper", train=dict(micro_batch=micro_batch))


def water(path: Path, micro_batch: int | None) -> None:
    """Print the peak memory of some training steps, and of a pass over some validation samples."""
    experiment = water_experiment(micro_batch)
    train, validation = (file_pairs(DataFile(path), part) for part in ("train", "validation"))
    size = 4 * len(train) * train.u.shape[1:].numel() / 1e9
    batch = experiment.train.batch_size
    shards = batch_shards(len(train), batch, seed=0, epoch=0)[:STEPS]
    for _ in fetch(train, [p for shard in shards for p in micro_batches(shard, micro_batch)]):
        pass
    what = (
        f"shallow_water, {len(train)} training samples of {size:.1f} GB, {STEPS} batches of "
        f"{batch}, {micro_batch or 'all'} at a time"
    )
    print(f"{what}: {peak():.2f} GB at most to read them", flush=True)
    # With means and deviations of a few samples: those of all take a pass over 20 GB.
    model = build(experiment, DataShape.of(train), train.select(range(4)))
    epoch(model, train, experiment, STEPS)
    with torch.no_grad():
        rows = slice(micro_batch or batch)
        relative_l2(model(validation.a[rows]), validation.u[rows])
    print(f"{what}: {peak():.2f} GB at most to train on them", flush=True)


def peak() -> float:
    """Most memory of this process so far, in GB."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e9


def main() -> None:
    """Print all ratios, and the memory of a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--benchmarks", nargs="*", default=ONE_D)
    parser.add_argument("--water", type=Path, help="measure the memory with this file alone")
    parser.add_argument("--micro-batch", type=int, help="samples of Shallow Water at a time")
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_blocks()  # As `sfo train` does.
    if given.water is not None:
        water(given.water, given.micro_batch)
        return
    for name in given.benchmarks:
        compare(name, given.epochs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "water.hdf5"
        water_file(path)
        for parts in ([], ["--micro-batch", str(given.micro_batch or 2)]):
            subprocess.run([sys.executable, __file__, "--water", str(path), *parts], check=True)


if __name__ == "__main__":
    main()
