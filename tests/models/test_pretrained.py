import json
import os

import pytest
import torch

from sfo import SFO
from sfo.models import pretrained
from sfo.models.pretrained import PretrainedError


@pytest.fixture
def saved(tmp_path):
    model = SFO(1, 2, n_modes=4, hidden_channels=8, n_layers=2, transfer="restrict")
    model(torch.zeros(1, 1, 32))
    model.save_pretrained(tmp_path / "model")
    return model, tmp_path / "model"


def weights_of(folder):
    (path,) = folder.glob("weights-*.safetensors")
    return path


def test_the_same_map_comes_back(saved):
    model, folder = saved
    loaded = SFO.from_pretrained(folder)
    for n in (32, 24):
        a = torch.randn(2, 1, n)
        assert torch.equal(loaded(a), model(a))
    assert loaded.arguments == model.arguments


def test_double_precision_and_training_grid_come_back(tmp_path):
    model = SFO(1, 1, n_modes=4, hidden_channels=8, train_shape=(16,)).double()
    loaded = SFO.from_pretrained(model.save_pretrained(tmp_path))
    assert loaded.modes.train_shape == (16,)
    a = torch.randn(1, 1, 20, dtype=torch.float64)
    assert torch.equal(loaded(a), model(a))


def test_every_flipped_bit_is_noticed(saved):
    _, folder = saved
    path = weights_of(folder)
    content = path.read_bytes()
    for place in range(0, len(content), max(1, len(content) // 50)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << (place % 8)
        path.write_bytes(bytes(damaged))
        with pytest.raises(PretrainedError, match="is damaged: its SHA-256"):
            SFO.from_pretrained(folder)


def test_truncated_weights(saved):
    _, folder = saved
    path = weights_of(folder)
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(PretrainedError, match="is damaged"):
        SFO.from_pretrained(folder)


def change_config(folder, **changes):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "other"}, "is not the configuration of"),
        ({"version": 99}, "has version 99; this package reads version 1"),
        ({"model": "gno"}, "holds a model 'gno', which this version does not know; known:"),
        ({"weights": "../evil.safetensors"}, "names weights outside of its folder"),
        ({"weights": None}, "weights is missing"),
        ({"arguments": {"in_channels": 1, "out_channels": 2, "depth": 3}}, "depth"),
        ({"arguments": {"in_channels": 9, "out_channels": 2}}, "does not describe a SFO"),
        ({"dtype": "no_such"}, "does not describe a SFO"),
    ],
)
def test_foreign_configuration(saved, changes, message):
    _, folder = saved
    change_config(folder, **changes)
    with pytest.raises(PretrainedError, match=message):
        SFO.from_pretrained(folder)


def test_not_a_model(tmp_path):
    with pytest.raises(PretrainedError, match=r"No model in .*: cannot read config\.json"):
        SFO.from_pretrained(tmp_path / "nothing")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(PretrainedError, match="it is not JSON"):
        SFO.from_pretrained(tmp_path)


def test_a_pickle_is_refused_unopened(saved):
    """Foreign bytes with a matching hash are still not safetensors."""
    import hashlib

    _, folder = saved
    payload = b"cos\nsystem\n(S'exit 1'\ntR."
    weights_of(folder).write_bytes(payload)
    change_config(folder, sha256=hashlib.sha256(payload).hexdigest())
    with pytest.raises(PretrainedError, match="does not describe a SFO"):
        SFO.from_pretrained(folder)


@pytest.mark.parametrize("failing", ["fsync", "replace"])
@pytest.mark.parametrize("call", [1, 2])
def test_a_failed_save_leaves_the_old_model(saved, monkeypatch, failing, call):
    """A full disk at any step: the folder still holds the old model, whole, and no litter."""
    model, folder = saved
    before = model(torch.ones(1, 1, 32))
    with torch.no_grad():
        model.project.bias.add_(1)
    original, calls = getattr(os, failing), []

    def fail(*arguments):
        calls.append(arguments)
        if len(calls) == call:
            raise OSError(28, "No space left on device")
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(pretrained.os, failing, fail)
        with pytest.raises(OSError, match="No space"):
            model.save_pretrained(folder)
    assert torch.equal(SFO.from_pretrained(folder)(torch.ones(1, 1, 32)), before)
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
    model.save_pretrained(folder)
    torch.testing.assert_close(SFO.from_pretrained(folder)(torch.ones(1, 1, 32)), before + 1)
    assert len(list(folder.iterdir())) == 2
