"""A Ray cluster: one task per job, on any node, retried when a worker or a node is lost.

No disk need be shared. A task works in a folder of its node and sends back the bytes of the
Record; data are generated on each node, once, from the seed. Where the nodes do share that folder,
a task that is retried continues from the checkpoint of the one that was lost.
"""

import json
import logging
import os
import shutil
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import sfo
from sfo import plugins
from sfo.data.load import data_folder
from sfo.experiments.engines.engine import Event
from sfo.experiments.engines.grpc import answers_grpc
from sfo.experiments.engines.job import perform
from sfo.experiments.engines.local import ONE_THREAD
from sfo.experiments.results import AlreadyClaimed, Results, name
from sfo.experiments.worker import Job
from sfo.training.devices import Devices

RETRIES = 3
"""Times that Ray begins a task again whose worker or node was lost."""
CLUSTER_TIMEOUT = 10
"""Seconds in which a cluster must answer."""
QUEUED_PER_CORE = 2
"""Tasks per core of the cluster that wait in Ray's own queue."""


def scratch() -> Path:
    """Where a node works: $SFO_SCRATCH, or a folder beside the data."""
    return Path(os.environ.get("SFO_SCRATCH") or data_folder().parent / "scratch")


def run_remotely(job: str, **options: Any) -> bytes:
    """The task: `perform` in the node's own folder, which is left as it was."""
    results = Results(scratch())
    # Whoever was lost may take a moment to go; another study may have the same run.
    answer = perform(job, str(results), wait=-1, **options)
    experiment = Job.from_json(job).experiment
    with suppress(AlreadyClaimed), results.claimed(experiment):
        for path in results.files(experiment):
            (results.folder / path).unlink(missing_ok=True)
        shutil.rmtree(results.run_folder(experiment), ignore_errors=True)
    return answer


def take(results: Results, run: str, files: dict[str, str]) -> None:
    """Write what a node has sent and not kept: where it cannot be, into a folder of its own."""
    try:
        results.take(files)
    except OSError as error:
        kept = Results(tempfile.mkdtemp(prefix="sfo-results-"))
        kept.take(files)
        why = f"{error.strerror} for the Record of {run}, kept in {kept} to be copied to"
        raise OSError(error.errno, why, str(results)) from error


class RayEngine:
    """Jobs on a Ray cluster.

    Args:
        results: The folder for the Records, on this machine.
        workers: Most jobs at a time; None: as the cluster has room.
        devices: What the jobs compute on; each is given one GPU if that is "cuda".
        address: Address of the cluster, such as 10.0.0.1:6379, ray://10.0.0.1:10001 or auto;
            None: a cluster of this machine alone, for this command.
    """

    def __init__(
        self, results: Results, workers: int | None, devices: Devices, address: str | None
    ) -> None:
        import ray

        self.ray, self.results, self.workers = ray, results, workers
        self.options: dict[str, Any] = dict(
            plugins=plugins.loaded(), accelerator=devices.kind, version=sfo.__version__
        )
        self.owns = not ray.is_initialized()
        if self.owns:
            _connect(ray, address, workers)
        if devices.kind == "cuda" and not ray.cluster_resources().get("GPU"):
            self._leave()
            raise ValueError(
                "`accelerator` must be one that the Ray cluster has, got cuda, and `ray status` "
                "lists no GPU; begin a node that has one, or leave --accelerator out."
            )
        self.task = ray.remote(run_remotely).options(
            num_cpus=1,
            num_gpus=1 if devices.kind == "cuda" else 0,
            max_retries=RETRIES,
            runtime_env={"env_vars": ONE_THREAD},
        )
        self.jobs: dict[Any, tuple[Job, ExitStack]] = {}
        self.taken: list[str] = []

    def slots(self) -> int:
        """As many as are asked for, or some more than the cluster has cores now."""
        return self.workers or QUEUED_PER_CORE * max(
            1, int(self.ray.cluster_resources().get("CPU", 1))
        )

    def submit(self, jobs: Sequence[Job]) -> None:
        """Submit a task for each job, which this process holds: no node can."""
        for job in jobs:
            held = ExitStack()
            try:
                held.enter_context(self.results.claimed(job.experiment))
            except AlreadyClaimed:
                self.taken.append(name(job.experiment))
                continue
            self.jobs[self.task.remote(job.to_json(), **self.options)] = job, held

    def next_event(self, timeout: float) -> Event | None:
        """The end of a task."""
        if self.taken:
            return self.taken.pop(), dict(event="taken")
        if not self.jobs:
            time.sleep(timeout)
            return None
        ready, _ = self.ray.wait(list(self.jobs), timeout=timeout)
        if not ready:
            return None
        job, held = self.jobs.pop(ready[0])
        try:
            event = json.loads(self.ray.get(ready[0]))
        except self.ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            event = dict(event="died", why=f"its task was lost ({reason:.200})")
        with held:  # Whoever looks next must find the Record.
            take(self.results, name(job.experiment), event.get("files", {}))
        return name(job.experiment), event

    def close(self) -> None:
        """Cancel what is not done, and leave the cluster."""
        for task, (_, held) in self.jobs.items():
            self.ray.cancel(task, force=True)
            held.close()
        self.jobs.clear()
        self._leave()

    def _leave(self) -> None:
        if self.owns:
            self.ray.shutdown()


def _connect(ray: Any, address: str | None, workers: int | None) -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet: dict[str, Any] = dict(log_to_driver=False, logging_level=logging.ERROR)
    if address is None:
        try:
            ray.init(num_cpus=workers, include_dashboard=False, **quiet)
        except Exception as error:  # Of no type of its own where a process of Ray is slow to start.
            raise ValueError(
                f"Ray could not start a cluster of this machine: {_first_line(error)} The same "
                "command may be given again."
            ) from error
        return
    _check_answers(address)
    with tempfile.TemporaryFile() as said:
        try:
            with warnings.catch_warnings(), _errors_to(said):
                warnings.simplefilter("ignore")  # Said below, in a sentence.
                ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            said.seek(0)
            if b"AuthToken" in said.read() + str(error).encode():
                raise ValueError(
                    f"The Ray cluster at {address} asks for its token: copy ~/.ray/auth_token of "
                    "its head to the same place here, and set RAY_AUTH_MODE=token."
                ) from error
            raise ValueError(f"{_no_cluster(address)} Ray says: {_first_line(error)}") from error


@contextmanager
def _errors_to(file: IO[bytes]) -> Iterator[None]:
    """Keep what the process, its C++ parts too, prints as errors meanwhile."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)


def _check_answers(address: str) -> None:
    """Ask the port first: Ray itself would try for minutes, and say so each second.

    Where Ray is told to encrypt, it is enough that somebody is there.
    """
    if address in ("auto", "local"):
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ValueError(f"`address` must be HOST:PORT, ray://HOST:PORT or auto, got {address!r}.")
    try:
        with socket.create_connection((host, int(port)), timeout=CLUSTER_TIMEOUT) as there:
            is_encrypted = os.environ.get("RAY_USE_TLS", "0") not in ("", "0")
            is_ray = is_encrypted or answers_grpc(there, host, CLUSTER_TIMEOUT)
    except (OSError, OverflowError) as error:
        raise ValueError(f"{_no_cluster(address)} ({_first_line(error)})") from error
    if not is_ray:
        raise ValueError(f"{_no_cluster(address)} (Something else does.)")


def _no_cluster(address: str) -> str:
    return (
        f"No Ray cluster answers at {address}: start one with `ray start --head --port 6379`, or "
        "leave --address out for one of this machine."
    )


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
