"""One training step of every model at the paper's sizes, beside SFO's in the same process.

    python benchmarks/models.py [--json benchmarks/models.json] [--sizes 1D 2D 3D] [--models sfo …]
    python benchmarks/models.py --json benchmarks/models.json --show

Each model runs in a process of its own with at most 20 GB, alternating with SFO; times are medians,
the ratio is theirs. Memory is the peak during steps over the process before them. A model that does
not fit, or takes more than the limit of time for a step, says so in its row. What a file holds of
other models and sizes stays in it.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

SIZES = {
    "1D": dict(benchmark="allen_cahn", batch=50, shape=(256,), repeats=5),
    "2D": dict(benchmark="shallow_water", batch=10, shape=(128, 128), repeats=1),
    "3D": dict(benchmark="maxwell", batch=1, shape=(32, 32, 32), repeats=2),
}
NAMES = [
    "sfo",
    "svd_no",
    "deeponet",
    "mno",
    "transolver",
    "fno",
    "uno",
    "mpnn",
    "pino",
    "unet",
    "neuralop_fno",
    "neuralop_uno",
]
LIMIT = 20e9
SECONDS = 300


def measure_model(name: str, size: str) -> None:
    """Print seconds of the model's and of SFO's step, MB and parameters, as JSON."""
    import torch

    from sfo.machine import keep_freed_blocks
    from sfo.models.build import build_model

    resource.setrlimit(resource.RLIMIT_AS, (int(LIMIT), int(LIMIT)))
    keep_freed_blocks()
    entry = SIZES[size]
    torch.manual_seed(0)

    def stepper(name: str):
        model = build_model(name, entry["benchmark"], train_shape=entry["shape"])
        a = torch.randn(entry["batch"], model.in_channels, *entry["shape"])
        u = torch.randn(entry["batch"], model.out_channels, *entry["shape"])
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

        def step() -> float:
            start = time.perf_counter()
            optimizer.zero_grad()
            loss = ((model(a) - u).flatten(1).norm(dim=1) / u.flatten(1).norm(dim=1)).mean()
            loss.backward()
            optimizer.step()
            return time.perf_counter() - start

        return step, sum(p.numel() for p in model.parameters())

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    own, parameters = stepper(name)
    own()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sfo = own if name == "sfo" else stepper("sfo")[0]
    sfo()
    times = [(own(), sfo()) for _ in range(entry["repeats"])]
    mine, ours = (statistics.median(column) for column in zip(*times, strict=True))
    row = dict(seconds=mine, sfo=ours, megabytes=(peak - before) / 1024, parameters=parameters)
    print(json.dumps(row))


def show(rows: dict[str, dict]) -> None:
    """Print all sizes as Markdown, with the paper's parameter counts beside ours."""
    from sfo.experiments.paper import PARAMETERS

    for size, entry in SIZES.items():
        shape = " × ".join(map(str, entry["shape"]))
        print(f"\n{size}: {entry['benchmark']}, {shape}, batch {entry['batch']}\n")
        print("| model | parameters | the paper's | step, ms | × SFO | memory, MB |")
        print("|---|---|---|---|---|---|")
        published = PARAMETERS[len(entry["shape"])]
        for name in NAMES:
            row = rows.get(f"{size} {name}")
            if row is None:
                continue
            theirs = f"{published[name]:,}" if name in published else ""
            if "note" in row:
                print(f"| {name} | | {theirs} | {row['note']} | | |")
                continue
            print(
                f"| {name} | {row['parameters']:,} | {theirs} | {1e3 * row['seconds']:,.0f} "
                f"| {row['seconds'] / row['sfo']:.2f} | {row['megabytes']:,.0f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write, or with --show read, the numbers here")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--models", nargs="*", default=NAMES, choices=NAMES)
    parser.add_argument(
        "--show", action="store_true", help="measure nothing, print a file's tables"
    )
    parser.add_argument("--measure", nargs=2, metavar=("MODEL", "SIZE"))
    arguments = parser.parse_args()
    if arguments.measure:
        measure_model(*arguments.measure)
        return
    rows: dict[str, dict] = {}
    if arguments.json and os.path.exists(arguments.json):
        with open(arguments.json) as file:
            rows = json.load(file)
    if arguments.show:
        if not rows:
            parser.error(f"--show needs a file that --json has written, got {arguments.json}")
        show(rows)
        return
    for size in arguments.sizes:
        for name in arguments.models:
            command = [sys.executable, __file__, "--measure", name, size]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
                row = json.loads(done.stdout.splitlines()[-1])
            except subprocess.TimeoutExpired:
                row = dict(note=f"over {SECONDS} s for four steps")
            except (IndexError, ValueError):
                reason = (done.stderr.strip().splitlines() or ["killed"])[-1][:80]
                memory = "memory" in reason.lower() or "alloc" in reason.lower()
                row = dict(note="does not fit in 20 GB" if memory else reason)
            rows[f"{size} {name}"] = row
            print(size, name, row, file=sys.stderr, flush=True)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(rows, file, indent=1)
    show(rows)


if __name__ == "__main__":
    main()
