"""Slurm through submitit: one array of jobs, each of which continues where it was preempted."""

import json
import os
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
MAX_TIMEOUTS = 10_000
"""Times that a job is requeued at the end of its time. submitit's own limit is 3, but a run may
take days."""
SIGNAL_DELAY = 90
"""Seconds ahead of its end at which a job is told, submitit's default; and for which one that is
preempted by SIGTERM waits for that."""
PREEMPTED_SECONDS = 900
"""Seconds after which a job that was preempted and not queued again counts as lost."""


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
            # Slurm preempts with SIGTERM, and sends the other signal when it next looks at the
            # time that is left. Who ends before that is not queued again.
            if stop.signal == signal.SIGTERM and os.environ.get("SUBMITIT_EXECUTOR") == "slurm":
                time.sleep(SIGNAL_DELAY)
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
        cluster = address or "slurm"
        most: dict[str, int] = {f"{cluster}_max_num_timeout": MAX_TIMEOUTS}
        self.executor = submitit.AutoExecutor(self.folder, cluster=cluster, **most)
        usual: dict[str, Any] = dict(name="sfo", timeout_min=DEFAULT_MINUTES, cpus_per_task=1)
        if devices.kind == "cuda":
            usual["gpus_per_node"] = 1
        if not self.is_local:
            usual |= dict(slurm_array_parallelism=self.workers)
            usual["slurm_setup"] = [f"export {key}={value}" for key, value in ONE_THREAD.items()]
            usual["slurm_additional_parameters"] = dict(requeue=True)
        try:
            self.executor.update_parameters(**{**usual, **options})
        except (TypeError, ValueError, NameError) as error:
            reason = str(error).strip().splitlines()[0]
            raise ValueError(f"submitit refuses the options {dict(options)}: {reason}") from error
        self.jobs: dict[str, Any] = {}
        self.preempted: dict[str, float] = {}

    def slots(self) -> int:
        """How many jobs it takes at a time: on Slurm a whole array, of which some wait.

        Only an array keeps to a number of jobs at work, each by itself: so the next one comes when
        few are left of the one before.
        """
        return self.workers if self.is_local or self.jobs else MAX_ARRAY_SIZE

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit one array."""
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        if not jobs:
            return
        options: dict[str, Any] = dict(plugins=plugins.loaded(), accelerator=self.devices.kind)
        folder = str(self.results.folder.resolve())
        submitted: dict[str, Any] = {}
        try:
            with self.executor.batch():
                for job in jobs:
                    submission = Submission(job.to_json(), folder, **options)
                    submitted[name(job.experiment)] = self.executor.submit(submission)
        except (FailedJobError, FailedSubmissionError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise ValueError(
                f"Slurm refuses {len(jobs)} jobs ({reason}). Change their options with --slurm, or "
                "ask for fewer at once with --benchmark and --column."
            ) from error
        # Afterwards: they are jobs only now, and none if submitit could not write them.
        self.jobs |= submitted

    def next_event(self, timeout: float) -> Event | None:
        """The end of a job."""
        deadline = time.monotonic() + timeout
        while True:
            for run, job in list(self.jobs.items()):
                if (outcome := self._outcome(run, job)) is not None:
                    del self.jobs[run]
                    return run, outcome
            if time.monotonic() > deadline:
                return None
            time.sleep(0.1 if self.is_local else timeout)

    def _outcome(self, run: str, job: Any) -> dict[str, Any] | None:
        from submitit.core.utils import FailedJobError, UncompletedJobError

        if self._is_lost(run, job):
            return dict(event="died", why=f"its job {job.job_id} was preempted and not requeued")
        if not job.done():
            return None
        try:
            return json.loads(job.result())
        except (FailedJobError, UncompletedJobError):
            state, log = job.state, job.paths.stderr
            if "CANCELLED" in state:
                return dict(event="stopped", why=f"its job {job.job_id} was cancelled")
            how = "" if self.is_local else f", {state}"
            return dict(event="died", why=f"its job ended without an answer{how} (log: {log})")

    def _is_lost(self, run: str, job: Any) -> bool:
        """Whether a job was preempted for good; submitit thinks that all of them come back."""
        if self.is_local or job.watcher.get_state(job.job_id, mode="cache") != "PREEMPTED":
            self.preempted.pop(run, None)
            return False
        since = self.preempted.setdefault(run, time.monotonic())
        return time.monotonic() - since > PREEMPTED_SECONDS

    def close(self) -> None:
        """Cancel what is still queued or running; the same command continues from there."""
        for job in self.jobs.values():
            job.cancel(check=False)
        if self.is_local:
            for job in self.jobs.values():
                job.wait()
