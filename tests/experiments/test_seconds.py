"""Training seconds from steps that take turns, and what is read off them."""

import pytest

from sfo.experiments import seconds as module
from sfo.experiments.seconds import measure_steps, run_seconds, step_key
from sfo.experiments.studies.data import power_law
from sfo.experiments.studies.main import main_protocols
from sfo.experiments.studies.pareto import Point, below, front
from sfo.training.config import Experiment

RUN = Experiment.of("allen_cahn", "fno", scale="smoke")


def test_seconds_are_ratio_times_unit_times_steps():
    """Twenty of 25 samples train; in batches of 8 that is three steps per epoch."""
    measured = {"ratios": {step_key(RUN): 3.0}, "units": {"allen_cahn": 0.5}}
    steps = 3 * RUN.train.epochs
    assert run_seconds(RUN, measured) == 3.0 * 0.5 * steps
    longer = RUN.model_copy(update=dict(train=RUN.train.model_copy(update=dict(epochs=7))))
    assert run_seconds(longer, measured) == 3.0 * 0.5 * 21
    assert run_seconds(RUN, None) is None
    other = Experiment.of("allen_cahn", "uno", scale="smoke")
    assert run_seconds(other, measured) is None


def test_what_a_step_costs_does_not_depend_on_seed_rate_or_samples():
    same = [
        Experiment.of("allen_cahn", "fno", scale="smoke", seed=3),
        Experiment.of("allen_cahn", "fno", scale="smoke", train=dict(learning_rate=0.1, epochs=9)),
        Experiment.of("allen_cahn", "fno", scale="smoke", data=dict(samples=30, train_samples=5)),
    ]
    assert {step_key(run) for run in same} == {step_key(RUN)}
    others = [
        Experiment.of("allen_cahn", "fno", scale="smoke", train=dict(optimizer="muon")),
        Experiment.of("allen_cahn", "fno", scale="smoke", train=dict(batch_size=2)),
        Experiment.of("allen_cahn", "fno", scale="smoke", settings=dict(hidden_channels=8)),
    ]
    assert len({step_key(run) for run in [RUN, *others]}) == 4


def test_what_was_measured_is_not_measured_again(monkeypatch):
    calls = []

    def in_turn(experiment, rounds):
        calls.append(experiment)
        return 0.25, 2.0

    monkeypatch.setattr(module, "_in_turn", in_turn)
    first = measure_steps([RUN, RUN])
    again = measure_steps([RUN], first)
    assert calls == [RUN]
    assert again == first
    assert first["units"] == {"allen_cahn": 0.25}


def test_front_and_what_lies_below_it():
    curve = front([Point("a", 4, 2), Point("a", 1, 5), Point("a", 2, 6), Point("a", 5, 3)])
    assert [(p.seconds, p.error) for p in curve] == [(1, 5), (4, 2)]
    assert below(Point("b", 3, 4), curve)
    assert not below(Point("b", 4.5, 2.5), curve)
    assert below(Point("b", 0.5, 9), curve)


def test_power_law_of_exact_data():
    sizes = [125, 250, 500, 4000]
    c, p = power_law(sizes, [7 * n**-0.8 for n in sizes])
    assert (c, p) == pytest.approx((7, 0.8))


def test_protocols_of_the_main_table():
    """Four for all alike, three where the batch is 1 already, one where Muon is too expensive."""
    batches = [p.get("batch_size") for p in main_protocols("allen_cahn", "fno", "desk")]
    assert batches == [None, None, None, 4]
    assert main_protocols("shallow_water", "sfo", "desk")[-1]["batch_size"] == 1
    assert len(main_protocols("maxwell", "sfo", "desk")) == 3
    assert len(main_protocols("shallow_water", "uno", "desk")) == 1
    assert main_protocols("allen_cahn", "fno", "paper") == ()
