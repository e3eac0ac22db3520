import math
import os
import random
import re
import struct
import warnings
from collections import Counter, OrderedDict
from hashlib import sha256

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from sfo import SFO
from sfo.training import checkpoint
from sfo.training.checkpoint import CheckpointError, best, check_shapes, latest, load, save
from sfo.training.tree import DTYPES, MAX_DEPTH, flatten, unflatten


def same(a, b):
    """Equal in type, order and every bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        attached = getattr(a, "_metadata", None), getattr(b, "_metadata", None)
        return same([*a.items()], [*b.items()]) and same(*attached)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and bits(a) == bits(b)
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    return a == b


def bits(x):
    x = x.resolve_conj().resolve_neg()
    return x.clone(memory_format=torch.contiguous_format).untyped_storage().tolist()


def through_disk(state, folder):
    return load(save(state, folder, step=0))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


class Training:
    """A few moving parts: dropout, batch statistics, momenta, a schedule, three generators."""

    def __init__(self, optimizer, scheduler, seed):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        self.generator = np.random.default_rng(seed)
        self.model = nn.Sequential(
            nn.Linear(4, 16), nn.BatchNorm1d(16), nn.Dropout(0.3), nn.Linear(16, 1)
        )
        self.average = torch.optim.swa_utils.AveragedModel(self.model)
        self.optimizer = optimizer(self.model.parameters())
        self.scheduler = scheduler(self.optimizer)

    def step(self):
        noise = self.generator.normal() + np.random.normal() + random.random()  # noqa: NPY002
        loss = (self.model(torch.randn(8, 4)) - noise).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        plateau = isinstance(self.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
        self.scheduler.step(*([loss.item()] if plateau else []))
        self.average.update_parameters(self.model)
        return loss.item()

    def state(self):
        return {
            "model": self.model.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            "generators": (
                torch.get_rng_state(),
                np.random.get_state(),  # noqa: NPY002
                random.getstate(),
                self.generator.bit_generator.state,
            ),
        }

    def restore(self, state):
        self.model.load_state_dict(state["model"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["generators"][0])
        np.random.set_state(state["generators"][1])  # noqa: NPY002
        random.setstate(state["generators"][2])
        self.generator.bit_generator.state = state["generators"][3]


SCHEDULERS = torch.optim.lr_scheduler
SETTINGS = [
    (
        lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
        lambda o: SCHEDULERS.OneCycleLR(o, max_lr=1e-2, total_steps=20),
    ),
    (
        lambda p: torch.optim.AdamW(p, lr=torch.tensor(1e-2)),
        lambda o: SCHEDULERS.MultiStepLR(o, [2, 4, 4, 6]),
    ),
    (
        lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
        lambda o: SCHEDULERS.ReduceLROnPlateau(o, patience=1),
    ),
]


@pytest.mark.parametrize(
    ("optimizer", "scheduler"), SETTINGS, ids=["one cycle", "milestones", "plateau"]
)
def test_training_goes_on_bit_for_bit(tmp_path, optimizer, scheduler):
    """Five steps after a load give the losses and the state of five steps without."""
    training = Training(optimizer, scheduler, seed=0)
    for _ in range(3):
        training.step()
    path = save(training.state(), tmp_path, step=3)
    assert same(load(path), training.state())
    losses = [training.step() for _ in range(5)]
    resumed = Training(optimizer, scheduler, seed=1)
    resumed.restore(load(path))
    assert [resumed.step() for _ in range(5)] == losses
    assert same(resumed.state(), training.state())


def test_a_model_with_extra_state_comes_back(tmp_path):
    """The training grid of an SFO is extra state: on another grid it decides the answer."""
    model = SFO(1, 1, n_modes=4, hidden_channels=8, n_layers=1, transfer="restrict")
    model(torch.zeros(1, 1, 32))
    fresh = SFO(1, 1, n_modes=4, hidden_channels=8, n_layers=1, transfer="restrict")
    fresh.load_state_dict(through_disk({"model": model.state_dict()}, tmp_path)["model"])
    a = torch.randn(2, 1, 24)
    assert torch.equal(fresh(a), model(a))


KEYS = st.one_of(st.text(max_size=5), st.integers(-3, 3))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(0, 3), max_size=3).map(torch.rand),
    st.integers(0, 9).map(np.arange),
    st.floats(width=32).map(np.float32),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.dictionaries(KEYS, inner, max_size=4).map(OrderedDict),
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(state=TREES)
def test_any_tree_comes_back(state, tmp_path_factory):
    assert same(unflatten(*flatten(state)), state)
    assert same(through_disk(state, tmp_path_factory.mktemp("any")), state)


@pytest.mark.parametrize(
    "value",
    [
        *(math.inf, -math.inf, math.nan, -math.nan, -0.0, 5e-324, 1.7976931348623157e308, 0.1),
        struct.unpack("d", bytes([1, 2, 3, 4, 5, 6, 0xFF, 0x7F]))[0],
        *(2**62, 2**63, -(2**63), -(2**63) - 1, 10**5000),
        *("", "\0", "\ud800", '{"tensor":"x"}', "ϕ"),
        *([], (), {}, [[]], ({},), torch.Size([2, 3]), Counter({4: 2}), OrderedDict(b=1, a=2)),
        {"tensor": "x"},
        {"__metadata__": torch.ones(1), "__metadata__~": torch.zeros(1)},
        {0: torch.zeros(1), "0": torch.ones(2)},
        {"a/b": torch.zeros(1), "a": {"b": torch.ones(1)}},
        {"\ud800": torch.zeros(1), "?": torch.ones(1)},
        {"../../etc/passwd": torch.zeros(1)},
        *(np.float64(0.1), np.float32("nan"), np.bool_(True), np.uint64(2**64 - 1), np.array(1)),
        *(np.zeros((0, 3)), np.arange(6.0).reshape(2, 3).T, np.arange(4)[::-1], np.array([1j])),
    ],
    ids=lambda value: type(value).__name__,
)
def test_odd_values_come_back(tmp_path, value):
    assert same(through_disk(value, tmp_path), value)
    assert same(through_disk({"value": value}, tmp_path), {"value": value})


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64, torch.complex128], ids=str)
def test_every_dtype_comes_back(tmp_path, dtype):
    x = torch.randn(3, 4, 2, dtype=torch.float64).mul(40).abs().to(dtype)
    state = {"x": x, "one": x[0, 0, 0], "none": x[:0], "turned": x.mT, "step": x[:1, 0, 0][::2]}
    state["same"] = x[:, :1].expand(3, 9, 2)
    if dtype.is_complex:
        state |= {"conjugate": x.conj(), "negative": x.conj().imag}
    assert same(load(save(state, tmp_path, step=0), require_finite=[*state]), state)


def test_parameters_come_back_as_tensors(tmp_path):
    parameter = nn.Parameter(torch.randn(3))
    assert same(through_disk({"x": parameter}, tmp_path), {"x": parameter.detach()})


def test_another_reader_agrees(tmp_path):
    """The file is plain safetensors: the reference reader finds the tensors by their paths."""
    state = {
        "model": nn.Linear(3, 2).state_dict(),
        "optimizer": {"state": {0: {"step": torch.tensor(4.0)}}},
        "mask": torch.tensor([True, False, True]),
    }
    path = save(state, tmp_path, step=12)
    tensors = load_file(path)
    assert set(tensors) == {"model/weight", "model/bias", "optimizer/state/0/step", "mask"}
    assert torch.equal(tensors["model/weight"], state["model"]["weight"])
    assert torch.equal(tensors["mask"], state["mask"])
    with safe_open(path, "pt") as file:
        assert file.metadata()["step"] == "12"


def test_the_hash_is_that_of_the_file_with_zeros_in_its_place(tmp_path):
    content = save({"x": torch.arange(5)}, tmp_path, step=0).read_bytes()
    digits = re.search(rb'"sha256":"([0-9a-f]{64})"', content)[1]
    assert sha256(content.replace(digits, b"0" * 64)).hexdigest() == digits.decode()


def test_the_same_state_gives_the_same_bytes(tmp_path):
    state = {"x": torch.arange(5), "y": [1, (2.5, None)]}
    first = save(state, tmp_path / "a", step=1)
    again = save(load(first), tmp_path / "b", step=1)
    assert first.read_bytes() == again.read_bytes()


class Cycle(list):
    pass


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1, 2}, "Cannot store 'a/0', of type set: a checkpoint holds numbers"),
        (1j, "of type complex"),
        (b"", "of type bytes"),
        (print, "of type builtin_function_or_method"),
        (Cycle(), "of type Cycle"),
        (torch.zeros(2, device="meta"), "of type torch.float32 Tensor"),
        (torch.eye(2).to_sparse(), "of type torch.float32 Tensor"),
        (np.array(["text"]), "of type <U4 ndarray"),
        (np.array([None]), "of type object ndarray"),
        (np.longdouble(1), "of type float128 longdouble"),
        ({1.5: 0}, "its key 1.5 is neither text nor a whole number"),
        ({True: 0}, "its key True is neither"),
    ],
)
def test_what_cannot_be_stored_is_named(tmp_path, value, message):
    with pytest.raises(CheckpointError, match=re.escape(message)):
        save({"a": [value]}, tmp_path / "new", step=0)
    assert not (tmp_path / "new").exists()


def test_a_state_that_contains_itself():
    state = {}
    state["state"] = state
    with pytest.raises(CheckpointError, match="100 levels deep or contains itself"):
        flatten(state)


def test_as_deep_as_can_be(tmp_path):
    state = 1.0
    for _ in range(MAX_DEPTH):
        state = {"deeper": state}
    assert same(through_disk(state, tmp_path), state)


def test_too_much_text(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "MAX_HEADER", 1000)
    with pytest.raises(CheckpointError, match=r"at most 1,000: keep long lists as tensors"):
        save({"history": [0.5] * 1000}, tmp_path, step=0)


@pytest.mark.parametrize("arguments", [{"step": -1}, {"step": 0, "keep_last": 0}])
def test_bad_arguments(tmp_path, arguments):
    with pytest.raises(CheckpointError, match="`step` must be at least 0 and `keep_last` at"):
        save({}, tmp_path, **arguments)


def test_the_last_and_the_best_are_kept(tmp_path):
    assert latest(tmp_path / "none") is None
    assert best(tmp_path) is None
    for step in (1, 2, 3, 5, 100_000_000):
        path = save({"step": step}, tmp_path, step, keep_last=2, best=step == 2)
        assert latest(tmp_path) == path
    assert names(tmp_path) == [
        "best.safetensors",
        "step-00000005.safetensors",
        "step-100000000.safetensors",
    ]
    assert load(best(tmp_path)) == {"step": 2}
    save({"step": 7}, tmp_path, 100_000_001, keep_last=1, best=True)
    assert names(tmp_path) == ["best.safetensors", "step-100000001.safetensors"]
    assert load(best(tmp_path)) == {"step": 7}


def test_the_best_takes_no_room_of_its_own(tmp_path):
    path = save({"x": torch.ones(9)}, tmp_path, step=1, best=True)
    assert os.path.samefile(path, best(tmp_path))


def test_the_best_is_copied_where_there_are_no_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = save({"x": 1}, tmp_path, step=1, best=True)
    assert not os.path.samefile(path, best(tmp_path))
    assert load(path) == load(best(tmp_path)) == {"x": 1}


def test_a_step_saved_again_is_replaced(tmp_path):
    for value in (1, 2):
        path = save({"value": value}, tmp_path, step=1, best=True)
    assert load(path) == load(best(tmp_path)) == {"value": 2}


def test_damaged_checkpoints_are_passed_over_and_left(tmp_path):
    for step in (1, 2, 3):
        save({"step": step}, tmp_path, step, keep_last=3, best=step == 1)
    for step in (2, 3):
        (tmp_path / f"step-0000000{step}.safetensors").write_bytes(b"")
    with pytest.warns(UserWarning, match="A checkpoint is passed over") as caught:
        assert load(latest(tmp_path)) == {"step": 1}
    assert ["step-00000003" in str(w.message) for w in caught] == [True, False]
    assert len(names(tmp_path)) == 4
    (tmp_path / "best.safetensors").write_bytes(b"")
    with pytest.warns(UserWarning, match=r"best\.safetensors is refused"):
        assert best(tmp_path) is None


def test_what_a_kill_left_is_swept_up_and_nothing_else(tmp_path):
    ours = [".step-00000001.safetensors.abcd1_89", ".best.safetensors.01234567"]
    others = [".step-00000001.safetensors.txt", ".best.safetensors.swp", ".hidden", "notes.txt"]
    for name in ours + others:
        (tmp_path / name).touch()
    (tmp_path / ".best.safetensors.folder00").mkdir()
    with pytest.warns(UserWarning, match=r"Cannot remove .*folder00"):
        path = save({}, tmp_path, step=1)
    assert names(tmp_path) == sorted([*others, ".best.safetensors.folder00", path.name])


def test_a_run_taken_back_to_an_earlier_step(tmp_path):
    """`latest` follows the run that continues now; the steps it has undone are kept aside."""
    for step in (100, 200, 300):
        save({"step": step}, tmp_path, step, keep_last=3)
    with pytest.warns(UserWarning, match="later than step 150") as caught:
        save({"step": 150}, tmp_path, step=150)
    assert len(caught) == 2
    assert load(latest(tmp_path)) == {"step": 150}
    assert load(tmp_path / "step-00000300.safetensors.aside") == {"step": 300}


def test_a_renamed_checkpoint_is_refused(tmp_path):
    save({"step": 1}, tmp_path, step=1).rename(tmp_path / "step-00000002.safetensors")
    with pytest.raises(CheckpointError, match="the checkpoint of step 1 under another's name"):
        load(tmp_path / "step-00000002.safetensors")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_weights_must_be_finite_where_asked(tmp_path, value):
    weights = torch.zeros(3)
    save({"model": {"w": weights}, "loss": math.inf}, tmp_path, step=1)
    weights[1] = value
    path = save({"model": {"w": weights}, "loss": math.inf}, tmp_path, step=2)
    assert load(path)["loss"] == math.inf
    with pytest.raises(CheckpointError, match="'model/w' has NaN or infinite entries"):
        load(path, require_finite=("model",))
    with pytest.warns(UserWarning, match="infinite entries"):
        assert latest(tmp_path, require_finite=("model",)).name == "step-00000001.safetensors"
    with pytest.raises(CheckpointError, match="it has no part 'net'; it has model, loss"):
        load(path, require_finite=("net",))


def test_shapes_are_compared_with_a_template():
    template = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)).state_dict()
    check_shapes(template, template)
    wider = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1)).state_dict()
    with pytest.raises(CheckpointError, match=r"'0.weight' has shape \(4, 2\), but \(3, 2\) is"):
        check_shapes(wider, template)
    shorter = nn.Sequential(nn.Linear(2, 3)).state_dict()
    with pytest.raises(CheckpointError, match=r"'1.weight' is missing, but \(1, 3\) is needed"):
        check_shapes(shorter, template)
    with pytest.raises(CheckpointError, match=r"'1.weight' has shape \(1, 3\), but none is"):
        check_shapes(template, shorter)


def test_nothing_is_warned_of_in_ordinary_use(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(4):
            save({"x": torch.ones(2)}, tmp_path / "deep" / "folder", step, best=True)
        load(latest(tmp_path / "deep" / "folder"))
        load(best(tmp_path / "deep" / "folder"))
