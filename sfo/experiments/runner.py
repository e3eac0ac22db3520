"""The runner: many runs on one engine, resumed after a kill.

It keeps no list of its own. What is to be done follows, again and again, from the studies and
the Records that are there; so a kill at any moment loses at most the steps since a checkpoint,
and several runners may share a folder.
"""

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from sfo.data.benchmarks import ScaleName
from sfo.experiments.engines import Engine, Event, make_engine
from sfo.experiments.results import Results, name
from sfo.experiments.study import Cell, Study
from sfo.experiments.worker import Job
from sfo.files import is_full
from sfo.training.config import Experiment
from sfo.training.signals import Stopped


def plan(studies: Sequence[tuple[Study, list[Cell]]], results: Results) -> list[Job]:
    """What is to be done now, each run once, first seeds first; trials come before their runs."""
    jobs: dict[str, Job] = {}

    def add(experiment: Experiment, analyses: tuple[str, ...] = (), keep: bool = True) -> None:
        known = jobs.get(name(experiment), Job(experiment, (), False))
        both = tuple(dict.fromkeys((*known.analyses, *analyses)))
        jobs[name(experiment)] = Job(experiment, both, known.keep or keep)

    for study, cells in studies:
        for cell in cells:
            runs = cell.runs(results)
            if not runs:
                for trial in cell.trials():
                    add(trial, keep=False)
            for run in runs:
                add(run, study.analyses)
    open_jobs = [job for job in jobs.values() if not job.done(results)]
    return sorted(open_jobs, key=lambda job: job.experiment.seed)


@dataclass
class RunnerState:
    """How far the runner is, as a display shows it.

    Args:
        started: The runs that were started now, by name.
        step: Step and steps of each run at work.
        seconds: That each finished run took.
        failed: Why a run failed, or that its worker did.
        waiting: Runs that are yet to begin; trials may bring more.
        claimed: Runs that other processes have claimed, and the time at which to try again.
        deaths: How often the worker of a run has died.
    """

    started: dict[str, Job] = field(default_factory=dict)
    step: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    waiting: list[Job] = field(default_factory=list)
    claimed: dict[str, float] = field(default_factory=dict)
    deaths: Counter[str] = field(default_factory=Counter)


ATTEMPTS = 3
"""Times that a run is started whose worker dies: it might kill every worker."""
PAUSE = 1.0
"""Seconds after which a run that another process has claimed is tried again."""


def reproduce(
    studies: Sequence[Study],
    results: Results,
    *,
    scale: ScaleName = "desk",
    seeds: int = 1,
    workers: int | None = None,
    cost: Callable[[Experiment], float] | None = None,
    include: Callable[[Cell], bool] = lambda cell: True,
    progress: Callable[[RunnerState], None] = lambda progress: None,
    engine: Engine | None = None,
) -> RunnerState:
    """Do all that the studies still lack; other runners may be at the same.

    Args:
        studies: The studies to complete.
        results: The folder for the Records; what is there already is not done again.
        scale: ScaleName of data and training.
        seeds: Number of runs of each cell.
        workers: Number of worker processes; None: one for each core.
        cost: Expected seconds of a run: of the same seed, the cheap ones come first.
        include: Whether a cell is to be computed.
        progress: Called after every event.
        engine: Where the runs are done; None: in processes of this machine.
    """
    problems = results.problems()
    if problems:
        raise ValueError(
            f"{len(problems)} of the results in {results} cannot be trusted, the first: "
            f"{problems[0]} Move such files away, then run it again."
        )
    tables = [(s, [c for c in s.cells(scale, seeds) if include(c)]) for s in studies]
    results.check_writable()
    state = RunnerState()
    with _terminated_like_ctrl_c():
        engine = engine or make_engine("local", results, workers=workers)
        try:
            while True:
                jobs = plan(tables, results)
                _submit_next(jobs, engine, results, state, cost)
                progress(state)
                if not state.step and not state.waiting and not state.claimed:
                    return state
                while not _handle(engine.next_event(PAUSE), state, results):
                    progress(state)
        except OSError as error:
            if not is_full(error):
                raise
            raise _full(f"{error.strerror}: {error.filename or results}") from error
        finally:
            engine.close()


def _submit_next(
    jobs: list[Job],
    engine: Engine,
    results: Results,
    state: RunnerState,
    cost: Callable[[Experiment], float] | None,
) -> None:
    """Give the engine as many of the open jobs as it takes, but none that others have claimed."""
    now = time.monotonic()
    open_runs = {name(job.experiment) for job in jobs}
    state.claimed = {n: t for n, t in state.claimed.items() if n in open_runs and t > now}
    busy = {*state.step, *state.failed, *state.claimed}
    state.waiting = _sorted([job for job in jobs if name(job.experiment) not in busy], cost)
    free = engine.slots() - len(state.step)
    chosen: list[Job] = []
    for job in list(state.waiting):
        if len(chosen) >= free:
            break
        state.waiting.remove(job)
        if results.is_claimed(job.experiment):
            state.claimed[name(job.experiment)] = now + PAUSE
            continue
        chosen.append(job)
        state.started[name(job.experiment)] = job
        state.step[name(job.experiment)] = (0, 1)
    engine.submit(chosen)


def _handle(received: Event | None, state: RunnerState, results: Results) -> bool:
    """Note an event; true if there may be something to begin now."""
    if received is None:
        return bool(state.claimed)
    run, event = received
    match event["event"]:
        case "step":
            state.step[run] = (event["step"], event["steps"])
            return False
        case "done":
            state.seconds[run] = event["seconds"]
        case "taken":
            state.claimed[run] = time.monotonic() + PAUSE
        case "failed":
            state.failed[run] = event["why"]
        case "stopped" if event.get("full"):
            raise _full(event["why"])
        case "stopped":
            state.failed[run] = f"{event['why'].rstrip('.')}; the same command continues from here"
        case "died":
            state.deaths[run] += 1
            if state.deaths[run] == ATTEMPTS:
                state.failed[run] = (
                    f"{event['why']}, {ATTEMPTS} times; the same command continues from its last "
                    "checkpoint"
                )
    results.take(event.get("files", {}))
    del state.step[run]
    return True


def _full(why: str) -> ValueError:
    """What ends all runs at once: none of them could keep what it computes."""
    return ValueError(
        f"{why}; the runs are stopped. Make room or choose another folder with --out, for the data "
        "with $SFO_DATA; the same command continues from here."
    )


def _sorted(jobs: list[Job], cost: Callable[[Experiment], float] | None) -> list[Job]:
    if cost is None:
        return jobs
    return sorted(jobs, key=lambda job: (job.experiment.seed, cost(job.experiment)))


@contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """SIGTERM too lets the workers finish their step and save; another one ends this at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        raise Stopped(number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
