"""What is said before a training that may take more memory than there is."""

import pytest

from sfo.cli import main
from sfo.training.advice import memory_advice
from sfo.training.config import Experiment


def water(**train):
    return Experiment.of("shallow_water", scale="paper", train=train)


def test_a_batch_of_large_samples_is_worth_a_sentence():
    """A sample of Shallow Water is 101 · 3 · 128² numbers of four bytes."""
    said = memory_advice(water())
    assert said.startswith("A step on 10 samples of 20 MB takes some twenty times their memory; ")
    assert "\n" not in said


@pytest.mark.parametrize("scale", ["smoke", "desk"])
@pytest.mark.parametrize("benchmark", ["allen_cahn", "shallow_water", "maxwell", "darcy"])
def test_what_is_held_in_memory_is_not(benchmark, scale):
    assert memory_advice(Experiment.of(benchmark, scale=scale)) is None


def test_whoever_has_said_it_is_not_told():
    assert memory_advice(water(micro_batch=2)) is None
    assert memory_advice(water(), stream=False) is None
    assert memory_advice(water(batch_size=2)) is None
    # A set of 1 GB, but of small samples.
    assert memory_advice(Experiment.of("allen_cahn", scale="paper")) is None


def test_the_command_says_it_before_it_begins(tmp_path, monkeypatch, capsys):
    def begun(*arguments, **options):
        raise ValueError("begun")

    monkeypatch.setattr("sfo.experiments.run.run", begun)
    with pytest.raises(SystemExit):
        main(["train", "--benchmark", "shallow_water", "--scale", "paper", "--out", str(tmp_path)])
    _, advice, end = capsys.readouterr().err.splitlines()
    assert (advice, end) == (memory_advice(water()), "sfo: begun")
