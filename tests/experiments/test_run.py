"""From training to the Record: one process writes for all, in the precision of the weights."""

import json
import os

import numpy as np
import pytest
import torch
from training.small_runs import side_by_side, small

from sfo.data import load_benchmark
from sfo.experiments import run as module
from sfo.experiments.record import Record
from sfo.experiments.run import evaluate_run, predict_run, run
from sfo.models.sfo import SFO
from sfo.training.fit import load_best
from sfo.training.prepare import load_pairs


@pytest.fixture(scope="module", autouse=True)
def data_folder(tmp_path_factory):
    """Where runs find Allen–Cahn data at the smoke scale."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFO_DATA", str(tmp_path_factory.mktemp("data")))
        load_benchmark("allen_cahn", "smoke", workers=1)
        yield


def run_and_tell(experiment, folder):
    """Leave beside the run what this process has done, and the Record that it was given."""
    done = []

    def spied(name, act):
        return lambda *arguments, **options: [done.append(name), act(*arguments, **options)][1]

    for name in ("evaluate", "predict"):
        setattr(module, name, spied(name, getattr(module, name)))
    module._cost = spied("cost", lambda *_: {})  # It takes its time, and is tested elsewhere.
    Record.save = spied("save", Record.save)
    record = run(experiment, folder)
    outcome = dict(done=done, record=record.to_json())
    (folder.parent / f"outcome-{os.environ['RANK']}.json").write_text(json.dumps(outcome))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_one_of_two_processes_writes(tmp_path):
    """Both return the Record that is in the folder."""
    assert side_by_side(run_and_tell, small(), tmp_path / "run") == [0, 0]
    first, second = (json.loads((tmp_path / f"outcome-{rank}.json").read_text()) for rank in (0, 1))
    assert first["done"] == ["evaluate", "cost", "predict", "save"]
    assert second["done"] == []
    assert first["record"] == second["record"] == (tmp_path / "run" / "record.json").read_text()


def test_no_more_samples_than_said_are_passed_at_a_time(tmp_path):
    """Also when the run is evaluated, measured and drawn: its memory is that of the largest."""
    seen = []

    def see(part, arguments):
        seen.extend(len(a) for a in arguments if isinstance(part, SFO))

    hook = torch.nn.modules.module.register_module_forward_pre_hook(see)
    try:
        run(small(epochs=1, micro_batch=3), tmp_path / "run")
        evaluate_run(tmp_path / "run", split="validation")
    finally:
        hook.remove()
    assert max(seen) == 3


@pytest.mark.parametrize("precision", ["64-true", "bf16-true"])
def test_predictions_are_in_the_precision_of_the_run(tmp_path, precision):
    """The last digit of the input counts in float64, and no number is lost on the way out."""
    record = run(small(precision=precision), tmp_path / "run", cost=False, picture=False)
    assert evaluate_run(tmp_path / "run")[0] == record.errors
    model = load_best(tmp_path / "run")
    dtype = next(model.parameters()).dtype
    a = load_pairs(record.experiment, "test").a[:2].double() * (1 + 1e-12)
    u = predict_run(tmp_path / "run", a.numpy())
    with torch.no_grad():
        expected = model(a.to(dtype))
    assert u.dtype == (np.float64 if precision == "64-true" else np.float32)
    np.testing.assert_array_equal(u, expected.double().numpy())
