"""The runner: all of it done once, whatever happens on the way."""

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sfo.cli import main
from sfo.experiments.record import Record
from sfo.experiments.results import Results, name
from sfo.experiments.runner import reproduce
from sfo.experiments.studies import MAIN_MODELS
from sfo.experiments.studies.main import ADAM_PROTOCOLS
from sfo.experiments.study import Cell, Study
from sfo.experiments.worker import Job, run_job
from sfo.models.build import installed
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder

SMALL = dict(n_modes=4, hidden_channels=8)


def study(cells, analyses=()):
    return Study("mine", "", "", lambda scale, seeds: cells, analyses=analyses)


def small(model="fno", **train):
    settings = SMALL if model == "sfo" else {}
    return Experiment.of("allen_cahn", model, scale="smoke", settings=settings, train=train)


def command(out, *more):
    words = "reproduce fixed --scale smoke --benchmark allen_cahn diffusion_reaction --column fno"
    return [sys.executable, "-m", "sfo", *words.split(), "--out", str(out), *more]


def records(folder):
    return {p.name: p.read_bytes() for p in (folder / "records").glob("*.json")}


def test_trials_runs_seeds_and_analyses_end_to_end(tmp_path):
    results = Results(tmp_path)
    tuned = Cell("allen_cahn", "fno", small("fno", epochs=3), seeds=2, protocols=ADAM_PROTOCOLS)
    found = Cell("allen_cahn", "sfo", small("sfo"))
    state = reproduce(
        [study([tuned]), study([found], ("coefficients", "transfer"))],
        results,
        scale="smoke",
        workers=1,
    )
    assert not state.failed
    assert not state.waiting
    assert len(state.seconds) == len(ADAM_PROTOCOLS) + 2 + 1
    choice = min(tuned.trials(), key=lambda trial: results.record(trial).validation)
    for run in tuned.runs(results):
        assert run.train.schedule == choice.train.schedule
        assert results.record(run).experiment == run
    norms = results.analysis("coefficients", found.experiment).values["norms"]
    assert [len(row) for row in norms] == [SMALL["n_modes"]] * 4
    transfer = results.analysis("transfer", found.experiment).values
    own = results.record(found.experiment).errors.percent
    for way in ("rebuild", "restrict"):
        assert transfer["percent"][way]["64"] == own, "on its own grid nothing changes"
        assert {"128", "32", "16", "8"} <= {*transfer["percent"][way]}
    # Trials leave nothing behind, runs their best checkpoint.
    assert not results.run_folder(choice).exists()
    assert len(list((results.run_folder(found.experiment) / "checkpoints").iterdir())) == 1


def test_a_second_call_does_nothing(tmp_path):
    cell = Cell("allen_cahn", "fno", small())
    assert len(reproduce([study([cell])], Results(tmp_path), workers=1).seconds) == 1
    before = records(tmp_path)
    assert reproduce([study([cell])], Results(tmp_path), workers=1).seconds == {}
    assert records(tmp_path) == before


def test_a_run_that_fails_is_noted_and_the_others_go_on(tmp_path):
    good = Cell("allen_cahn", "fno", small())
    bad = Cell("allen_cahn", "wild", small(learning_rate=1e30))
    results = Results(tmp_path)
    state = reproduce([study([bad, good])], results, workers=1)
    assert [*state.failed] == [name(bad.experiment)]
    assert "learning rate" in results.failure(bad.experiment)
    assert results.record(good.experiment) is not None


def test_results_that_cannot_be_trusted_stop_it_at_once(tmp_path):
    cell = Cell("allen_cahn", "fno", small())
    reproduce([study([cell])], Results(tmp_path), workers=1)
    (path,) = (tmp_path / "records").iterdir()
    path.write_text(path.read_text().replace('"epochs": 2', '"epochs": 3'))
    with pytest.raises(ValueError, match=r"cannot be trusted.*was changed"):
        reproduce([study([cell])], Results(tmp_path), workers=1)


def test_an_analysis_of_a_finished_run_trains_nothing(tmp_path, monkeypatch):
    """Of a finished run the best weights alone are kept: to go on would be to start again."""
    results, experiment = Results(tmp_path), small("sfo")
    record = run_job(Job(experiment, (), keep=True), results, quiet)
    monkeypatch.setattr("sfo.experiments.run.run", None)
    job = Job(experiment, ("coefficients",), keep=True)
    assert run_job(job, results, quiet) == record
    assert results.analysis("coefficients", experiment) is not None


def test_a_run_that_is_trained_again_is_not_finished(tmp_path, monkeypatch):
    """Its weights change on the way: no analysis may take them for those of the Record."""
    results, experiment = Results(tmp_path), small("sfo")
    job = Job(experiment, (), keep=True)
    run_job(job, results, quiet)
    (tmp_path / "records" / f"{name(experiment)}.json").unlink()
    monkeypatch.setattr("sfo.experiments.run.run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_job(job, results, quiet)
    assert not (results.run_folder(experiment) / "record.json").exists()


def quiet(*event, **entries):
    """Who waits for no news."""


def interrupted(*arguments, **settings):
    raise KeyboardInterrupt


def test_a_job_comes_back_equal():
    job = Job(small(), ("transfer",), keep=False)
    assert Job.from_json(job.to_json()) == job


def workers_of(folder):
    """Worker processes that are at these results."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"sfo.experiments.worker" in words and str(folder).encode() in words:
            found.append(int(path.parent.name))
    return found


def killed_again_and_again(folder, kills, seed):
    """Start the runner, kill it at random moments, let it end; no finished run may be touched."""
    chance = random.Random(seed)
    seen: dict[str, tuple[bytes, int]] = {}

    def check():
        for path in (folder / "records").glob("*.json"):
            now = path.read_bytes(), path.stat().st_mtime_ns
            assert seen.setdefault(path.name, now) == now, "a finished run was repeated"

    for _ in range(kills):
        runner = subprocess.Popen(command(folder, "--seeds", "3", "--workers", "1"))
        time.sleep(chance.uniform(2.0, 9.0))
        runner.send_signal(signal.SIGKILL)
        runner.wait()
        deadline = time.monotonic() + 30
        while workers_of(folder):
            assert time.monotonic() < deadline, "a worker outlives its runner"
            time.sleep(0.1)
        check()
    subprocess.run(command(folder, "--seeds", "3", "--workers", "1"), check=True)
    check()


@pytest.mark.slow
def test_ten_kills_lose_nothing_and_repeat_nothing(tmp_path):
    killed_again_and_again(tmp_path / "killed", 10, seed=0)
    subprocess.run(command(tmp_path / "calm", "--seeds", "3", "--workers", "1"), check=True)
    assert len(records(tmp_path / "calm")) == 6
    assert records(tmp_path / "killed") == records(tmp_path / "calm")


@pytest.mark.slow
def test_two_kills_lose_nothing_and_repeat_nothing(tmp_path):
    killed_again_and_again(tmp_path, 2, seed=1)
    assert len(records(tmp_path)) == 6


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(signal.SIGINT, 130, id="INT", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, 143, id="TERM", marks=pytest.mark.slow),
    ],
)
def test_a_signal_saves_and_the_same_command_goes_on(number, code, tmp_path):
    cell = Cell("allen_cahn", "fno", small())
    long = ["--seeds", "1", "--workers", "1"]
    runner = subprocess.Popen(
        command(tmp_path, *long),
        stderr=subprocess.PIPE,
        text=True,
        # A shell lets what it starts in the background ignore Ctrl-C, tests among them.
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    while not RunFolder(Results(tmp_path).run_folder(cell.experiment)).exists:
        time.sleep(0.05)
        assert runner.poll() is None
    runner.send_signal(number)
    _, error = runner.communicate(timeout=60)
    assert runner.returncode == code
    assert "Traceback" not in error
    assert not workers_of(tmp_path)
    subprocess.run(command(tmp_path, *long), check=True)
    assert len(records(tmp_path)) == 2


def test_a_peer_that_is_not_installed_is_named_where_it_is_wanted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sfo.models.neuralop.find_spec", lambda name: None)
    usual = ["reproduce", "main", "--scale", "smoke", "--out", str(tmp_path), "--dry-run"]
    main([*usual, "--benchmark", "allen_cahn", "--column", "neuralop_fno"])
    said = capsys.readouterr().out
    assert "neuralop_fno is left out; pip install '.[peers]' in the clone brings it." in said
    assert "0 runs" in said
    main([*usual, "--benchmark", "allen_cahn", "--column", "fno"])
    assert "left out" not in capsys.readouterr().out


def test_a_dry_run_lists_all_runs_and_does_none(tmp_path, capsys):
    main(command(tmp_path, "--seeds", "3", "--dry-run")[3:])
    assert re.search(r"6 runs, \d+:\d\d on one core", capsys.readouterr().out)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_main_table_at_the_smallest_scale_has_every_cell(tmp_path):
    """Nine models of the paper and ours on six benchmarks, from the equation to the Record."""
    words = ["reproduce", "main", "--scale", "smoke", "--out", str(tmp_path), "--workers", "1"]
    subprocess.run([sys.executable, "-m", "sfo", *words], check=True)
    assert not (tmp_path / "failures").exists()
    found = [Record.load(path) for path in (tmp_path / "records").iterdir()]
    models = {(r.experiment.model.name, r.experiment.model.preset) for r in found}
    benchmarks = {r.experiment.data.benchmark for r in found}
    assert len(benchmarks) == 6
    assert len(models) == 10 + installed("neuralop_fno")
    assert len(found) == len(benchmarks) * len(models)
    assert all(0 < r.errors.percent < 1000 for r in found)


@pytest.mark.parametrize("study", ["params", "runtime"])
def test_tables_without_training_need_no_peer(study, tmp_path, monkeypatch, capsys):
    """They ended in an ImportError where neuraloperator was not installed."""
    monkeypatch.setattr("sfo.models.neuralop.find_spec", lambda name: None)
    monkeypatch.setattr("sfo.experiments.measurements.PAPER_BENCHMARKS", ["allen_cahn"])
    main(["reproduce", study, "--scale", "smoke", "--out", str(tmp_path)])
    assert "neuralop_fno is left out; pip install" in capsys.readouterr().out
    values = Results(tmp_path).table(study)
    columns = values["counts" if study == "params" else "seconds"]["allen_cahn"]
    assert {*MAIN_MODELS} - {*columns} == {"neuralop_fno"}


def test_a_table_is_measured_once_and_the_way_to_measure_it_again_is_named(tmp_path, capsys):
    words = ["reproduce", "params", "--out", str(tmp_path)]
    main(words)
    assert "already" not in capsys.readouterr().out
    path = tmp_path / "tables" / "params.json"
    before = path.stat().st_mtime_ns
    main(words)
    assert f"params is there already; delete {path} to measure it again." in capsys.readouterr().out
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("flag", ["--seeds", "--workers"])
@pytest.mark.parametrize("number", ["0", "-1"])
def test_no_seeds_and_no_workers_are_refused(flag, number, capsys):
    """Without workers the runner would wait for ever."""
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "main", "--scale", "smoke", flag, number])
    assert stop.value.code == 2
    assert f"`{flag[2:]}` must be at least 1, got {number}" in capsys.readouterr().err
