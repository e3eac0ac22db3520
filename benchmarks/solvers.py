"""Seconds that each benchmark's solver takes for one sample of the published size, on one core.

    python benchmarks/solvers.py [--json benchmarks/solvers.json]

Processor time, not wall time, so that a busy machine matters less; the first call, which compiles,
is not counted. Memory: the peak of a process that generates 8 and of one that generates 32 samples
of the desk size, which must not differ by more than the samples of one chunk.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from sfo.data.benchmarks import Scale
from sfo.registry import BENCHMARKS

TARGETS = {
    "allen_cahn": 0.05,
    "diffusion_reaction": 0.05,
    "cahn_hilliard": 0.5,
    "diffusion_sorption": 0.3,
    "shallow_water": 1.0,
    "maxwell": 1.5,
}
GENERATE = """
import resource, sys
from sfo.data.generate import generate
from sfo.registry import BENCHMARKS
import sfo
generate(BENCHMARKS[sys.argv[1]], sys.argv[2], scale="desk", samples=int(sys.argv[3]), workers=1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def seconds(name: str, repeats: int) -> float:
    """Median over chunks of the processor time a sample takes."""
    kind = BENCHMARKS[name]
    scale = kind.scale("paper")
    kind.simulate(0, [0], Scale(samples=1, n=scale.n, frames=2))
    costs = []
    for chunk in range(repeats):
        ids = range(chunk * kind.chunk, (chunk + 1) * kind.chunk)
        start = time.process_time()
        kind.simulate(0, ids, scale)
        costs.append((time.process_time() - start) / kind.chunk)
    return sorted(costs)[len(costs) // 2]


def memory(name: str, samples: int) -> float:
    """Peak of a process that generates so many samples, in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", GENERATE, name, f"{folder}/file.hdf5", str(samples)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = {}
    print(f"{'benchmark':20} {'s/sample':>9} {'target':>7} {'MB for 8':>9} {'for 32':>7}")
    for name, target in TARGETS.items():
        cost = seconds(name, arguments.repeats)
        few, many = memory(name, 8), memory(name, 32)
        rows[name] = dict(seconds=cost, target=target, memory_8=few, memory_32=many)
        print(f"{name:20} {cost:9.3f} {target:7.2f} {few:9.0f} {many:7.0f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
