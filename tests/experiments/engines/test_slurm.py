"""Jobs through submitit's local executor: the same Records, also after a preemption."""

import errno
import os
import random
import signal
import time

import pytest
from tiny_studies import measured, processes, study, tiny

from sfo.experiments.engines import make_engine
from sfo.experiments.engines.job import perform
from sfo.experiments.results import Results, name
from sfo.experiments.runner import reproduce
from sfo.experiments.worker import Job
from sfo.training import checkpoint


def through_slurm(runs, folder, progress=lambda state: None, workers=2):
    results = Results(folder)
    engine = make_engine("slurm", results, workers=workers, address="local")
    return reproduce([study(runs)], results, engine=engine, progress=progress)


def calm(runs, folder):
    for run in runs:
        perform(Job(run).to_json(), str(folder))
    return measured(folder)


def submitted(folder):
    """The processes of jobs at work: each is a child of submitit's controller."""
    return processes("submitit.core._submit", str(folder))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (dict(address="10.0.0.1:6379"), r"`address` of the engine slurm must be 'local'"),
        (dict(address="local", options=dict(nodes=2)), r"submitit refuses the options"),
        (dict(), r"finds no `sbatch` here"),
    ],
    ids=["address", "options", "no slurm"],
)
def test_bad_options_are_refused_in_a_sentence(options, said, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ValueError, match=said):
        make_engine("slurm", Results(tmp_path), **options)


def test_jobs_that_cannot_be_written_for_a_full_disk_end_in_a_sentence(tmp_path, monkeypatch):
    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("submitit.core.utils.DelayedSubmission.dump", full)
    with pytest.raises(ValueError, match=rf"^No space left on device: {tmp_path / 'slurm'}; the"):
        through_slurm([tiny(), tiny(seed=1)], tmp_path / "slurm")
    assert measured(tmp_path / "slurm") == {}


@pytest.mark.slow
def test_a_preempted_job_is_requeued_and_goes_on_where_it_was(tmp_path):
    """As Slurm sends it ahead of the end: the run finishes its step, saves, and is queued again."""
    runs, sent = [tiny(epochs=40), tiny(seed=1)], []
    checkpoints = Results(tmp_path / "slurm").run_folder(runs[0]) / "checkpoints"

    def preempt(state):
        if not sent and len(list(checkpoints.glob("step-*"))) > 1:
            log = " ".join(p.read_text() for p in (tmp_path / "slurm/runs/slurm").glob("*.err"))
            for job in submitted(tmp_path / "slurm"):
                os.kill(job, signal.SIGUSR2)
                sent.append(job)
            assert "Requeued" not in log

    state = through_slurm(runs, tmp_path / "slurm", preempt, workers=1)
    assert (state.failed, len(sent)) == ({}, 1)
    logs = "".join(p.read_text() for p in (tmp_path / "slurm/runs/slurm").glob("*_log.*"))
    assert "Requeued job" in logs
    assert measured(tmp_path / "slurm") == calm(runs, tmp_path / "calm")


@pytest.mark.slow
def test_a_job_that_is_killed_is_submitted_again(tmp_path):
    runs, killed = [tiny(epochs=40)], []

    def kill(state):
        folder = Results(tmp_path / "slurm").run_folder(runs[0]) / "checkpoints"
        if not killed and folder.exists() and checkpoint.latest(folder) is not None:
            killed.extend(submitted(tmp_path / "slurm"))
            for job in killed:
                os.kill(job, signal.SIGKILL)

    state = through_slurm(runs, tmp_path / "slurm", kill)
    assert (len(killed), state.failed, state.deaths[name(runs[0])]) == (1, {}, 1)
    assert measured(tmp_path / "slurm") == calm(runs, tmp_path / "calm")


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_jobs_and_ten_kills(tmp_path):
    runs = [tiny(seed) for seed in range(100)]
    chance = random.Random(0)
    when = sorted(chance.sample(range(5, 95), 10))

    def disturb(state):
        if when and len(state.seconds) >= when[0]:
            jobs = submitted(tmp_path / "slurm")
            if jobs:
                when.pop(0)
                time.sleep(chance.uniform(0, 2))
                try:
                    os.kill(chance.choice(jobs), chance.choice([signal.SIGKILL, signal.SIGUSR2]))
                except ProcessLookupError:
                    when.insert(0, 0)

    state = through_slurm(runs, tmp_path / "slurm", disturb)
    assert (when, state.failed) == ([], {})
    assert measured(tmp_path / "slurm") == calm(runs, tmp_path / "calm")
