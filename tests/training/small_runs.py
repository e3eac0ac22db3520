"""Small runs for the tests of training, here and in processes that can be killed."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import torch

from sfo.training import checkpoint
from sfo.training.config import Experiment
from sfo.training.fit import fit

HANGING = 240
"""Seconds after which a process hangs. It needs few; on a machine with other work, many more."""
SMALL = dict(hidden_channels=8, n_modes=4, n_layers=1)


def small(seed=0, **train):
    """20 samples of 64 points in batches of 8: three steps per epoch."""
    train = {"epochs": 3, **train}
    return Experiment.of("allen_cahn", scale="smoke", seed=seed, settings=SMALL, train=train)


def traces(folder):
    """The bytes of a run that must not depend on how often it was interrupted."""
    newest = checkpoint.latest(folder / "checkpoints")
    names = ["metrics.jsonl", "data.json", "experiment.json", "checkpoints/best.safetensors"]
    return {name: (folder / name).read_bytes() for name in [*names, f"checkpoints/{newest.name}"]}


def in_child(function, *arguments, environment=None):
    """Start a process that calls a function; it is forked, so it need not import torch again."""

    def target():
        os.environ.update({name: str(value) for name, value in (environment or {}).items()})
        torch.set_num_threads(1)
        function(*arguments)

    process = multiprocessing.get_context("fork").Process(target=target)
    process.start()
    return process


def ended(process, seconds=HANGING):
    """The exit code of a process that must not hang; waiting for a busy core is no hanging."""
    start, children = time.monotonic(), {}
    while process.exitcode is None:
        process.join(1)
        # It may wait for workers, which wait for a core side by side.
        children |= {pid: _waited_for_a_core(pid) for pid in _children(process.pid)}
        waited = _waited_for_a_core(process.pid) + max(children.values(), default=0)
        used = time.monotonic() - start - waited
        if process.exitcode is None and used > seconds:
            process.kill()
            process.join()
            raise AssertionError(f"A process hangs after {seconds} s.")
    return process.exitcode


def _waited_for_a_core(pid):
    """Seconds that the first thread of a process could have run and did not, where Linux says."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def _children(pid):
    """The processes that a process has started, where Linux says."""
    try:
        return [int(n) for n in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def dying_at(owner, name, count):
    """Replace a function by one that kills this process, with SIGKILL, at its `count`-th call."""
    call, calls = getattr(owner, name), 0

    def deadly(*arguments, **options):
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*arguments, **options)

    setattr(owner, name, deadly)


def meeting_place():
    """The store that torchrun keeps for its processes, over all restarts."""
    return torch.distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)


def side_by_side(function, *arguments, processes=2, store=None, restarts=0):
    """Exit codes of processes that find themselves started by torchrun."""
    store = store or meeting_place()
    common = dict(
        WORLD_SIZE=processes,
        LOCAL_WORLD_SIZE=processes,
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=store.port,
        TORCHELASTIC_USE_AGENT_STORE=True,
        TORCHELASTIC_RUN_ID="test",
        TORCHELASTIC_RESTART_COUNT=restarts,
    )
    started = [
        in_child(function, *arguments, environment={**common, "RANK": rank, "LOCAL_RANK": rank})
        for rank in range(processes)
    ]
    try:
        return [ended(process) for process in started]
    finally:
        for process in started:
            process.kill()


def fit_or_resume(experiment, folder):
    return fit(experiment, folder, resume="auto")
