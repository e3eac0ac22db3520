"""Training from a file against training from memory, and the memory of Shallow Water.

    python benchmarks/streaming.py [--epochs 3] [--benchmarks allen_cahn …] [--water]

Epochs of the two are taken in turn, so that what else the machine does falls on both. The file of
Shallow Water has the paper's shape, 1,000 samples of 101 frames of three fields on 128² points,
20 GB, but stores no numbers: HDF5 reads what was never written as zeros. So it costs no disk, and
a run reads, converts and holds as much as of a real one.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import torch

from sfo.data.hdf5 import DataFile
from sfo.data.load import file_pairs, load_benchmark
from sfo.data.pairs import Pairs
from sfo.registry import BENCHMARKS
from sfo.training.batches import batch_shards, fetch
from sfo.training.config import Experiment
from sfo.training.loss import relative_l2
from sfo.training.optimisers import optimizer
from sfo.training.prepare import DataShape, build

ONE_D = ["allen_cahn", "cahn_hilliard", "diffusion_reaction", "diffusion_sorption"]


def epoch(model: torch.nn.Module, train: Pairs, experiment: Experiment, steps: int | None) -> float:
    """Seconds of an epoch, or of its first steps."""
    chosen = optimizer(model, experiment.train)
    batches = batch_shards(len(train), experiment.train.batch_size, seed=0, epoch=0)[:steps]
    start = time.perf_counter()
    for a, u in fetch(train, batches, experiment.train.loader_workers):
        chosen.zero_grad()
        relative_l2(model(a), u).mean().backward()
        chosen.step()
    return time.perf_counter() - start


def compare(name: str, epochs: int) -> None:
    """Print the ratio of the two ways for one benchmark."""
    experiment = Experiment.of(name, scale="desk")
    kept, read = (load_benchmark(name, "desk", stream=way) for way in (False, True))
    model = build(experiment, DataShape.of(kept), kept)
    epoch(model, read, experiment, 2)
    pairs = [
        (epoch(model, read, experiment, None), epoch(model, kept, experiment, None))
        for _ in range(epochs)
    ]
    ratio = statistics.median(one / other for one, other in pairs)
    print(f"{name}: an epoch from the file takes {ratio:.3f} of one from memory", flush=True)


def water_file(path: Path) -> None:
    """A file of Shallow Water at the paper's scale, without numbers."""
    from sfo.data.generate import Recipe

    benchmark = BENCHMARKS["shallow_water"]
    scale = benchmark.scale("paper")
    header = Recipe(benchmark, scale, 0).header(scale.samples)
    shape = (len(header.times), *header.grid.shape, len(header.names))
    with h5py.File(path, "w") as file:
        for index in range(header.n_samples):
            group = file.create_group(f"{index:04d}")
            group.create_dataset("data", shape, "f4", fillvalue=1.0)
            for axis, x in zip("xyz", header.grid.coordinates(), strict=False):
                group[f"grid/{axis}"] = x.numpy().astype("f4")
            group["grid/t"] = torch.tensor(header.times).numpy().astype("f4")


def water(path: Path, steps: int = 2) -> None:
    """Print the peak memory of some training steps, and of a pass over some validation samples."""
    experiment = Experiment.of("shallow_water", scale="paper")
    train, validation = (file_pairs(DataFile(path), part) for part in ("train", "validation"))
    size = 4 * len(train) * train.u.shape[1:].numel() / 1e9
    # With means and deviations of a few samples: those of all take a pass over 20 GB.
    model = build(experiment, DataShape.of(train), train.select(range(4)))
    epoch(model, train, experiment, steps)
    with torch.no_grad():
        relative_l2(model(validation.a[:10]), validation.u[:10])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    batch = experiment.train.batch_size
    print(
        f"shallow_water, {len(train)} training samples of {size:.1f} GB, {steps} steps of {batch} "
        f"samples: {peak:.2f} GB at most"
    )


def main() -> None:
    """Print all ratios, and the memory of a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--benchmarks", nargs="*", default=ONE_D)
    parser.add_argument("--water", type=Path, help="measure the memory with this file alone")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.water is not None:
        water(given.water)
        return
    for name in given.benchmarks:
        compare(name, given.epochs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "water.hdf5"
        water_file(path)
        subprocess.run([sys.executable, __file__, "--water", str(path)], check=True)


if __name__ == "__main__":
    main()
