"""Commands about studies: reproduce and report."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from sfo.commands.console import plain_console
from sfo.training.config import Experiment

Names = Annotated[list[str], tyro.conf.Positional]


def reproduce(
    study: Names,
    scale: Literal["smoke", "desk", "paper"] = "desk",
    out: Path | None = None,
    seeds: int = 1,
    workers: int | None = None,
    benchmark: list[str] = [],  # noqa: B006
    column: list[str] = [],  # noqa: B006
    dry_run: bool = False,
    retry: bool = False,
) -> None:
    """Compute tables and figures of the paper; what is there already is not done again.

    It may be stopped or killed at any moment; the same command goes on.

    Examples:
    sfo reproduce main --scale smoke
    sfo reproduce main basis rank --seeds 3 --benchmark allen_cahn
    sfo reproduce main --dry-run
    sfo report results/desk

    Args:
        study: Which: main, main-adam, pareto, data, fixed, params, runtime, seconds, basis, glu,
            index, rank, width, tune, coefficients, subsample, zero-shot, boundary, design, or all
            of them: all.
        scale: Size of the data and length of the training.
        out: Folder for the Records; if left out, results/SCALE.
        seeds: Runs of each cell. One seed for every cell comes first, then the others.
        workers: Runs at a time, one thread each; as many as there are cores if left out.
        benchmark: Only these rows.
        column: Only these columns.
        dry_run: List the runs and how long they will take, and do nothing.
        retry: Try runs again that have failed.
    """
    from sfo.allocator import keep_freed_blocks
    from sfo.experiments.estimate import Estimates
    from sfo.experiments.measurements import MEASUREMENTS
    from sfo.experiments.results import Results
    from sfo.experiments.runner import plan
    from sfo.experiments.runner import reproduce as run
    from sfo.experiments.studies import MAIN_MODELS, STUDIES
    from sfo.experiments.study import Cell, as_study
    from sfo.models.build import installed

    console = plain_console()
    known = [*STUDIES.names(), *MEASUREMENTS.names()]
    wanted = known if study == ["all"] else study
    if not wanted:
        raise ValueError(f"Name a study: {', '.join(sorted(known))}, or all.")
    for name in wanted:
        if name not in known:
            raise ValueError(f"Unknown study {name!r}; known: {', '.join(sorted(known))}, all.")
    if seeds < 1:
        raise ValueError(f"`seeds` must be at least 1, got {seeds}.")
    if workers is not None and workers < 1:
        raise ValueError(
            f"`workers` must be at least 1, got {workers}; left out: one for each core."
        )
    results = Results(out or Path("results") / scale)
    studies = [as_study(name) for name in wanted if name in STUDIES]
    _check_names(studies, scale, "benchmark", benchmark, lambda cell: cell.row)
    _check_names(studies, scale, "column", column, lambda cell: cell.column)

    def chosen(cell: Cell) -> bool:
        return (not benchmark or cell.row in benchmark) and (not column or cell.column in column)

    def only(cell: Cell) -> bool:
        return chosen(cell) and installed(cell.experiment.model.name)

    cells = [cell for study in studies for cell in study.cells(scale, 1) if chosen(cell)]
    models = [cell.experiment.model.name for cell in cells]
    measured = [name for name in wanted if name in MEASUREMENTS]
    if any(results.table(name) is None for name in measured):
        models += [model for model, _ in MAIN_MODELS.values()]
    for peer in dict.fromkeys(m for m in models if not installed(m)):
        line = f"{peer} is left out: pip install 'sfo-torch[peers]' brings it."
        console.print(line, soft_wrap=True)

    keep_freed_blocks()  # Steps are timed here as the workers take them.
    tables = [(s, [c for c in s.cells(scale, seeds) if only(c)]) for s in studies]
    estimates, cores = Estimates(), workers or os.cpu_count() or 1
    if dry_run:
        with console.status("measuring a step of each model"):
            _list_runs(plan(tables, results), tables, results, estimates, cores, console)
        return
    if retry:
        results.forget_failures()
    for name in measured:
        if results.table(name) is None or MEASUREMENTS[name].grows:
            with console.status(name) as status:
                values = MEASUREMENTS[name].measure(scale, status.update, results)
            results.keep_table(name, values)
        else:
            line = (
                f"{name} is there already; delete {results.table_path(name)} to measure it again."
            )
            console.print(line, soft_wrap=True)
    if studies:
        # Runs of seconds are in no need of an order.
        cost = None if scale == "smoke" else estimates.seconds
        with Display(tables, results, cost, cores, console) as display:
            state = run(
                studies,
                results,
                scale=scale,
                seeds=seeds,
                workers=cores,
                cost=cost,
                only=only,
                progress=display.update,
            )
        for failed, why in state.failed.items():
            console.print(f"{failed} failed: {why}", style="red", soft_wrap=True)
        if state.failed:
            sys.exit(1)
    console.print(f"Records: {results}. Report: sfo report {results}", soft_wrap=True)


def _check_names(
    studies: Sequence[Any], scale: str, kind: str, given: Sequence[str], of: Callable[[Any], str]
) -> None:
    known = list(dict.fromkeys(of(cell) for s in studies for cell in s.cells(scale, 1)))
    for name in given:
        if name not in known:
            raise ValueError(f"`{kind}` must be some of {', '.join(known)}, got {name!r}.")


def _list_runs(
    jobs: Sequence[Any],
    tables: Sequence[Any],
    results: Any,
    estimates: Any,
    workers: int,
    console: Console,
) -> None:
    """What would be done, and how long it would take."""
    table = Table("", "benchmark", "model", "seed", "epochs", "expected")
    total = 0.0
    rows: list[tuple[str, Experiment]] = [
        ("run" if job.keep else "trial", job.experiment) for job in jobs
    ]
    rows += [("run", run) for run in _after_trials(tables, results)]
    for kind, experiment in rows:
        seconds = estimates.seconds(experiment)
        total += seconds
        table.add_row(
            kind,
            experiment.data.benchmark,
            _described(experiment),
            str(experiment.seed),
            str(experiment.train.epochs),
            duration(seconds),
        )
    console.print(table)
    shared = duration(total / workers)
    console.print(f"{len(rows)} runs, {duration(total)} on one core, {shared} on {workers}.")


def _after_trials(tables: Sequence[Any], results: Any) -> Iterable[Experiment]:
    """Runs whose protocol is not yet chosen: as long as any protocol has them."""
    from sfo.experiments.study import with_changes

    for _, cells in tables:
        for cell in cells:
            if cell.tuned and not cell.runs(results):
                for k in range(cell.seeds):
                    yield with_changes(cell.experiment, seed=cell.experiment.seed + k)


def _described(experiment: Experiment) -> str:
    model, data = experiment.model, experiment.data
    extra = {**model.settings, **({"stride": data.stride} if data.stride else {})}
    text = " ".join(f"{key}={value}" for key, value in extra.items())
    preset = "" if model.preset == "paper" else f" {model.preset}"
    return f"{model.name}{preset} {text}".strip()


class Display:
    """One table of all runs: a number where one is done, a share where one is at work.

    On a terminal it is live; elsewhere a line is printed for each run that ends.
    """

    def __init__(
        self,
        tables: Sequence[tuple[Any, Sequence[Any]]],
        results: Any,
        cost: Callable[[Experiment], float] | None,
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

    def update(self, state: Any) -> None:
        """Draw it again, at most twice a second."""
        if not self.console.is_terminal:
            for name, seconds in state.seconds.items():
                if name not in self.reported:
                    self.reported.add(name)
                    rest = f"{len(state.step)} at work, {len(state.waiting)} waiting"
                    line = f"{name}: done in {duration(seconds)}; {rest}"
                    self.console.print(line, soft_wrap=True)
        elif time.monotonic() - self.drawn > 0.5 or not state.step:
            self.drawn = time.monotonic()
            tables = [self._table(study, cells, state) for study, cells in self.tables]
            self.live.update(Group(*tables, self._summary(state)))

    def _summary(self, state: Any) -> str:
        """How many runs, and how much time is left: as expected, corrected by what was needed."""
        expected = sum(self.cost(state.begun[name].experiment) for name in state.seconds)
        pace = sum(state.seconds.values()) / expected if expected else None
        runs = [job.experiment for job in state.waiting]
        runs += _after_trials(self.tables, self.results)
        left = sum(map(self.cost, runs))
        for name, (step, steps) in state.step.items():
            left += self.cost(state.begun[name].experiment) * (1 - step / steps)
        rest = "" if pace is None else f", about {duration(pace * left / self.workers)} left"
        count = len(runs) + len(state.step)
        return f"{len(state.seconds)} runs done now, {len(state.step)} at work, {count} to do{rest}"

    def _table(self, study: Any, cells: Sequence[Any], state: Any) -> Table:
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

    def _text(self, cell: Any, state: Any) -> str:
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
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d}" if hours else f"{minutes}:{rest:02d}"


def report(
    folders: Annotated[list[Path], tyro.conf.Positional] = [Path("results/desk")],  # noqa: B006
    out: Path | None = None,
) -> None:
    """Write a report, report.html, report.md and figures: of results, or of runs side by side.

    Examples:
    sfo report results/desk
    sfo report runs/sfo runs/fno
    sfo report runs --out comparison

    Args:
        folders: A folder of results, as `sfo reproduce` has left it; or run folders, as
            `sfo train` has left them, which are compared.
        out: Where the files go; if left out, into the folder itself, or into ./report if there
            are several.
    """
    from sfo.report.build import write

    for path in write(*folders, out=out):
        print(path)
