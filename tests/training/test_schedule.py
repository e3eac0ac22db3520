import pytest
import torch
from torch.optim import lr_scheduler

from sfo.training.config import TrainConfig
from sfo.training.schedule import learning_rate


def torch_rates(scheduler, steps):
    """What torch's schedule gives at each step, `scheduler` told after every one of them."""
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.Adam([parameter], lr=3e-3)
    schedule = scheduler(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


def our_rates(per_epoch, **settings):
    config = TrainConfig(learning_rate=3e-3, **settings)
    return [learning_rate(config, s, per_epoch) for s in range(config.epochs * per_epoch)]


@pytest.mark.parametrize("per_epoch", [1, 4])
def test_step_is_that_of_torch(per_epoch):
    ours = our_rates(per_epoch, epochs=12, schedule="step", decay=0.3, decay_every=5)
    rates = torch_rates(lambda o: lr_scheduler.StepLR(o, 5, 0.3), 12)
    assert ours == pytest.approx([rate for rate in rates for _ in range(per_epoch)], rel=1e-12)


@pytest.mark.parametrize("warm_up", [0.3, 0.05, 0.77])
@pytest.mark.parametrize("total", [7, 60, 501])
def test_one_cycle_is_that_of_torch(total, warm_up):
    ours = our_rates(1, epochs=total, schedule="one_cycle", warm_up=warm_up)
    rates = torch_rates(
        lambda o: Unending(lr_scheduler.OneCycleLR(o, 3e-3, total_steps=total, pct_start=warm_up)),
        total,
    )
    assert ours == pytest.approx(rates, rel=1e-9)


class Unending:
    """torch's one-cycle schedule refuses to be told of the last step."""

    def __init__(self, schedule):
        self.schedule = schedule

    def step(self):
        if self.schedule.last_epoch + 1 < self.schedule.total_steps:
            self.schedule.step()


@pytest.mark.parametrize(("epochs", "warm_up"), [(1, 0.3), (10, 0.1), (5, 0.0), (4, 0.99)])
def test_one_cycle_at_its_limits(epochs, warm_up):
    """Where torch divides by zero: rates are sound however short the rise, and end low."""
    rates = our_rates(1, epochs=epochs, schedule="one_cycle", warm_up=warm_up)
    assert all(0 < rate <= 3e-3 for rate in rates)
    assert rates[-1] == pytest.approx(3e-3 / 25e4)


def test_cosine_is_that_of_torch_and_ends_at_0():
    ours = our_rates(3, epochs=20, schedule="cosine")
    rates = torch_rates(lambda o: lr_scheduler.CosineAnnealingLR(o, T_max=60), 60)
    assert ours == pytest.approx(rates, rel=1e-6, abs=1e-12)
    config = TrainConfig(learning_rate=3e-3, epochs=20, schedule="cosine")
    assert learning_rate(config, 60, 3) == 0


def test_constant():
    assert set(our_rates(2, epochs=3, schedule="constant")) == {3e-3}


def test_left_out_the_rate_is_halved_four_times_whatever_the_epochs():
    """As the paper's 100 of 500 epochs; a longer run must not decay to nothing."""
    for epochs in (2, 5, 100, 1000):
        config = TrainConfig(epochs=epochs, decay_every=None)
        last = learning_rate(config, epochs * 7 - 1, 7)
        assert last >= config.learning_rate / 16
