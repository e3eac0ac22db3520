"""Several runners in one folder, and workers that are lost."""

import errno
import json
import os
import random
import re
import signal
import socket
import threading
import time

import pytest
from tiny_studies import measured, processes, study, tiny

from sfo.cli import main
from sfo.experiments.engines import make_engine
from sfo.experiments.engines.job import perform
from sfo.experiments.engines.local import LocalEngine
from sfo.experiments.results import AlreadyClaimed, Results, name
from sfo.experiments.runner import reproduce
from sfo.experiments.worker import Job, attempt
from sfo.training.devices import Devices


def test_a_run_is_held_by_one_process_whatever_name_its_folder_has(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    real, link = Results(tmp_path / "real"), Results(tmp_path / "link")
    with real.claimed(tiny()):
        assert link.is_claimed(tiny())
        assert not link.is_claimed(tiny(seed=1)), "a lock per run, not per folder"
        with pytest.raises(AlreadyClaimed), link.claimed(tiny()):
            pass
    assert not link.is_claimed(tiny())


def test_a_job_that_another_process_is_at_is_left_to_it(tmp_path):
    results = Results(tmp_path)
    with results.claimed(tiny()):
        assert attempt(Job(tiny()), results, lambda *_, **__: None) == {"event": "taken"}
    assert measured(tmp_path) == {}


class Here:
    """An engine that does its runs in the runner's own thread."""

    def __init__(self, results):
        self.results, self.begun = results, []

    def slots(self):
        return 1

    def submit(self, jobs):
        self.begun.extend(jobs)

    def next_event(self, timeout):
        if not self.begun:
            return time.sleep(timeout)
        job = self.begun.pop()
        return name(job.experiment), attempt(job, self.results, lambda *_, **__: None)

    def close(self):
        pass


@pytest.mark.parametrize("engine", [Here, pytest.param(None, marks=pytest.mark.slow)])
def test_two_runners_in_one_folder_share_the_runs(tmp_path, engine):
    """In two threads, and in processes of their own."""
    runs, results, states = [tiny(seed) for seed in range(5)], Results(tmp_path), []

    def runner():
        chosen = engine and engine(results)
        states.append(reproduce([study(runs)], results, scale="smoke", workers=1, engine=chosen))

    both = [threading.Thread(target=runner) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert [state.failed for state in states] == [{}, {}]
    done = [run for state in states for run in state.seconds]
    assert sorted(done) == sorted(name(run) for run in runs), "each run once"
    assert len(measured(tmp_path)) == len(runs)


def test_a_worker_that_dies_is_replaced_and_its_run_goes_on(tmp_path):
    run, killed, results = tiny(epochs=15), [], Results(tmp_path / "disturbed")
    engine = LocalEngine(results, 1, Devices("cpu"))

    def kill(state):
        if not killed and any(step for step, _ in state.step.values()):
            killed.append(engine.pool[0].process.pid)
            os.kill(killed[0], signal.SIGKILL)

    state = reproduce([study([run])], results, engine=engine, progress=kill)
    assert (len(killed), state.failed, [*state.seconds]) == (1, {}, [name(run)])
    perform(Job(run).to_json(), str(tmp_path / "calm"))
    assert measured(tmp_path / "disturbed") == measured(tmp_path / "calm")


def test_a_worker_that_dies_in_the_middle_of_a_word_is_noticed(tmp_path, monkeypatch):
    """The runner waited for ever for the rest of the line."""
    program = tmp_path / "worker"
    program.write_text("""#!/bin/sh\nread job\nprintf '{"event": "st'\n""")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(program))
    engine = LocalEngine(Results(tmp_path), 1, Devices("cpu"))
    engine.submit([Job(tiny())])
    run, event = engine.next_event(20) or (None, {})
    engine.close()
    assert (run, event.get("event")) == (name(tiny()), "died")


class Deadly:
    """An engine whose workers all die."""

    def __init__(self):
        self.begun = []

    def slots(self):
        return 1

    def submit(self, jobs):
        self.begun.extend(jobs)

    def next_event(self, timeout):
        return name(self.begun[-1].experiment), dict(event="died", why="it fell")

    def close(self):
        pass


def test_a_run_that_takes_every_worker_along_is_given_up(tmp_path):
    engine = Deadly()
    state = reproduce([study([tiny()])], Results(tmp_path), engine=engine)
    assert state.failed[name(tiny())].startswith("it fell, 3 times; the same command continues")
    assert len(engine.begun) == 3
    assert measured(tmp_path) == {}, "it is not noted as a failure of the run"


def test_a_full_disk_is_told_in_a_sentence_and_is_no_failure_of_the_run(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path))

    results = Results(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("sfo.experiments.results._write", full)
        event = attempt(Job(tiny()), results, lambda *_, **__: None)
    assert event["event"] == "stopped"
    assert event["why"] == f"No space left on device: {tmp_path}"
    assert event["full"]
    assert measured(tmp_path) == {}
    assert attempt(Job(tiny()), results, lambda *_, **__: None)["event"] == "done"


def test_a_device_that_is_not_there_is_no_failure_of_the_run(tmp_path, monkeypatch):
    """It was kept as one, so that no machine tried the run again."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    event = json.loads(perform(Job(tiny()).to_json(), str(tmp_path), accelerator="cuda"))
    assert event["event"] == "stopped"
    assert "torch finds no CUDA device" in event["why"]
    assert event["why"].endswith(f" (on {socket.gethostname()})"), "of many machines it is this one"
    assert measured(tmp_path) == {}
    assert attempt(Job(tiny()), Results(tmp_path), lambda *_, **__: None)["event"] == "done"


def test_data_that_there_is_no_room_for_stop_all_runs(tmp_path, monkeypatch):
    """The next run would not find room for them either."""

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("sfo.data.generate._solve_missing", full)
    event = attempt(Job(tiny()), Results(tmp_path), lambda *_, **__: None)
    assert (event["event"], event.get("full")) == ("stopped", True)
    said = rf"Cannot write {tmp_path}/data/allen_cahn-smoke\S+\.hdf5: No space left on device"
    assert re.fullmatch(said, event["why"])
    assert measured(tmp_path) == {}


class Full(Deadly):
    """An engine whose workers, or which itself, cannot write."""

    def __init__(self, by_itself):
        super().__init__()
        self.by_itself = by_itself

    def next_event(self, timeout):
        if self.by_itself:
            raise OSError(errno.ENOSPC, "No space left on device", "results")
        why = "No space left on device: results"
        return name(self.begun[-1].experiment), dict(event="stopped", why=why, full=True)


@pytest.mark.parametrize("by_itself", [True, False], ids=["runner", "worker"])
def test_a_full_disk_stops_all_runs_with_one_sentence(by_itself, tmp_path):
    """Each of them would train for nothing."""
    engine = Full(by_itself)
    said = r"^No space left on device: results; the runs are stopped\. Make room or choose another"
    with pytest.raises(ValueError, match=said):
        reproduce([study([tiny(seed) for seed in range(3)])], Results(tmp_path), engine=engine)
    assert len(engine.begun) == 1
    assert measured(tmp_path) == {}


@pytest.mark.parametrize("study", ["fixed", "params"], ids=["runs", "measurement"])
def test_a_folder_that_cannot_be_written_is_refused_first(study, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit):
        main(["reproduce", study, "--scale", "smoke", "--out", str(tmp_path / "file" / "out")])
    said = capsys.readouterr().err
    assert said.startswith(f"sfo: Cannot write into {tmp_path / 'file' / 'out'}: ")
    assert said.endswith("; choose another folder with --out.\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("engine", "module"), [("ray", "ray"), ("slurm", "submitit")], ids=["ray", "slurm"]
)
def test_an_engine_that_is_not_installed_names_its_extra(engine, module, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ValueError, match=rf"pip install '.\[{engine}\]' in the clone brings it"):
        make_engine(engine, Results(tmp_path))


def test_an_engine_that_cannot_be_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(SystemExit):
        main(["reproduce", "params", "fixed", "--engine", "ray", "--out", str(tmp_path)])
    assert not Results(tmp_path).table_path("params").exists()


def test_options_of_other_engines_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"`address` is for --engine ray and slurm"):
        make_engine("local", Results(tmp_path), address="10.0.0.1:6379")


def test_another_version_does_nothing(tmp_path):
    answer = perform(Job(tiny()).to_json(), str(tmp_path), version="0.0.1")
    assert b"install the same version everywhere" in answer
    assert measured(tmp_path) == {}


def test_workers_take_the_devices_in_turn(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    four = Devices("cuda", (0, 1, 2, 3))
    seen = [four.environment(worker)["CUDA_VISIBLE_DEVICES"] for worker in range(6)]
    assert seen == ["0", "1", "2", "3", "0", "1"]
    # Of the devices that a scheduler has given us.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    assert four.environment(1) == {"CUDA_VISIBLE_DEVICES": "5"}
    assert Devices("cpu").environment(0) == {}


@pytest.mark.slow
def test_a_hundred_jobs_and_ten_kills(tmp_path):
    runs = [tiny(seed) for seed in range(100)]
    chance, left = random.Random(0), 10
    when = sorted(chance.sample(range(5, 95), left))

    def disturb(state):
        if when and len(state.seconds) >= when[0]:
            workers = processes("sfo.experiments.worker", str(tmp_path / "disturbed"))
            if workers:
                when.pop(0)
                os.kill(chance.choice(workers), signal.SIGKILL)

    disturbed, calm = Results(tmp_path / "disturbed"), Results(tmp_path / "calm")
    state = reproduce([study(runs)], disturbed, workers=2, progress=disturb)
    assert (when, state.failed) == ([], {})
    reproduce([study(runs)], calm, workers=2)
    assert len(measured(calm.folder)) == len(runs)
    assert measured(disturbed.folder) == measured(calm.folder)
