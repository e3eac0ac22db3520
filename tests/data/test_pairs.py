"""Pairs and splits: channel order, dtypes, and who trains, selects and reports."""

from dataclasses import replace

import pytest
import torch
from data.tiny import TinyGroups

from sfo.data.pairs import Split, pairs, split
from sfo.data.trajectories import Trajectories
from sfo.grid import Grid


def made(samples=4):
    kind = TinyGroups()
    return kind.simulate(0, range(samples), kind.scale("smoke"))


def test_fields_of_the_input_are_its_channels_by_name():
    """Frames of moving fields side by side, one channel per static field, in the inputs' order."""
    values = torch.arange(2 * 4 * 2 * 5, dtype=torch.float64).reshape(2, 4, 2, 5)
    static = -torch.ones(2, 1, 5, dtype=torch.float64)
    grid = Grid((5,), (0.0,), (1.0,))
    made = Trajectories(values, torch.linspace(0, 1, 4), grid, ("h", "u"), (0, 1), static, ("bed",))
    both = pairs(made, inputs=("u", "bed", "h"), n_input=3)
    fields = both.fields()
    assert both.n_input == 3
    assert torch.equal(fields["u"], values[:, :3, 1].float())
    assert torch.equal(fields["bed"], static.float())
    assert torch.equal(both.fields(2 * both.a)["h"], 2 * values[:, :3, 0].float())
    steady = pairs(replace(made, values=values[:, :1], times=torch.zeros(1)), inputs=("bed",))
    assert steady.n_input == 0


def test_channels_are_fields_with_their_times_side_by_side():
    t = made()
    p = pairs(t, inputs=("v", "b"), n_input=2)
    assert p.a.dtype == p.u.dtype == torch.float32
    for c in range(2):
        for time in range(3):
            assert torch.equal(p.u[:, 3 * c + time], t.values[:, time, c].float())
    assert torch.equal(p.a[:, 0], t.values[:, 0, 1].float())
    assert torch.equal(p.a[:, 1], t.values[:, 1, 1].float())
    assert torch.equal(p.a[:, 2], t.static[:, 0].float())
    assert torch.equal(p.trajectory(), t.values.float())


def test_rows_keep_their_ids():
    p = pairs(made())[[2, 0]]
    assert p.ids == (2, 0)
    assert torch.equal(p.u[0], pairs(made()).u[2])
    assert pairs(made())[1].a.shape[0] == 1


@pytest.mark.parametrize("n", [3, 10, 57, 1000])
def test_the_default_split_shares_no_sample(n):
    s = split(n)
    assert sorted(s.train + s.validation + s.test) == list(range(n))
    assert len(s.test) == len(s.validation) == max(1, n // 10)


def test_the_papers_split_selects_and_reports_on_the_last_tenth():
    s = split(1000, "paper")
    assert s.train == tuple(range(900))
    assert s.validation == s.test == tuple(range(900, 1000))
    assert split(1000, "paper_first").test == tuple(range(100))


def test_deduplicated_uses_each_class_once():
    """No sample of one part equals one of another, which the paper's split does not promise."""
    digests = [bytes([i % 13]) for i in range(100)]
    s = split(100, "deduplicated", digests)
    ids = s.ids("all")
    assert len(ids) == 13
    assert {digests[i] for i in ids} == set(digests)


def test_a_split_is_the_same_after_a_trip_to_disk(tmp_path):
    s = split(50)
    s.save(tmp_path / "split.json")
    assert Split.load(tmp_path / "split.json") == s


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split(2), "at least 3 samples"),
        (lambda: split(10, "papre"), "`scheme` must be one of 'default', 'paper'"),
        (lambda: split(10).ids("paper"), "pass scheme='paper'"),
        (lambda: pairs(made(), inputs=("w",)), "`inputs` must be some of h, v, b"),
        (lambda: pairs(made(), n_input=9), "`n_input` must be in 1..3"),
    ],
)
def test_bad_arguments_get_one_clear_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()
