"""Training from a file: the same bits as from memory, also when it is stopped on the way."""

import pytest
from small_runs import dying_at, ended, in_child, small, traces

from sfo.training import checkpoint
from sfo.training.fit import fit


def fit_streamed(experiment, folder):
    return fit(experiment, folder, stream=True, resume="auto")


def fit_and_die(experiment, folder):
    dying_at(checkpoint, "save", 3)
    fit_streamed(experiment, folder)


def test_a_streamed_run_gives_the_bits_of_one_in_memory(tmp_path):
    fit(small(), tmp_path / "kept")
    fit_streamed(small(), tmp_path / "read")
    assert traces(tmp_path / "read") == traces(tmp_path / "kept")


def test_the_order_of_samples_is_exact_after_a_kill(tmp_path):
    experiment = small(checkpoint_every=1)
    fit(experiment, tmp_path / "kept")
    assert ended(in_child(fit_and_die, experiment, tmp_path / "read")) == -9
    fit_streamed(experiment, tmp_path / "read")
    assert traces(tmp_path / "read") == traces(tmp_path / "kept")


@pytest.mark.parametrize("change", [dict(train_samples=5)])
def test_some_of_the_samples_are_not_read_into_memory(change):
    from sfo.data.rows import Rows
    from sfo.training.config import Experiment
    from sfo.training.prepare import load_pairs

    experiment = Experiment.of("allen_cahn", scale="smoke", data=change)
    few = load_pairs(experiment, "train", stream=True)
    assert isinstance(few.a, Rows)
    assert len(few) == 5
