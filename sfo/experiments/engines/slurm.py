"""Slurm through submitit: one array of jobs, each of which continues where it was preempted."""

import json
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

from sfo import plugins
from sfo.experiments.engines.engine import Event
from sfo.experiments.engines.job import perform
from sfo.experiments.engines.local import ONE_THREAD
from sfo.experiments.results import Results, name
from sfo.experiments.worker import Job
from sfo.training.devices import Devices
from sfo.training.signals import Stopped

MAX_ARRAY_SIZE = 1000
"""Jobs in one array: Slurm's usual limit."""
DEFAULT_MINUTES = 60
"""Minutes that a job is given if nothing is said; then it is requeued and continues."""


class Submission:
    """A job as submitit keeps it: called on the node, and called again after a preemption.

    Args:
        job: What `Job.to_json` wrote.
        folder: The folder of results, which all nodes must see.
        options: Further arguments of `perform`.
    """

    def __init__(self, job: str, folder: str, **options: Any) -> None:
        self.job, self.folder, self.options = job, folder, options

    def __call__(self) -> bytes:
        try:
            return perform(self.job, self.folder, **self.options)
        except Stopped as stop:
            # The run has finished its step and saved. Now submitit's own handler may have the
            # signal: it puts the job back into the queue.
            if stop.signal in (signal.SIGUSR1, signal.SIGUSR2):
                signal.raise_signal(stop.signal)
            raise

    def checkpoint(self) -> Any:
        """What to submit after a preemption: the same again."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class SlurmEngine:
    """Jobs on a Slurm cluster, whose nodes share the folder of results.

    Args:
        results: The folder for the Records.
        workers: Most jobs at a time; None: as many as Slurm starts.
        devices: What the jobs compute on; each is given one GPU if that is "cuda".
        address: "local" runs the jobs as processes of this machine; None: Slurm.
        options: Options of sbatch as submitit names them, such as timeout_min or slurm_partition.
    """

    def __init__(
        self,
        results: Results,
        workers: int | None,
        devices: Devices,
        address: str | None,
        options: Mapping[str, Any],
    ) -> None:
        import submitit

        if address not in (None, "local"):
            raise ValueError(f"`address` of the engine slurm must be 'local', got {address!r}.")
        if address is None and shutil.which("sbatch") is None:
            raise ValueError(
                "The engine slurm finds no `sbatch` here: run it on a login node of the cluster, "
                "or pass --address local to try it with processes of this machine."
            )
        self.results, self.devices = results, devices
        self.is_local = address == "local"
        self.workers = workers or (2 if self.is_local else MAX_ARRAY_SIZE)
        self.folder = results.folder.resolve() / "runs" / "slurm"
        self.executor = submitit.AutoExecutor(self.folder, cluster=address or "slurm")
        usual: dict[str, Any] = dict(name="sfo", timeout_min=DEFAULT_MINUTES, cpus_per_task=1)
        if devices.kind == "cuda":
            usual["gpus_per_node"] = 1
        if not self.is_local:
            usual |= dict(slurm_array_parallelism=self.workers)
            usual["slurm_setup"] = [f"export {key}={value}" for key, value in ONE_THREAD.items()]
        try:
            self.executor.update_parameters(**{**usual, **options})
        except (TypeError, ValueError, NameError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"submitit refuses the options {dict(options)}: {reason}") from error
        self.jobs: dict[str, Any] = {}
        self.ended: list[Event] = []

    def slots(self) -> int:
        """How many jobs it takes at a time: on Slurm a whole array, of which some wait."""
        return self.workers if self.is_local else MAX_ARRAY_SIZE

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit one array."""
        if not jobs:
            return
        options: dict[str, Any] = dict(plugins=plugins.loaded(), accelerator=self.devices.kind)
        folder = str(self.results.folder.resolve())
        submitted: dict[str, Any] = {}
        with self.executor.batch():
            for job in jobs:
                submission = Submission(job.to_json(), folder, **options)
                submitted[name(job.experiment)] = self.executor.submit(submission)
        # Afterwards: they are jobs only now, and none if submitit could not write them.
        self.jobs |= submitted

    def next_event(self, timeout: float) -> Event | None:
        """The end of a job."""
        deadline = time.monotonic() + timeout
        while True:
            for run, job in list(self.jobs.items()):
                if job.done():
                    del self.jobs[run]
                    return run, self._outcome(job)
            if time.monotonic() > deadline:
                return None
            time.sleep(0.1 if self.is_local else timeout)

    def _outcome(self, job: Any) -> dict[str, Any]:
        from submitit.core.utils import FailedJobError, UncompletedJobError

        log = job.paths.stderr
        try:
            return json.loads(job.result())
        except (FailedJobError, UncompletedJobError):
            if "CANCELLED" in job.state:
                return dict(event="stopped", why=f"its job {job.job_id} was cancelled")
            return dict(event="died", why=f"its job ended without an answer (log: {log})")

    def close(self) -> None:
        """Cancel what is still queued or running; the same command continues from there."""
        for job in self.jobs.values():
            job.cancel(check=False)
        if self.is_local:
            for job in self.jobs.values():
                job.wait()
