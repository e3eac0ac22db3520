"""Run folders that were edited, damaged or mixed up: a sentence, or the answer of before."""

import json
import shutil
import struct

import numpy as np
import pytest
from run_fuzz import COMMANDS, OTHERS, folders, problem_of_run, truth_of

from sfo.experiments.own import load_run
from sfo.experiments.run import predict_run
from sfo.training import checkpoint
from sfo.training.tree import CheckpointError


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Runs on the data of one cache, and all modules loaded, so that children need not."""
    import sfo.models.export
    import sfo.plot.predictions
    import sfo.report.build  # noqa: F401

    made = tmp_path_factory.mktemp("runs") / "here"
    made.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFO_DATA", str(made / "cache"))
        patch.setenv("MPLBACKEND", "Agg")
        patch.chdir(made)
        folders(made)
        np.save(made / "input.npy", np.random.default_rng(0).normal(size=(2, 1, 64)).astype("f4"))
        yield made


@pytest.fixture
def run(here, tmp_path):
    """A copy of the finished run; checkpoints are replaced in it, never written into."""
    return shutil.copytree(here / "run", tmp_path / "run")


def put(source, target):
    target.unlink()
    shutil.copy(source, target)


@pytest.mark.parametrize("other", OTHERS)
def test_checkpoints_of_another_run_are_refused(other, here, run):
    """Weights of another seed or other data fit as well: they answered without a word."""
    truth = load_run(run).predict(np.load(here / "input.npy"))
    assert np.isfinite(truth).all()
    put(here / other / "checkpoints" / checkpoint.BEST, run / "checkpoints" / checkpoint.BEST)
    key = {"other-seed": "seed", "other-data": "data.seed", "other-model": "model.settings"}[other]
    for load in (load_run, lambda folder: predict_run(folder, np.load(here / "input.npy"))):
        with pytest.raises(CheckpointError, match=rf"not of the experiment in .*`{key}` is"):
            load(run)


def test_an_edited_experiment_is_not_that_of_the_weights(run):
    text = (run / "experiment.json").read_text()
    (run / "experiment.json").write_text(
        text.replace('"learning_rate": 0.001', '"learning_rate": 1.0')
    )
    (run / "record.json").unlink()
    with pytest.raises(CheckpointError, match=r"`train.learning_rate` is 0.001 there, not 1.0"):
        predict_run(run, np.zeros((1, 1, 64), "f4"))


def test_data_that_have_moved_are_the_same(run):
    entries = json.loads((run / "experiment.json").read_text())
    truth = predict_run(run, np.ones((1, 1, 64), "f4"))
    entries["data"]["file"] = "elsewhere.hdf5"
    (run / "experiment.json").write_text(json.dumps(entries))
    np.testing.assert_array_equal(predict_run(run, np.ones((1, 1, 64), "f4")), truth)


def test_an_edited_description_of_the_data_is_refused(run):
    entries = json.loads((run / "data.json").read_text())
    entries["shape"]["times"][-1] = 2.0
    (run / "data.json").write_text(json.dumps(entries) + "\n")
    with pytest.raises(CheckpointError, match=r"not of the data in its data.json"):
        load_run(run)


@pytest.mark.parametrize("other", OTHERS)
def test_a_record_of_another_run_is_refused(other, here, run):
    put(here / other / "record.json", run / "record.json")
    with pytest.raises(ValueError, match=r"record.json is of another run than experiment.json: `"):
        load_run(run)


def test_metrics_of_another_run_are_refused(here, run):
    put(here / "other-seed" / "metrics.jsonl", run / "metrics.jsonl")
    with pytest.raises(ValueError, match=r"record.json is of another run than metrics.jsonl"):
        load_run(run)


def test_checkpoints_that_do_not_say_what_they_are_of_are_taken(run):
    """As those of version 0.3; their weights must fit, which ended in a traceback."""
    best = run / "checkpoints" / checkpoint.BEST
    state = checkpoint.load(best)
    assert json.loads(state.pop("origin")["experiment"])["seed"] == 0
    truth = predict_run(run, np.ones((1, 1, 64), "f4"))
    shutil.rmtree(run / "checkpoints")
    checkpoint.save(state, run / "checkpoints", state["step"], best=True)
    np.testing.assert_array_equal(predict_run(run, np.ones((1, 1, 64), "f4")), truth)
    text = (run / "experiment.json").read_text()
    (run / "experiment.json").write_text(text.replace('"n_layers": 1', '"n_layers": 2'))
    with pytest.raises(ValueError, match=r"are not of the model in experiment.json: .*Missing key"):
        predict_run(run, np.ones((1, 1, 64), "f4"))


def test_a_length_in_a_header_that_is_not_there(run):
    """A checkpoint that was cut in its header, and one that declares a header of 2^60 bytes."""
    best = run / "checkpoints" / checkpoint.BEST
    content = best.read_bytes()
    for damaged in (content[:100], struct.pack("<Q", 2**60) + content[8:], content[:-1]):
        best.unlink()
        best.write_bytes(damaged)
        with (
            pytest.warns(UserWarning, match="refused"),
            pytest.raises(ValueError, match="no check"),
        ):
            load_run(run)


def try_runs(numbers, here, commands):
    problems = {}
    for command in commands:
        truth = truth_of(command, here)
        for number in numbers:
            problem = problem_of_run(number, command, here, truth)
            if problem is not None:
                problems[f"{command} {number}"] = problem
    assert not problems, "\n\n".join(f"{case}: {why}" for case, why in problems.items())


def test_some_damaged_runs(here):
    try_runs(range(2), here, ["evaluate", "predict", "show", "model"])


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("command", COMMANDS)
def test_fifty_damaged_runs(here, command):
    try_runs(range(2, 52), here, [command])
