"""The cores or devices of this machine: worker processes, one thread each."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from sfo import plugins
from sfo.experiments.engines.engine import Event
from sfo.experiments.results import Results, name
from sfo.experiments.worker import Job
from sfo.machine import usable_cores
from sfo.training.devices import Devices

ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}

Events = queue.Queue[tuple["Worker", dict[str, Any]]]


class Worker:
    """A worker process, and its current run.

    Args:
        number: The number of the worker, in the name of its log.
        results: The folder in which it keeps what it measures.
        devices: The devices that workers take in turn, by their numbers.
        events: The queue at which its events arrive, as (worker, event).
    """

    def __init__(self, number: int, results: Results, devices: Devices, events: Events) -> None:
        # Of this runner's own: another one may be at work in the same folder.
        log = results.folder / "runs" / f"worker-{os.getpid()}-{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        self.number, self.log = number, log
        self.job: Job | None = None
        command = [sys.executable, "-m", "sfo.experiments.worker", str(results), devices.kind]
        with log.open("a") as stderr:
            self.process = subprocess.Popen(
                [*command, *plugins.loaded()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                env={**os.environ, **ONE_THREAD, **devices.environment(number)},
                # Ctrl-C is for the runner, which then asks its workers to stop.
                start_new_session=True,
            )

        def listen() -> None:
            for line in self.process.stdout or ():
                with suppress(ValueError):  # It has died in the middle of the line.
                    events.put((self, json.loads(line)))
            events.put((self, {"event": "died"}))

        threading.Thread(target=listen, daemon=True).start()

    def send(self, job: Job) -> None:
        """Let it begin."""
        self.job = job
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # It has died; that is about to be reported.
            self.process.stdin.write(job.to_json() + "\n")
            self.process.stdin.flush()

    def wait(self, timeout: float = 60.0) -> None:
        """For its end, once it was asked to finish its step and save."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        # What it had to say is of no use unless it failed.
        with suppress(FileNotFoundError):
            if not self.log.stat().st_size:
                self.log.unlink()


class LocalEngine:
    """Jobs on this machine.

    Args:
        results: The folder for the Records.
        workers: Most jobs at a time; None: one for each device or core.
        devices: What the jobs compute on.
    """

    def __init__(self, results: Results, workers: int | None, devices: Devices) -> None:
        self.results, self.devices = results, devices
        self.workers = workers or devices.count() or usable_cores()
        self.pool: list[Worker] = []
        self.events: Events = queue.Queue()

    def slots(self) -> int:
        """How many jobs it takes at a time."""
        return self.workers

    def submit(self, jobs: Sequence[Job]) -> None:
        """Give each job to a worker that waits, or to a new one."""
        for job in jobs:
            worker = next((w for w in self.pool if w.job is None), None)
            if worker is None:
                taken = {w.number for w in self.pool}
                number = next(k for k in range(len(taken) + 1) if k not in taken)
                worker = Worker(number, self.results, self.devices, self.events)
                self.pool.append(worker)
            worker.send(job)

    def next_event(self, timeout: float) -> Event | None:
        """What a worker has to say."""
        try:
            worker, event = self.events.get(timeout=timeout)
        except queue.Empty:
            return None
        if event["event"] == "died":
            worker.wait()
            self.pool.remove(worker)
            event["why"] = f"its worker ended without an answer (log: {worker.log})"
        if worker.job is None:
            return None
        run = name(worker.job.experiment)
        if event["event"] != "step":
            worker.job = None
        return run, event

    def close(self) -> None:
        """Let the workers finish their step and save."""
        for worker in self.pool:
            worker.process.terminate()
        for worker in self.pool:
            worker.wait()
