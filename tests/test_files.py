"""Partial files and locks: no two writers share one, however they spell the path."""

import errno
import os

import pytest
from training.small_runs import small

from sfo import files
from sfo.training.folder import RunFolder


@pytest.fixture
def spellings(tmp_path):
    """One file by its name, through a linked folder and through a link to it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "file").symlink_to("real/file")
    return [tmp_path / "real" / "file", tmp_path / "linked" / "file", tmp_path / "file"]


def test_every_writer_has_a_partial_file_of_its_own(spellings):
    """Beside the file that links lead to; the last to finish gives it its content."""
    target, *others = spellings
    with files.unfinished(target) as first:
        first.write_text("first")
        for other in others:
            with files.unfinished(other) as second:
                second.write_text("second")
                assert second != first
                assert second.parent == first.parent == target.parent
            assert target.read_text() == "second"
    assert target.read_text() == "first"
    assert [p.name for p in target.parent.iterdir()] == ["file"]
    assert spellings[2].is_symlink()


def test_one_lock_whatever_leads_to_the_file(spellings, monkeypatch, tmp_path):
    """And whatever the temporary folder is."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
    locks = {files.lock_path(path) for path in spellings}
    assert locks == {spellings[0].with_name(".file.lock")}
    assert {files.lock_path(tmp_path / n) for n in ("real", "linked")} == {
        tmp_path / "real" / ".lock"
    }


def test_a_file_system_without_locks_is_refused(tmp_path, monkeypatch):
    """As Lustre may be mounted: the lock that FileLock falls back to is held for ever."""
    fcntl = pytest.importorskip("fcntl")

    def missing(file, operation):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", missing)
    said = r"has no locks \(flock\); mount it with them, or choose a folder elsewhere"
    with pytest.raises(OSError, match=said), files.locked(tmp_path / "lock", timeout=0.1):
        pass


def test_a_run_in_a_linked_folder_is_the_same_run(tmp_path, monkeypatch):
    monkeypatch.setattr("sfo.training.folder.LOCK_TIMEOUT", 0.1)
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to("real")
    with (
        RunFolder(tmp_path / "real").opened(small(), False),
        pytest.raises(ValueError, match="is in use"),
        RunFolder(tmp_path / "linked").opened(small(), "auto"),
    ):
        pass


DAMAGED_JSON = {
    "nothing": "",
    "no object": "null",
    "a list": "[]",
    "a number": "5",
    "not JSON": "{",
    "zeros": "\0\0",
    "deep": "[" * 100_000,
    "deep objects": '{"a":' * 50_000,
    "huge": "9" * 5000,
}


@pytest.mark.parametrize("text", DAMAGED_JSON.values(), ids=DAMAGED_JSON)
def test_whatever_a_json_file_holds_is_a_sentence(text, tmp_path):
    """A list in record.json, and brackets in brackets anywhere, ended in a traceback."""
    from sfo.experiments.record import Record
    from sfo.models.pretrained import PretrainedError, read_config
    from sfo.training.config import Experiment
    from sfo.training.folder import RunFolder

    for name in ("record.json", "experiment.json", "cost.json", "config.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"record.json is not a Record"):
        Record.load(tmp_path / "record.json")
    with pytest.raises(ValueError, match=r"experiment.json: An experiment must be"):
        Experiment.load(tmp_path / "experiment.json")
    with pytest.raises(ValueError, match=r"cost.json is damaged"):
        RunFolder(tmp_path).cost()
    with pytest.raises(PretrainedError, match=r"config.json is "):
        read_config(tmp_path)
    if text.strip():
        (tmp_path / "metrics.jsonl").write_text('{"epoch": 0}\n' + text + "\n")
        with pytest.raises(ValueError, match=r"metrics.jsonl, line 2, is damaged"):
            RunFolder(tmp_path).history()


def test_a_record_that_was_sealed_again(tmp_path):
    """Its seal is no secret, so what is in it may be anything."""
    from sfo.experiments.record import Record, seal

    for entries in ({}, {"errors": 5}, {"errors": {}, "experiment": []}, {"errors": {"x": 1}}):
        (tmp_path / "record.json").write_text(seal(entries))
        with pytest.raises(ValueError, match=r"record.json holds what no Record does"):
            Record.load(tmp_path / "record.json")


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    """ "[Errno 28] No space left on device" was all that predict, show and report said."""
    full = OSError(errno.ENOSPC, "No space left on device")

    def refuse(handle):
        raise full

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match=r"No space left on device: .*numbers.txt"):
        files.write_atomically(tmp_path / "numbers.txt", b"1")
    full.filename = None
    with (
        pytest.raises(OSError, match=r"No space left on device: .*numbers.txt"),
        files.unfinished(tmp_path / "numbers.txt") as path,
    ):
        path.write_text("1")
    assert not list(tmp_path.iterdir())
