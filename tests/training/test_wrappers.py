from dataclasses import replace

import pytest
import torch
from small_runs import small
from torch import nn

from sfo.data.pairs import Pairs
from sfo.grid import Grid
from sfo.training import prepare
from sfo.training.prepare import DataShape, build, load_pairs
from sfo.training.wrappers import Normalised, Rollout


class Recorder(nn.Module):
    """The identity, which remembers what it has seen."""

    def forward(self, v):
        self.seen = v
        return v


def test_a_normalised_identity_is_the_identity():
    a = 5 + 3 * torch.randn(40, 2, 16)
    fields = [(a[:, :1], 1), (a[:, 1:], 1)]
    model = Normalised(Recorder(), 2, 2, 1).set_moments(fields, fields)
    torch.testing.assert_close(model(a), a)
    seen = model.model.seen
    torch.testing.assert_close(seen.mean((0, 2)), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(seen.std((0, 2)), torch.ones(2), atol=1e-3, rtol=0)


def test_every_field_has_a_scale_of_its_own():
    """Of the channels of one field all have the same: differences in time are kept."""
    a, b = 100 * torch.randn(9, 3, 8), 2 + torch.randn(9, 1, 8)
    model = Normalised(Recorder(), 4, 1, 1).set_moments([(a, 3), (b, 1)], [(b, 1)])
    assert model.a_deviation.flatten().tolist() == [model.a_deviation[0, 0, 0]] * 3 + [
        model.u_deviation[0, 0, 0]
    ]
    assert float(model.a_deviation[0, 0, 0]) == pytest.approx(100, rel=0.2)
    assert float(model.u_mean[0, 0, 0]) == pytest.approx(2, rel=0.2)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6])
def test_a_constant_field_is_only_shifted(value):
    constant = torch.full((7, 1, 8), value)
    model = Normalised(Recorder(), 1, 1, 1).set_moments([(constant, 1)], [(constant, 1)])
    model(constant + 0.5)
    torch.testing.assert_close(model.model.seen, torch.full((7, 1, 8), 0.5))


def test_a_rollout_of_a_decay_is_its_trajectory():
    """u(t + 1) = u(t) / 2 and v(t + 1) = v(t) / 4, with a static field that is ignored."""

    class Decay(nn.Module):
        def forward(self, seen):
            return torch.stack([seen[:, 1] / 2, seen[:, 3] / 4], dim=1)

    u, v, static = torch.randn(3, 5, 1, 8)
    halves = torch.cat([u / 2**t for t in range(6)], dim=1)
    quarters = torch.cat([v / 4**t for t in range(6)], dim=1)
    a = torch.cat([halves[:, :2], quarters[:, :2], static], dim=1)
    out = Rollout(Decay(), n_input=2, n_times=6, fields=2)(a)
    assert torch.equal(out, torch.cat([halves, quarters], dim=1))


def moving_pairs(frames):
    """Two fields on four frames, of which the input has some, and a static one."""
    u = torch.cat([7 + torch.randn(30, 4, 8), 0.01 * torch.randn(30, 4, 8)], dim=1)
    static = 3 * torch.randn(30, 1, 8)
    a = torch.cat([u[:, :frames], u[:, 4 : 4 + frames], static], dim=1)
    times = (0.0, 1.0, 2.0, 3.0)
    return Pairs(
        a, u, Grid((8,), (0.0,), (1.0,)), tuple(range(30)), times, ("h", "v"), ("h", "v", "b")
    )


class Newest(nn.Module):
    """The last frame of each of two fields, of n that are seen."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, seen):
        self.seen = seen
        return seen[:, [self.n - 1, 2 * self.n - 1]]


@pytest.mark.parametrize("n", [1, 2])
def test_a_normalised_rollout_passes_frames_on(monkeypatch, n):
    """What a step puts out is what the next one takes in: with the newest frame as the next, all
    later frames are the input's last, in units that differ by field."""
    monkeypatch.setattr(prepare, "build_model", lambda *_, **__: Newest(n))
    pairs = moving_pairs(frames=n)
    model = build(small(rollout=n, normaliser="standard"), DataShape.of(pairs), pairs)
    out = pairs.trajectory(model(pairs.a))
    truth = pairs.trajectory()
    assert torch.equal(out[:, :n], truth[:, :n])
    torch.testing.assert_close(out[:, n:], truth[:, n - 1 : n].expand(-1, 4 - n, -1, -1))
    seen = model.model.model.seen
    assert seen.mean((0, 2)).abs().max() < 0.3
    assert (seen.std((0, 2)) - 1).abs().max() < 0.3


def test_all_frames_at_once_are_normalised_too(monkeypatch):
    monkeypatch.setattr(prepare, "build_model", lambda *_, **__: Recorder())
    pairs = moving_pairs(frames=2)
    pairs = replace(pairs, u=pairs.a[:, :4], times=(0.0, 1.0))
    model = build(small(normaliser="standard"), DataShape.of(pairs), pairs)
    recorder = model.model
    model.model = nn.Sequential(recorder, First(4))
    torch.testing.assert_close(model(pairs.a), pairs.u)
    assert (recorder.seen.std((0, 2)) - 1).abs().max() < 0.3


class First(nn.Module):
    """The first n channels."""

    def __init__(self, n):
        super().__init__()
        self.n = n

    def forward(self, v):
        return v[:, : self.n]


def test_a_rollout_sees_all_fields_of_the_data():
    pairs = load_pairs(small(rollout=3), "train")
    assert torch.equal(pairs.a, pairs.u[:, :3])
