"""What the engine asks of Slurm's commands, which a stand-in answers here."""

import os
import re
import signal
import time

import fake_slurm
import pytest
from tiny_studies import measured, study, tiny

from sfo.cli import main
from sfo.experiments.engines import make_engine
from sfo.experiments.engines.job import perform
from sfo.experiments.results import Results
from sfo.experiments.runner import reproduce
from sfo.experiments.worker import Job
from sfo.training.devices import Devices


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """The folder of the states of all tasks."""
    from submitit.slurm.slurm import SlurmJob

    # It is asked every ten minutes at most, too seldom for a test.
    monkeypatch.setattr(SlurmJob.watcher, "_delay_s", 1)
    SlurmJob.watcher.clear()
    return fake_slurm.install(tmp_path / "slurm", monkeypatch)


def calm(runs, folder):
    for run in runs:
        perform(Job(run).to_json(), str(folder))
    return measured(folder)


def test_a_study_is_one_array(tmp_path, slurm):
    runs = [tiny(seed) for seed in range(3)]
    results = Results(tmp_path / "results")
    engine = make_engine("slurm", results, workers=2, options=dict(timeout_min=30))
    state = reproduce([study(runs)], results, engine=engine)
    script = (slurm / "script").read_text()
    assert "#SBATCH --array=0-2%2" in script
    assert "#SBATCH --time=30" in script
    assert "#SBATCH --requeue" in script, "where that is not Slurm's default"
    assert (state.failed, len(state.seconds)) == ({}, 3)
    assert measured(results.folder) == calm(runs, tmp_path / "calm")


def test_no_more_jobs_are_at_work_than_workers_whatever_is_added(tmp_path, slurm):
    """An array keeps to its own number of jobs at work, and knows nothing of the next array."""
    engine = make_engine("slurm", Results(tmp_path), workers=2)
    assert engine.slots() == 1000, "an array of all that can be begun"
    engine.jobs["run"] = None
    assert engine.slots() == 2


def test_runs_on_gpus_are_submitted_from_a_machine_without_one(tmp_path, slurm, monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    cuda = Devices.elsewhere("cuda")
    engine = make_engine("slurm", Results(tmp_path), devices=cuda)
    engine.submit([Job(tiny())])
    try:
        assert "#SBATCH --gpus-per-node=1" in (slurm / "script").read_text()
    finally:
        engine.close()


def test_the_command_looks_for_no_gpu_here(tmp_path, slurm, monkeypatch, capsys):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    words = ["reproduce", "main", "--scale", "smoke", "--out", str(tmp_path), "--dry-run"]
    words += ["--benchmark", "allen_cahn", "--column", "fno", "--engine", "slurm"]
    main([*words, "--accelerator", "cuda"])
    assert "1 runs" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*words, "--accelerator", "cuda", "--devices", "0,1"])
    assert "`devices` must be left out where a cluster" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*words, "--accelerator", "cuda", "--address", "local"])
    assert "torch finds no CUDA device" in capsys.readouterr().err


@pytest.mark.parametrize("engine", [["ray"], ["slurm", "--address", "local"]], ids=["ray", "slurm"])
def test_engines_that_choose_devices_themselves_are_not_told_which(engine, monkeypatch, capsys):
    """They took any, whatever was said."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
    words = "reproduce main --scale smoke --accelerator cuda --devices 2,3 --dry-run --engine"
    with pytest.raises(SystemExit):
        main([*words.split(), *engine])
    assert "`devices` must be left out where a cluster does the runs" in capsys.readouterr().err


def test_jobs_that_slurm_refuses_end_in_a_sentence(tmp_path, slurm):
    engine = make_engine("slurm", Results(tmp_path), options=dict(slurm_partition="none"))
    said = r"^Slurm refuses 1 jobs \(sbatch: error: invalid partition specified: none .*--slurm"
    with pytest.raises(ValueError, match=said):
        reproduce([study([tiny()])], Results(tmp_path), engine=engine)
    assert measured(tmp_path) == {}


class Preempted:
    """A job that Slurm has preempted without requeueing it."""

    job_id = "1_0"

    class watcher:
        @staticmethod
        def get_state(job, mode):
            return "PREEMPTED"

    def done(self):
        return False

    def cancel(self, check):
        pass


def test_a_job_that_was_preempted_for_good_is_not_waited_for(tmp_path, slurm, monkeypatch):
    engine = make_engine("slurm", Results(tmp_path))
    engine.jobs["run"] = Preempted()
    assert engine.next_event(0.01) is None, "Slurm may be about to queue it again"
    monkeypatch.setattr("sfo.experiments.engines.slurm.PREEMPTED_SECONDS", 0)
    run, event = engine.next_event(0.01)
    assert (run, event["event"]) == ("run", "died")
    assert event["why"] == "its job 1_0 was preempted and not requeued"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_run_of_many_times_its_jobs_time_is_requeued_each_time(tmp_path, slurm):
    """submitit gives up after three; and Slurm may send SIGTERM before the signal asked for."""
    run, results = tiny(epochs=1000), Results(tmp_path / "results")
    checkpoints, told, found = results.run_folder(run) / "checkpoints", [], {}

    def tell(state):
        """Once to each process, when it has made a step of its own."""
        status, *process = (slurm / "1_0").read_text().split()
        there = {path.name for path in checkpoints.glob("step-*")}
        if status != "RUNNING" or not process or process[0] in told or len(told) == 5:
            return
        if there <= found.setdefault(process[0], there):
            return
        told.append(process[0])
        if len(told) % 2:
            os.kill(int(process[0]), signal.SIGTERM)
            time.sleep(2)
        os.kill(int(process[0]), signal.SIGUSR2)

    engine = make_engine("slurm", results, options=dict(timeout_min=1))
    state = reproduce([study([run])], results, engine=engine, progress=tell)
    logs = "".join(path.read_text() for path in (results.folder / "runs/slurm").glob("*_log.*"))
    assert (len(told), len(re.findall("Requeued job", logs))) == (5, 5)
    assert (state.failed, state.deaths) == ({}, {})
    assert measured(results.folder) == calm([run], tmp_path / "calm")
