"""What an engine is, and how one is chosen by name."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, Protocol

from sfo.checks import install_command
from sfo.experiments.results import Results
from sfo.experiments.worker import Job
from sfo.training.devices import Devices

EngineName = Literal["local", "slurm", "ray"]

Event = tuple[str, dict[str, Any]]
"""The name of a run, and what happened to it.

The entry `event` is "step" (with `step` and `steps`), one of those that `attempt` gives, or
"died" (with `why`) for a worker that ended without an answer.
"""


class Engine(Protocol):
    """Does jobs somewhere, each in a process with one device."""

    def slots(self) -> int:
        """How many jobs it takes at a time."""

    def submit(self, jobs: Sequence[Job]) -> None:
        """Take jobs, as many as there are free slots at most."""

    def next_event(self, timeout: float) -> Event | None:
        """The next event, or None after `timeout` seconds."""

    def close(self) -> None:
        """End the jobs at work, saved where that can be, and free what was held."""


def make_engine(
    name: EngineName,
    results: Results,
    *,
    workers: int | None = None,
    devices: Devices | None = None,
    address: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Engine:
    """The engine of a name.

    Args:
        name: "local", "slurm" or "ray".
        results: The folder for the Records.
        workers: Most jobs at a time; None: as many as there are devices, cores or nodes.
        devices: What each job computes on, in turn; None: as Fabric chooses.
        address: Address of a Ray cluster; of Slurm, "local" stands for processes of this machine.
        options: Options of sbatch, as submitit names them.
    """
    devices = devices or Devices("auto")
    if name == "local":
        from sfo.experiments.engines.local import LocalEngine

        if address is not None:
            raise ValueError(f"`address` is for --engine ray and slurm, got {address!r} for local.")
        return LocalEngine(results, workers, devices)
    if name == "slurm":
        check_installed("slurm", "submitit")
        from sfo.experiments.engines.slurm import SlurmEngine

        return SlurmEngine(results, workers, devices, address, options or {})
    if name == "ray":
        check_installed("ray", "ray")
        from sfo.experiments.engines.ray import RayEngine

        return RayEngine(results, workers, devices, address)
    raise ValueError(f"`engine` must be local, slurm or ray, got {name!r}.")


def check_installed(extra: str, module: str) -> None:
    """Refuse an engine whose package is not there."""
    try:
        import_module(module)
    except ImportError:
        raise ValueError(
            f"The engine {extra} needs {module}, which is not installed: "
            f"{install_command(extra)} brings it."
        ) from None
