"""A job where no runner is near: JSON in, and the bytes of what came of it out."""

import json
import socket
from collections.abc import Sequence
from typing import Any

import sfo
from sfo import plugins as users
from sfo.experiments.results import Results
from sfo.experiments.worker import Job, attempt


def perform(
    job: str,
    folder: str,
    *,
    plugins: Sequence[str] = (),
    accelerator: str = "auto",
    version: str = sfo.__version__,
    wait: float = 0.0,
) -> bytes:
    """Do a job, and give back its event with the files that it has left in the results.

    It may be done again, on any machine: what is finished in `folder` is found, what was begun
    continues from its checkpoint, and data that are not there are generated, once per folder.

    Args:
        job: What `Job.to_json` wrote.
        folder: A folder of results: the shared one, or one of this machine.
        plugins: The user's own modules that the job needs.
        accelerator: What to compute on.
        version: The version of the package that asks; another one might give other numbers.
        wait: Seconds to wait for another process at the same run; negative: until it ends.

    Returns:
        An event as `attempt` gives it, in JSON; the entry `files` has the text of the Record, the
        analyses or the failure, by their paths in the results.
    """
    if version != sfo.__version__:
        why = (
            f"sfo-torch is {sfo.__version__} where the job runs and {version} where it was asked "
            "for; install the same version everywhere"
        )
        return _encoded(dict(event="stopped", why=why))
    import torch

    from sfo.machine import keep_freed_blocks

    users.load_all(list(plugins))
    torch.set_num_threads(1)
    keep_freed_blocks()
    asked, results = Job.from_json(job), Results(folder)
    event = attempt(asked, results, quiet, accelerator, wait)
    if event["event"] == "stopped":
        event["why"] = f"{event['why'].rstrip('.')} (on {socket.gethostname()})"
    if event["event"] in ("done", "found", "failed"):
        event["files"] = results.files(asked.experiment)
    return _encoded(event)


def quiet(event: str, **values: Any) -> None:
    """Progress that nobody listens to."""


def _encoded(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode()
