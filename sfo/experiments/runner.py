"""The runner: many runs on the machine's cores, one thread each, resumed after a kill.

It keeps no list of its own. What is to be done follows, again and again, from the studies and
the Records that are there; so a kill at any moment loses at most the steps since a checkpoint.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from sfo import plugins
from sfo.data.benchmarks import ScaleName
from sfo.experiments.results import Results, name
from sfo.experiments.study import Cell, Study
from sfo.experiments.worker import Job
from sfo.files import locked
from sfo.machine import usable_cores
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
        begun: The runs that were begun now, by name.
        step: Step and steps of each run at work.
        seconds: That each finished run took.
        failed: Why a run failed, or that its worker did.
        waiting: Runs that are yet to begin; trials may bring more.
    """

    begun: dict[str, Job] = field(default_factory=dict)
    step: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    waiting: list[Job] = field(default_factory=list)


class Worker:
    """A worker process, and the run that it is at.

    Args:
        number: The number of the worker, in the name of its log.
        results: The folder in which it keeps what it measures.
        events: The queue at which its events arrive, as (worker, event).
    """

    def __init__(
        self, number: int, results: Results, events: "queue.Queue[tuple[Worker, dict[str, Any]]]"
    ) -> None:
        log = results.folder / "runs" / f"worker-{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log = log
        self.job: Job | None = None
        with log.open("a") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sfo.experiments.worker", str(results), *plugins.loaded()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **ONE_THREAD},
                # Ctrl-C is for the runner, which then asks its workers to stop.
                start_new_session=True,
            )

        def listen() -> None:
            for line in self.process.stdout or ():
                events.put((self, json.loads(line)))
            events.put((self, {"event": "died"}))

        threading.Thread(target=listen, daemon=True).start()

    def give(self, job: Job) -> None:
        """Let it begin."""
        self.job = job
        assert self.process.stdin is not None
        self.process.stdin.write(job.to_json() + "\n")
        self.process.stdin.flush()

    def wait(self, timeout: float = 60.0) -> None:
        """For its end, once it was asked to finish its step and save."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}


def reproduce(
    studies: Sequence[Study],
    results: Results,
    *,
    scale: ScaleName = "desk",
    seeds: int = 1,
    workers: int | None = None,
    cost: Callable[[Experiment], float] | None = None,
    only: Callable[[Cell], bool] = lambda cell: True,
    progress: Callable[[RunnerState], None] = lambda progress: None,
) -> RunnerState:
    """Do all that the studies still lack.

    Args:
        studies: The studies to complete.
        results: The folder for the Records; what is there already is not done again.
        scale: ScaleName of data and training.
        seeds: Number of runs of each cell.
        workers: Number of worker processes; None: one for each core.
        cost: Expected seconds of a run: of the same seed, the cheap ones come first.
        only: Whether to take a cell.
        progress: Called after every event.
    """
    problems = results.problems()
    if problems:
        raise ValueError(
            f"{len(problems)} of the results in {results} cannot be trusted, the first: "
            f"{problems[0]} Move such files away, then go on."
        )
    tables = [(s, [c for c in s.cells(scale, seeds) if only(c)]) for s in studies]
    state = RunnerState()
    with _alone(results), _terminated_like_ctrl_c():
        events: queue.Queue[tuple[Worker, dict[str, Any]]] = queue.Queue()
        pool: list[Worker] = []
        try:
            while True:
                jobs = plan(tables, results)
                # A run whose worker died is not begun again now: it might take the next one along.
                begun = {*state.step, *state.failed}
                state.waiting = _sorted([j for j in jobs if name(j.experiment) not in begun], cost)
                if not state.waiting and not state.step:
                    progress(state)
                    return state
                while state.waiting and len(state.step) < (workers or usable_cores()):
                    worker = next((w for w in pool if w.job is None), None)
                    if worker is None:
                        worker = Worker(len(pool), results, events)
                        pool.append(worker)
                    job = state.waiting.pop(0)
                    state.begun[name(job.experiment)] = job
                    state.step[name(job.experiment)] = (0, 1)
                    worker.give(job)
                progress(state)
                while not _take(*events.get(), state, pool):
                    progress(state)
        finally:
            for worker in pool:
                worker.process.terminate()
            for worker in pool:
                worker.wait()


def _take(worker: Worker, event: dict[str, Any], state: RunnerState, pool: list[Worker]) -> bool:
    """Note an event; true if it frees a place."""
    if event["event"] == "died":
        pool.remove(worker)
    if worker.job is None:
        return False
    run = name(worker.job.experiment)
    match event["event"]:
        case "step":
            state.step[run] = (event["step"], event["steps"])
            return False
        case "done":
            state.seconds[run] = event["seconds"]
        case "failed":
            state.failed[run] = event["why"]
        case "died":
            state.failed[run] = (
                f"its worker ended without an answer (log: {worker.log}); the same command goes on "
                "from its last checkpoint"
            )
    del state.step[run]
    worker.job = None
    return True


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


@contextmanager
def _alone(results: Results) -> Iterator[None]:
    """One runner per folder."""
    results.folder.mkdir(parents=True, exist_ok=True)
    busy = f"{results} is in use: another runner is at work there."
    with locked(results.folder / ".lock", timeout=2, busy=busy):
        yield
