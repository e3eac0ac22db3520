"""A process that trains one run after another, as the runner tells it.

    python -m sfo.experiments.worker RESULTS ACCELERATOR [PLUGIN …] < jobs > events

Each line of its input is a job, each line of its output an event, both in JSON. When its input
ends, so does it, whatever it is doing: no worker outlives its runner.
"""

import json
import os
import queue
import shutil
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any, Protocol, TextIO

from sfo import plugins
from sfo.experiments.record import Analysis, Record
from sfo.experiments.results import AlreadyClaimed, Results
from sfo.files import is_full
from sfo.training.config import Experiment

PAUSE = 0.5
"""Seconds between two reports of progress."""


@dataclass(frozen=True)
class Job:
    """A run to train, and what to find out about its model.

    Args:
        experiment: What to train.
        analyses: Names in `ANALYSES`.
        keep: Keep the best model's checkpoint, for analyses that are asked for later.
    """

    experiment: Experiment
    analyses: tuple[str, ...] = ()
    keep: bool = True

    def to_json(self) -> str:
        """One line."""
        entries = {**vars(self), "experiment": self.experiment.model_dump(mode="json")}
        return json.dumps(entries)

    @classmethod
    def from_json(cls, line: str) -> "Job":
        """What `to_json` wrote."""
        entries = json.loads(line)
        experiment = Experiment(**entries["experiment"])
        return cls(experiment, tuple(entries["analyses"]), entries["keep"])

    def done(self, results: Results) -> bool:
        """Whether all of it is in the results, or is known to fail."""
        if results.failure(self.experiment) is not None:
            return True
        kept = all(results.analysis(kind, self.experiment) for kind in self.analyses)
        return kept and results.record(self.experiment) is not None


class SendEvent(Protocol):
    """Is told an event by its name, with its values."""

    def __call__(self, event: str, **values: Any) -> None: ...


def attempt(
    job: Job, results: Results, send: SendEvent, accelerator: str = "auto", wait: float = 0.0
) -> dict[str, Any]:
    """Do a job, and say how it ended, in an event of plain values.

    done: The Record and the analyses are in the results.
    failed: The run cannot be done; that and why is in the results, so that it is not tried again.
    found: Another process has done it.
    taken: Another process has claimed it.
    stopped: Something else than the run is at fault, such as a device that is not there; `full`
        says that it is a disk that takes nothing more, so that all other runs would fail too.
    """
    from sfo.training.devices import Devices

    start = time.monotonic()
    try:
        Devices.of(accelerator)
    except ValueError as error:
        return dict(event="stopped", why=str(error))
    try:
        try:
            with results.claimed(job.experiment, wait):
                if job.done(results):
                    return dict(event="found")
                record = run_job(job, results, send, accelerator)
        except AlreadyClaimed:
            return dict(event="taken")
        except (ValueError, RuntimeError, MemoryError) as error:
            # A full disk says nothing about the run.
            if is_full(error.__cause__):
                return dict(event="stopped", why=str(error).split(". ")[0], full=True)
            if isinstance(error.__cause__, OSError):
                return dict(event="stopped", why=str(error))
            traceback.print_exc()
            why = str(error) or type(error).__name__
            results.keep_failure(job.experiment, why)
            return dict(event="failed", why=why)
    except OSError as error:
        traceback.print_exc()
        full = dict(full=True) if is_full(error) or is_full(error.__cause__) else {}
        if error.strerror is None:  # A sentence of our own, such as one about the data.
            return dict(event="stopped", why=str(error).split(". ")[0], **full)
        return dict(event="stopped", why=f"{error.strerror}: {error.filename or results}", **full)
    seconds = time.monotonic() - start
    return dict(event="done", percent=record.errors.percent, seconds=seconds)


def run_job(job: Job, results: Results, send: SendEvent, accelerator: str = "auto") -> Record:
    """Train, or continue training, and keep the Record and the analyses that are still missing."""
    from sfo.experiments.analyses import ANALYSES
    from sfo.experiments.run import run
    from sfo.training.fit import Status, load_best

    experiment, folder = job.experiment, results.run_folder(job.experiment)
    reported = 0.0

    def progress(status: Status) -> None:
        nonlocal reported
        if time.monotonic() - reported > PAUSE:
            reported = time.monotonic()
            send("step", step=status.step, steps=status.steps, left=status.seconds_left)

    record = results.record(experiment)
    missing = [kind for kind in job.analyses if results.analysis(kind, experiment) is None]
    finished = folder / "record.json"
    if record is None or (missing and not finished.exists()):
        # What is trained again is not finished, even if it once was.
        finished.unlink(missing_ok=True)
        again = run(
            experiment,
            folder,
            resume="auto",
            cost=False,
            picture=False,
            progress=progress,
            accelerator=accelerator,
        )
        if record is None:
            record = again
            results.keep(record)
    for kind in missing:
        model = load_best(folder)
        results.keep(Analysis(experiment, kind, ANALYSES[kind](experiment, model)))
    clean(job, results)
    return record


def clean(job: Job, results: Results) -> None:
    """Remove what a finished run no longer needs: checkpoints take far more room than Records."""
    from sfo.training import checkpoint

    folder = results.run_folder(job.experiment)
    if not job.keep:
        shutil.rmtree(folder, ignore_errors=True)
        return
    best = checkpoint.best(folder / "checkpoints")
    for path in (folder / "checkpoints").iterdir():
        # What somebody else has put there stays.
        if path != best and path.name.startswith(("step-", ".step-", ".best")):
            path.unlink()


def main(out: str, accelerator: str) -> None:
    """Work until the input ends."""
    events, lines = _event_stream(), queue.Queue[str]()

    def listen() -> None:
        for line in sys.stdin:
            lines.put(line)
        os._exit(1)

    def send(event: str, **values: Any) -> None:
        print(json.dumps({"event": event, **values}), file=events, flush=True)

    threading.Thread(target=listen, daemon=True).start()

    import torch

    from sfo.machine import keep_freed_blocks

    torch.set_num_threads(1)
    keep_freed_blocks()
    while True:
        job = Job.from_json(lines.get())
        try:
            send(**attempt(job, Results(out), send, accelerator))
        except SystemExit as stop:
            # At once: a thread that waits for input would hold up the usual end.
            os._exit(int(stop.code or 0))


def _event_stream() -> TextIO:
    """The output, for events alone: what anything else prints goes to the log."""
    events = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return events


if __name__ == "__main__":
    plugins.load_all(sys.argv[3:])
    main(sys.argv[1], sys.argv[2])
