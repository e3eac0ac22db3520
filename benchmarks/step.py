"""Training step and peak memory: the paper's formulation, ours, and neuraloperator's FNO.

    python benchmarks/step.py [--json FILE] [--repeats 5] [--quick]

All train in one process, one step each in turn, under the same allocator settings; a row gives
medians and their ratios. "ours" is the paper's SFO, "factored" an SFO of the same width with
factored kernels and a hidden layer as wide as the field, "recommended" the recommended SFO of its
own width, in 3D that for linear equations such as Maxwell's; the last two are also timed in
prediction, at a batch of one. Peak memory is measured in a process of its own for each model: the
resident memory that one training step adds to that of the built model and its data. The FNO has
the same width and number of layers, and n_modes = 16, 12 and 8 along an axis in 1D, 2D and 3D:
half of the paper's FNO, since neuraloperator counts both signs of a frequency, so it is the faster
for it.
"""

import argparse
import json
import multiprocessing
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from paper_formulation import PaperSFO
from rich.console import Console
from rich.table import Table
from torch import nn

from sfo import SFO
from sfo.machine import keep_freed_blocks


@dataclass(frozen=True)
class Case:
    """One row: a problem's size, and the ratios that we want to reach."""

    name: str
    batch: int
    in_channels: int
    out_channels: int
    shape: tuple[int, ...]
    channels: int
    fno_modes: int
    n_modes: int = 20
    speedup: float | None = None
    to_fno: float | None = None
    linear: bool = False


CASES = [
    Case("1D, batch 50", 50, 1, 101, (256,), 64, 16, speedup=6, to_fno=1),
    Case("2D, batch 2", 2, 1, 101, (128, 128), 64, 12),
    Case("2D, batch 10", 10, 1, 101, (128, 128), 64, 12, speedup=4, to_fno=2),
    Case("3D, 1 × 6 components", 6, 2, 8, (32, 32, 32), 32, 8, speedup=8, to_fno=1.5, linear=True),
]
KINDS = ("paper", "ours", "fno")
FACTORED = ("factored", "recommended", "fno")
WANTED = {"factored": 0.9, "recommended": {1: 1.0, 2: 1.2, 3: 1.2}, "prediction": 0.8}
"""What the steps of factored kernels should take at most, as multiples of neuraloperator's."""


def build(kind: str, case: Case) -> nn.Module:
    sizes = dict(in_channels=case.in_channels, out_channels=case.out_channels)
    if kind == "paper":
        return PaperSFO(
            **sizes, shape=case.shape, n_modes=case.n_modes, hidden_channels=case.channels
        )
    if kind == "ours":
        return SFO(
            **sizes, n_dim=len(case.shape), n_modes=case.n_modes, hidden_channels=case.channels
        )
    if kind == "recommended":
        return SFO.recommended(
            **sizes, n_dim=len(case.shape), train_shape=case.shape, linear=case.linear
        )
    if kind == "factored":
        return SFO(
            **sizes,
            n_dim=len(case.shape),
            n_modes=case.n_modes,
            hidden_channels=case.channels,
            mixing="factored",
            index="tied" if len(case.shape) == 1 else "separable",
            support="two_sided",
            gain="unit",
            skip=True,
            norm=None,
            lift_norm=None,
            lift_kernel=1,
            mlp_ratio=1,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from neuralop.models import FNO

        modes = (case.fno_modes,) * len(case.shape)
        return FNO(n_modes=modes, **sizes, hidden_channels=case.channels, n_layers=4)


def training_step(kind: str, case: Case) -> Callable[[], None]:
    """A function that does one step: forward, relative L2, backward, Adam."""
    torch.manual_seed(0)
    model = build(kind, case)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    a = torch.randn(case.batch, case.in_channels, *case.shape)
    u = torch.randn(case.batch, case.out_channels, *case.shape)
    scale = u.flatten(1).norm(dim=1)

    def step() -> None:
        optimizer.zero_grad()
        loss = ((model(a) - u).flatten(1).norm(dim=1) / scale).mean()
        loss.backward()
        optimizer.step()

    return step


def prediction(kind: str, case: Case) -> Callable[[], None]:
    """A function that predicts one sample."""
    torch.manual_seed(0)
    model = build(kind, case).eval()
    a = torch.randn(1, case.in_channels, *case.shape)

    def predict() -> None:
        with torch.no_grad():
            model(a)

    return predict


def seconds(function: Callable[[], None]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def interleaved(steps: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Median seconds of each, measured in turn so that the machine's moods hit all alike."""
    for step in steps.values():
        step()
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(repeats):
        for name, step in steps.items():
            times[name].append(seconds(step))
    return {name: statistics.median(values) for name, values in times.items()}


def set_allocator(name: str) -> None:
    if name == "keep":
        keep_freed_blocks()


def peak_memory(kind: str, case: Case, allocator: str) -> float | None:
    """Megabytes that a training step adds, in a fresh process; None where /proc is missing."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_peak_memory, (kind, case, allocator))


def _peak_memory(kind: str, case: Case, allocator: str) -> float:
    set_allocator(allocator)
    step = training_step(kind, case)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    step()
    return (_status("VmHWM") - before) / 1024


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def compare(cases: list[Case], kinds: tuple[str, ...], repeats: int, allocator: str) -> list[dict]:
    rows = []
    for case in cases:
        memory = {kind: peak_memory(kind, case, allocator) for kind in kinds}
        ms = interleaved({kind: training_step(kind, case) for kind in kinds}, repeats)
        rows.append({"case": case.name, "ms": {k: 1e3 * s for k, s in ms.items()}, "mb": memory})
    return rows


def compare_factored(cases: list[Case], repeats: int) -> list[dict]:
    """Training steps and predictions of factored kernels beside neuraloperator's FNO."""
    rows = []
    for case in cases:
        steps = interleaved({k: training_step(k, case) for k in FACTORED}, repeats)
        alone = interleaved({k: prediction(k, case) for k in FACTORED}, 4 * repeats)
        row = {"case": case.name, "n_dim": len(case.shape)}
        row["ms"] = {k: 1e3 * s for k, s in steps.items()}
        row["prediction_ms"] = {k: 1e3 * s for k, s in alone.items()}
        rows.append(row)
    return rows


def show_factored(console: Console, rows: list[dict]) -> None:
    table = Table(title="Factored kernels, as multiples of neuraloperator's FNO")
    headings = ("case", "FNO ms", "factored", "want", "recommended", "want")
    for heading in (*headings, "prediction: FNO ms", "factored", "recommended", "want"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for row in rows:
        ms, alone = row["ms"], row["prediction_ms"]
        table.add_row(
            row["case"],
            f"{ms['fno']:.0f}",
            f"{ms['factored'] / ms['fno']:.2f}",
            f"≤ {WANTED['factored']:g}",
            f"{ms['recommended'] / ms['fno']:.2f}",
            f"≤ {WANTED['recommended'][row['n_dim']]:g}",
            f"{alone['fno']:.1f}",
            f"{alone['factored'] / alone['fno']:.2f}",
            f"{alone['recommended'] / alone['fno']:.2f}",
            f"≤ {WANTED['prediction']:g}",
        )
    console.print(table)


def growth(repeats: int, points: list[int]) -> list[dict]:
    """How our step grows with n, at a fixed batch of 2 (1D, d = 64, L = 20)."""
    cases = {n: Case(f"n = {n:,}", 2, 1, 1, (n,), 64, 16) for n in points}
    ms = interleaved({str(n): training_step("ours", case) for n, case in cases.items()}, repeats)
    return [{"n": n, "ms": 1e3 * ms[str(n)]} for n in points]


def show(console: Console, rows: list[dict], grown: list[dict], cases: list[Case]) -> None:
    fno = "fno" in rows[0]["ms"]
    table = Table(title="One training step (Adam, relative L2), medians of interleaved repeats")
    headings = ["case", "(a) paper ms", "(b) ours ms", "(c) FNO ms", "a/b", "want", "b/c", "want"]
    for heading in [*headings, "(a) MB", "(b) MB", "(c) MB", "mem b/a"]:
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for row, case in zip(rows, cases, strict=True):
        ms, mb = row["ms"], row["mb"]
        table.add_row(
            row["case"],
            f"{ms['paper']:.0f}",
            f"{ms['ours']:.0f}",
            f"{ms['fno']:.0f}" if fno else "–",
            f"{ms['paper'] / ms['ours']:.1f}",
            f"≥ {case.speedup:g}" if case.speedup else "",
            f"{ms['ours'] / ms['fno']:.2f}" if fno else "–",
            f"≤ {case.to_fno:g}" if case.to_fno else "",
            *(f"{mb[k]:.0f}" if mb.get(k) is not None else "–" for k in KINDS),
            f"{mb['ours'] / mb['paper']:.2f}" if mb["ours"] is not None else "–",
        )
    console.print(table)
    table = Table(title="Growth with the grid (1D, batch 2, d = 64, L = 20)")
    for heading in ("n", "ms a step", "µs a point"):
        table.add_column(heading, justify="right")
    for row in grown:
        table.add_row(f"{row['n']:,}", f"{row['ms']:.0f}", f"{1e3 * row['ms'] / row['n']:.2f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the measurements here as well")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="the 1D case and small grids only")
    parser.add_argument("--no-fno", action="store_true", help="run without neuraloperator")
    parser.add_argument(
        "--allocator",
        choices=("keep", "default"),
        default="keep",
        help="keep freed blocks, as our training entry points do, or leave malloc as it is",
    )
    parser.add_argument("--factored", action="store_true", help="factored kernels only")
    parser.add_argument("--case", help="only the cases whose name contains this")
    options = parser.parse_args()
    set_allocator(options.allocator)
    cases = CASES[:1] if options.quick else CASES
    if options.case:
        cases = [case for case in cases if options.case in case.name]
    kinds = KINDS[:2] if options.no_fno else KINDS
    points = (
        [256]
        if options.case
        else [2**p for p in (range(8, 11) if options.quick else range(8, 17, 2))]
    )
    console = Console(width=140 if not sys.stdout.isatty() else None)
    factored = [] if options.no_fno else compare_factored(cases, options.repeats)
    if factored:
        show_factored(console, factored)
    if options.factored:
        return
    rows = compare(cases, kinds, options.repeats, options.allocator)
    grown = growth(options.repeats, points)
    show(console, rows, grown, cases)
    if options.json:
        about = {"torch": torch.__version__, "threads": torch.get_num_threads()}
        about |= {"machine": platform.machine(), "cpus": multiprocessing.cpu_count()}
        options.json.write_text(
            json.dumps(
                {"about": about, "steps": rows, "factored": factored, "growth": grown}, indent=1
            )
        )


if __name__ == "__main__":
    main()
