"""Commands about studies: reproduce and report."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from sfo.checks import install_command
from sfo.commands.console import plain_console
from sfo.commands.data import Options, parse_options
from sfo.data.benchmarks import ScaleName
from sfo.training.config import Experiment

if TYPE_CHECKING:
    from sfo.experiments.engines import Engine
    from sfo.experiments.reproduction import Reproduction, RunSeconds
    from sfo.experiments.results import Results
    from sfo.experiments.runner import RunnerState
    from sfo.experiments.study import Cell, Study

Names = Annotated[list[str], tyro.conf.Positional]


def reproduce(
    study: Names,
    scale: ScaleName = "desk",
    out: Path | None = None,
    seeds: int = 1,
    workers: int | None = None,
    benchmark: list[str] = [],  # noqa: B006
    column: list[str] = [],  # noqa: B006
    dry_run: bool = False,
    retry: bool = False,
    engine: Literal["local", "slurm", "ray"] = "local",
    address: str | None = None,
    slurm: Options = [],  # noqa: B006
    accelerator: str = "auto",
    devices: str | None = None,
) -> None:
    """Compute tables and figures of the paper; finished runs are not repeated.

    It may be stopped or killed at any moment; the same command continues.

    For example:
    $ sfo reproduce main --scale smoke
    $ sfo reproduce main basis rank --seeds 3 --benchmark allen_cahn
    $ sfo reproduce main --dry-run
    $ sfo reproduce main --accelerator cuda --devices 0,1,2,3
    $ sfo reproduce main --engine ray --address 10.0.0.1:6379
    $ sfo report results/desk

    Args:
        study: Names of studies: main, main-adam, pareto, start, data, fixed, params, runtime,
            seconds, basis, glu, index, rank, width, tune, coefficients, subsample, zero-shot,
            boundary, design, those of plugins, or all.
        scale: Size of the data and length of the training.
        out: Folder for the Records; if left out, results/SCALE.
        seeds: Number of runs of each cell. One seed for every cell comes first, then the others.
        workers: Number of runs at a time, one thread each; if left out, one per device or core.
        benchmark: Compute only the rows of these benchmarks.
        column: Compute only these columns.
        dry_run: List the runs and how long they will take, and do nothing.
        retry: Try failed runs again.
        engine: What does the runs: processes of this machine, Slurm, or a Ray cluster.
        address: Address of the Ray cluster, as HOST:PORT; with slurm, "local" tries it here.
        slurm: An option of sbatch as submitit names it, such as slurm_partition=gpu.
        accelerator: Kind of device of the runs: auto, cpu, cuda or mps.
        devices: GPUs of this machine, one run on each: a number, or a list such as 0,1,2,3.
    """
    from sfo.experiments.engines import make_engine
    from sfo.experiments.reproduction import Reproduction
    from sfo.experiments.selection import Selection
    from sfo.training.devices import Devices

    chosen = Selection.of(study, scale=scale, seeds=seeds, rows=benchmark, columns=column)
    taken = (Devices.of if engine == "local" else Devices.elsewhere)(accelerator, devices)
    if address == ("local" if engine == "slurm" else None):
        Devices.of(accelerator)
    work = Reproduction.of(chosen, out, taken.count() if workers is None else workers)
    console = plain_console()
    for peer in chosen.missing_models(work.results):
        line = f"{peer} is left out; {install_command('peers')} brings it."
        console.print(line, soft_wrap=True)
    if slurm and engine != "slurm":
        raise ValueError("`--slurm` is for --engine slurm; leave it out.")
    if dry_run:
        with console.status("measuring a step of each model"):
            runs = work.open_runs()
        _list_runs(runs, work.workers, console)
        return
    results = work.results
    results.check_writable()
    if retry:
        results.forget_failures()
    # Ahead of measurements, which take minutes: an engine that is not there is refused at once.
    place = None
    if chosen.studies:
        options = parse_options(slurm)
        place = make_engine(
            engine, results, workers=workers, devices=taken, address=address, options=options
        )
    for name in chosen.measurements:
        _measure(name, work, console)
    if place is not None:
        _run(work, place, workers or place.slots(), console)
    console.print(f"Records: {results}. Report: sfo report {results}", soft_wrap=True)


def _measure(name: str, work: "Reproduction", console: Console) -> None:
    """Measure a table, unless it is there and does not grow."""
    if work.is_measured(name):
        path = work.results.table_path(name)
        line = f"{name} is there already; delete {path} to measure it again."
        console.print(line, soft_wrap=True)
        return
    with console.status(name) as status:
        work.measure(name, status.update)


def _run(work: "Reproduction", engine: "Engine", workers: int, console: Console) -> None:
    """Do what the studies lack, with a display; exit with 1 if a run failed."""
    tables = work.chosen.tables()
    with Display(tables, work.results, work.cost, workers, console) as display:
        state = work.run(display.update, engine)
    for failed, why in state.failed.items():
        console.print(f"{failed} failed: {why}", style="red", soft_wrap=True)
    if state.failed:
        sys.exit(1)


def _list_runs(
    runs: Sequence[tuple[str, Experiment, float]], workers: int, console: Console
) -> None:
    """What would be done, and how long it would take."""
    from sfo.experiments.estimate import shared

    table = Table("", "benchmark", "model", "seed", "epochs", "expected")
    for kind, experiment, seconds in runs:
        table.add_row(
            kind,
            experiment.data.benchmark,
            _described(experiment),
            str(experiment.seed),
            str(experiment.train.epochs),
            duration(seconds),
        )
    total = sum(seconds for _, _, seconds in runs)
    console.print(table)
    on_all = duration(shared([seconds for _, _, seconds in runs], workers))
    console.print(f"{len(runs)} runs, {duration(total)} on one core, {on_all} on {workers}.")


def _described(experiment: Experiment) -> str:
    model, data = experiment.model, experiment.data
    extra = {**model.settings, **({"stride": data.stride} if data.stride else {})}
    text = " ".join(f"{key}={value}" for key, value in extra.items())
    preset = "" if model.preset == "paper" else f" {model.preset}"
    return f"{model.name}{preset} {text}".strip()


class Display:
    """One table of all runs: a number where one is done, a share where one is running.

    On a terminal it is live; elsewhere a line is printed for each run that ends.
    """

    def __init__(
        self,
        tables: "Sequence[tuple[Study, Sequence[Cell]]]",
        results: "Results",
        cost: "RunSeconds | None",
        workers: int,
        console: Console,
    ) -> None:
        self.tables, self.results, self.console = tables, results, console
        self.cost, self.workers = cost or (lambda experiment: 1.0), workers
        self.live = Live(console=console, refresh_per_second=2)
        self.drawn, self.reported = 0.0, set[str]()

    def __enter__(self) -> "Display":
        if self.console.is_terminal:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.live.stop()

    def update(self, state: "RunnerState") -> None:
        """Draw it again, at most twice per second."""
        if not self.console.is_terminal:
            for name, seconds in state.seconds.items():
                if name not in self.reported:
                    self.reported.add(name)
                    waiting = len(state.waiting) + len(state.claimed)
                    remaining = f"{len(state.step)} at work, {waiting} waiting"
                    line = f"{name}: done in {duration(seconds)}; {remaining}"
                    self.console.print(line, soft_wrap=True)
        elif time.monotonic() - self.drawn > 0.5 or not state.step:
            self.drawn = time.monotonic()
            tables = [self._table(study, cells, state) for study, cells in self.tables]
            self.live.update(Group(*tables, self._summary(state)))

    def _summary(self, state: "RunnerState") -> str:
        """How many runs, and how much time is left: as expected, corrected by what was needed."""
        from sfo.experiments.selection import runs_after_trials

        expected = sum(self.cost(state.started[name].experiment) for name in state.seconds)
        slowness = sum(state.seconds.values()) / expected if expected else None
        runs = [job.experiment for job in state.waiting]
        runs += runs_after_trials(self.tables, self.results)
        left = sum(map(self.cost, runs))
        for name, (step, steps) in state.step.items():
            left += self.cost(state.started[name].experiment) * (1 - step / steps)
        remaining = (
            "" if slowness is None else f", about {duration(slowness * left / self.workers)} left"
        )
        count = len(runs) + len(state.step)
        done, running = len(state.seconds), len(state.step)
        return f"{done} runs done now, {running} at work, {count} to do{remaining}"

    def _table(self, study: "Study", cells: "Sequence[Cell]", state: "RunnerState") -> Table:
        from sfo.experiments.study import columns, rows

        table = Table("", *columns(cells), title=study.title)
        by_place = {(cell.row, cell.column): cell for cell in cells}
        for row in rows(cells):
            texts = [
                self._text(by_place[row, column], state) if (row, column) in by_place else ""
                for column in columns(cells)
            ]
            table.add_row(row, *texts)
        return table

    def _text(self, cell: "Cell", state: "RunnerState") -> str:
        """Mean of the seeds that are done, and how far the one at work is."""
        from sfo.experiments.results import name

        runs = cell.runs(self.results)
        found = [r for run in runs if (r := self.results.record(run)) is not None]
        texts = []
        if found:
            mean = sum(record.errors.percent for record in found) / len(found)
            texts.append(f"{mean:.3g}" + (f" ({len(found)})" if cell.seeds > 1 else ""))
        at_work = [state.step[n] for e in runs or cell.trials() if (n := name(e)) in state.step]
        texts += [f"{100 * step // steps} %" for step, steps in at_work]
        if not texts and any(self.results.failure(run) for run in runs):
            return "failed"
        return " ".join(texts) or "·"


def duration(seconds: float) -> str:
    """As hours and minutes, or minutes and seconds."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d}" if hours else f"{minutes}:{seconds:02d}"


def report(
    folders: Annotated[list[Path], tyro.conf.Positional] = [Path("results/desk")],  # noqa: B006
    out: Path | None = None,
) -> None:
    """Write a report, report.html, report.md and figures: of results, or of runs side by side.

    For example:
    $ sfo report results/desk
    $ sfo report runs/sfo runs/fno
    $ sfo report runs --out comparison

    Args:
        folders: A folder of results that `sfo reproduce` wrote, or folders of runs that
            `sfo train` wrote, which are compared.
        out: Folder for the files; if left out, the folder itself, or ./report for several.
    """
    from sfo.report.build import write

    for path in write(*folders, out=out):
        print(path)
