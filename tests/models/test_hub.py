"""The hub, played by a stand-in on the loopback address: no test reaches a network."""

import hashlib
import importlib.util
import json
import socket
import time
from pathlib import Path

import pytest
import torch
from hub_stand_in import serving

from sfo import SFO
from sfo.experiments.record import Record
from sfo.models import FNO
from sfo.models.pretrained import PretrainedError

RECORD = next(Path(__file__).parents[2].glob("results/desk/records/allen_cahn-sfo-0-*.json"))


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub of its own with an empty cache, and an account that may write."""
    from huggingface_hub import constants

    with serving() as (hub, address):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setenv("HF_TOKEN", "hf_test")
        yield hub


def small(bias=0.0):
    torch.manual_seed(0)
    model = SFO(1, 2, n_modes=4, hidden_channels=8, n_layers=1, train_shape=(16,))
    with torch.no_grad():
        model.project.bias.add_(bias)
    return model


def newest(hub):
    return hub.repositories["owner/name"][-1]


def test_a_pushed_model_comes_back(hub):
    model, a = small(), torch.randn(2, 1, 16)
    address = model.push_to_hub("owner/name", private=True)
    assert address.endswith(hub.oid("owner/name", 1))
    assert hub.private["owner/name"] in (True, "private")
    hub.requests.clear()
    assert torch.equal(SFO.from_pretrained("owner/name")(a), model(a))
    fetched = {path.split("/")[-1] for method, path in hub.requests if method == "GET"}
    weights = next(path for path in newest(hub) if path.startswith("weights-"))
    assert fetched == {"config.json", weights}, "only configuration and weights are fetched"


def test_a_revision_is_pinned_and_old_weights_go(hub):
    a = torch.randn(1, 1, 16)
    for bias in (0.0, 1.0):
        small(bias).push_to_hub("owner/name")
    assert len([path for path in newest(hub) if path.startswith("weights-")]) == 1
    first = hub.oid("owner/name", 1)
    torch.testing.assert_close(SFO.from_pretrained("owner/name")(a), small(1.0)(a))
    torch.testing.assert_close(SFO.from_pretrained("owner/name", revision=first)(a), small()(a))
    with pytest.raises(PretrainedError, match=r"'owner/name' has no revision 'v9'\.$"):
        SFO.from_pretrained("owner/name", revision="v9")


def test_a_local_folder_wins(hub):
    small(1.0).push_to_hub("owner/name")
    small().save_pretrained("owner/name")
    hub.requests.clear()
    a = torch.randn(1, 1, 16)
    assert torch.equal(SFO.from_pretrained("owner/name")(a), small()(a))
    assert not hub.requests
    with pytest.raises(ValueError, match="`revision` is for repositories on the hub"):
        SFO.from_pretrained("owner/name", revision="main")


def test_the_card_is_written_from_the_record(hub):
    record = Record.load(RECORD)
    small().push_to_hub("owner/name", record=record)
    card = newest(hub)["README.md"].decode()
    assert card.startswith("---\nlibrary_name: sfo-torch\n")
    assert f"Relative L2: {100 * record.errors['relative_l2']:.3g} %" in card
    assert f"{record.parameters:,} parameters" in card
    assert f"the benchmark `allen_cahn`, scale {record.experiment.data.scale}" in card
    assert "`sfo train --config train.json`" in card
    assert "license: " not in card
    experiment = json.loads(newest(hub)["train.json"])
    assert experiment == record.experiment.model_dump(mode="json")
    assert Record.from_json(newest(hub)["record.json"].decode()) == record


def test_damage_and_pickles_are_refused(hub):
    """The hash is compared, and bytes with a matching hash are still not safetensors."""
    small().push_to_hub("owner/name")
    files = newest(hub)
    name = next(path for path in files if path.startswith("weights-"))
    hub.repositories["owner/damaged"] = [{**files, name: files[name][:-1] + b"?"}]
    with pytest.raises(PretrainedError, match="is damaged: its SHA-256"):
        SFO.from_pretrained("owner/damaged")
    payload = b"cos\nsystem\n(S'exit 1'\ntR."
    config = json.loads(files["config.json"]) | {"sha256": hashlib.sha256(payload).hexdigest()}
    hub.repositories["owner/pickle"] = [{"config.json": json.dumps(config).encode(), name: payload}]
    with pytest.raises(PretrainedError, match="does not describe a SFO"):
        SFO.from_pretrained("owner/pickle")
    with pytest.raises(PretrainedError, match="holds a SFO, not a FNO"):
        FNO.from_pretrained("owner/name")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, r"There is no folder and no public repository 'owner/other'; .*`\.$"),
        ({"README.md": b"#"}, r"'owner/other' holds no model of this package: a file is missing"),
        ({"config.json": b'{"model_type": "bert"}'}, r"its config\.json is of another kind\.$"),
        ({"config.json": b"{"}, r"its config\.json is of another kind\.$"),
    ],
)
def test_repositories_of_other_kinds(hub, files, message):
    if files is not None:
        hub.repositories["owner/other"] = [files]
    with pytest.raises(PretrainedError, match=message) as error:
        SFO.from_pretrained("owner/other")
    assert "\n" not in str(error.value)


def test_no_network(hub, monkeypatch):
    """One attempt: huggingface_hub's six, with its pauses, took 24 seconds."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("waits for another attempt"))
    with pytest.raises(PretrainedError) as error:
        SFO.from_pretrained("owner/name")
    assert str(error.value) == (
        "There is no folder 'owner/name', no earlier download of a repository of that name, and "
        "the Hugging Face Hub cannot be reached."
    )
    with pytest.raises(PretrainedError, match=r"The Hugging Face Hub cannot be reached: .*\.$"):
        small().push_to_hub("owner/name")


def test_a_hub_that_says_nothing_is_not_waited_for(hub, monkeypatch):
    """A firewall that drops packets: the connection stands, and no answer comes."""
    monkeypatch.setenv("HF_HUB_ETAG_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        start = time.monotonic()
        with pytest.raises(PretrainedError, match=r"and the Hugging Face Hub cannot be reached\.$"):
            SFO.from_pretrained("owner/name")
        assert time.monotonic() - start < 5


def test_without_the_hub_an_earlier_download_is_read(hub, monkeypatch):
    model, a = small(), torch.randn(2, 1, 16)
    model.push_to_hub("owner/name")
    SFO.from_pretrained("owner/name")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("waits for another attempt"))
    assert torch.equal(SFO.from_pretrained("owner/name")(a), model(a))


@pytest.mark.parametrize(
    "name",
    ["missing", "./missing", "../a/b", "~/missing", "/missing/a", "runs/ac/model", "runs/a--b",
     "runs/", "runs/a.git", "runs/-a", "läufe/a", "runs\\a", "runs/" + "a" * 92],
)  # fmt: skip
def test_what_cannot_be_a_repository_is_not_asked_for(hub, name):
    """By the hub's own rules for names; some of these were asked for, or ended in its error."""
    with pytest.raises(PretrainedError, match=r"There is no folder .* has the form owner/name"):
        SFO.from_pretrained(name)
    assert not hub.requests


def test_who_may_not_write_is_told(hub, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    with pytest.raises(PretrainedError, match=r"status 401; log in"):
        small().push_to_hub("owner/name")
    with pytest.raises(ValueError, match="`repository` must be owner/name, got 'name'"):
        small().push_to_hub("name")


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PretrainedError, match=r"no folder 'a/b', .*pip install '\.\[hub\]'"):
        SFO.from_pretrained("a/b")
