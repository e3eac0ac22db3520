"""Checkpoints under kills, full disks, decay and malice."""

import errno
import json
import os
import pickle
import random
import re
import shutil
import signal
import stat
import sys
import time
import tracemalloc
import warnings
from hashlib import sha256

import pytest
import torch
from torch import nn

from sfo import files
from sfo.training import checkpoint
from sfo.training.checkpoint import CheckpointError, best, latest, load, save


def state_at(step, best_step=1, size=50):
    return {"w": torch.full((size,), float(step)), "step": step, "best": best_step}


def sound(path):
    """The state in a file, which must be whole: all of one step."""
    state = load(path)
    assert (state["w"] == state["step"]).all()
    return state


def check_folder(folder, steps):
    """The newest checkpoint is one of `steps`, none is damaged, and its best is there."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        newest, top = sound(latest(folder)), sound(best(folder))
    assert newest["step"] in steps
    assert top["step"] >= newest["best"]
    return newest["step"]


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """Makes copies of a folder with two checkpoints, of which the first is the best."""
    # The death of a process, unlike a power cut, loses nothing that is not yet on the disk.
    monkeypatch.setattr(os, "fsync", lambda _: None)
    save(state_at(1), tmp_path / "original", step=1, best=True)
    save(state_at(2), tmp_path / "original", step=2)

    def copy():
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        return shutil.copytree(tmp_path / "original", tmp_path / "copy")

    return copy


def save_third(folder, is_best):
    return save(state_at(3, best_step=3 if is_best else 1), folder, step=3, best=is_best)


def check_next_save(folder):
    """The next save works, and nothing is left of the one that failed."""
    newest = latest(folder).name
    save(state_at(4), folder, step=4)
    names = {"best.safetensors", newest, "step-00000004.safetensors"}
    assert {path.name for path in folder.iterdir()} == names


class Killed(BaseException):
    """Is caught by nobody."""


class Faults:
    """Lets the n-th call to the system fail, before or after it is done, or all from there on."""

    CALLS = ("open", "close", "fdopen", "fsync", "replace", "link", "unlink", "listdir")

    def __init__(self, patch, place, error, when):
        self.place, self.error, self.when = place, error, when
        self.count = 0
        for name in self.CALLS:
            patch.setattr(os, name, self.faulty(getattr(os, name)))

    def faulty(self, call):
        def attempt(*arguments, **options):
            self.count += 1
            hit = self.count >= self.place if self.when == "from" else self.count == self.place
            if hit and self.when != "after":
                raise self.error
            result = call(*arguments, **options)
            if hit:
                raise self.error
            return FaultyFile(result, self) if call.__name__ == "fdopen" else result

        return attempt


class FaultyFile:
    """A file of which only half is written when a fault comes."""

    def __init__(self, file, faults):
        self.file = file
        self.write, self.flush = faults.faulty(self.write), faults.faulty(file.flush)
        self.fileno = file.fileno

    def write(self, content):
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        self.file.write(content[len(content) // 2 :])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


@pytest.mark.parametrize("when", ["before", "after", "from"])
@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "Input/output error"), Killed()],
    ids=["full", "broken", "killed"],
)
@pytest.mark.parametrize("is_best", [False, True], ids=["", "best"])
def test_a_fault_at_any_call(fresh, is_best, error, when):
    """Whichever call fails, the folder holds the old checkpoints or the new one, whole."""
    for place in range(1, 100):
        folder, steps = fresh(), (2, 3)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Cannot remove")
            faults = Faults(patch, place, error, when)
            try:
                save_third(folder, is_best)
                steps = (3,)
            except (CheckpointError, Killed) as raised:
                message = str(raised)
        check_folder(folder, steps)
        check_next_save(folder)
        if faults.count < place:
            break
    assert 8 < place < 99
    assert re.fullmatch(
        r"Cannot save .*: (No space left|Input/output error)\. Earlier .*|", message
    )


LAST_LINES = {
    function.__code__
    for function in (
        *(save, files.write_atomically, files.link_atomically, files.sync_folder),
        *(checkpoint._remove, checkpoint._set_aside, files.create_folder),
    )
}


def die_at_line(n):
    """End this process, without any clean-up, before the n-th line of the functions above."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if frame.f_code not in LAST_LINES:
            return None
        count += event == "line"
        if count == n:
            os._exit(9)
        return trace

    sys.settrace(trace)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_death_at_any_line(fresh):
    status, n = None, 0
    while status != 0:
        n += 1
        folder = fresh()
        child = os.fork()
        if child == 0:
            try:
                die_at_line(n)
                save_third(folder, is_best=True)
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, 9)
        check_folder(folder, (2, 3) if status else (3,))
        check_next_save(folder)
    assert n > 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_twenty_kills(tmp_path):
    """A process is killed at random as it saves on and on: what it reported as saved is there."""
    save(state_at(1), tmp_path, step=1, best=True)
    delay = random.Random(0)
    for _ in range(20):
        first = check_folder(tmp_path, range(10**6)) + 1
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                for step in range(first, first + 10_000):
                    state = state_at(step, best_step=step - step % 3, size=30_000)
                    save(state, tmp_path, step, best=step % 3 == 0)
                    os.write(send, step.to_bytes(4, "little"))
            finally:
                os._exit(1)
        os.close(send)
        reports = os.read(receive, 4)
        time.sleep(delay.uniform(0, 0.04))
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        while more := os.read(receive, 4096):
            reports += more
        os.close(receive)
        reported = int.from_bytes(reports[-4:], "little")
        check_folder(tmp_path, (reported, reported + 1))
    save(state_at(first + 10_000), tmp_path, step=first + 10_000)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("room", [0, 1, 100, 400])
def test_a_real_limit_on_the_size_of_files(fresh, room):
    resource = pytest.importorskip("resource")
    folder = fresh()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(CheckpointError, match=r"Cannot save .* too large"):
            save_third(folder, is_best=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check_folder(folder, (2,))
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize(
    ("is_best", "order"),
    [
        (False, "sync file, replace step, sync folder, unlink step"),
        (
            True,
            "sync file, replace best, sync folder, replace step, sync folder, unlink step",
        ),
    ],
)
def test_the_order_that_outlives_a_power_cut(fresh, monkeypatch, is_best, order):
    """Content is on the disk before its name, the name before an old checkpoint is removed."""
    folder, calls = fresh(), []
    fsync, replace, unlink = os.fsync, os.replace, os.unlink

    def record(kind, call):
        def recorded(*arguments, **options):
            calls.append(f"{kind(*arguments)}")
            return call(*arguments, **options)

        return recorded

    def synced(handle):
        return "sync " + ("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")

    def kind(path):
        return os.path.basename(path)[:4]

    monkeypatch.setattr(os, "fsync", record(synced, fsync))
    monkeypatch.setattr(os, "replace", record(lambda _, to: f"replace {kind(to)}", replace))
    monkeypatch.setattr(os, "unlink", record(lambda path: f"unlink {kind(path)}", unlink))
    save_third(folder, is_best)
    assert ", ".join(calls) == order


def test_a_new_folder_is_made_durable_in_its_parents(tmp_path, monkeypatch):
    synced = []
    fsync = os.fsync

    def record(handle):
        synced.append(os.fstat(handle).st_ino)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", record)
    save({}, tmp_path / "a" / "b", step=0)
    assert {p.stat().st_ino for p in (tmp_path, tmp_path / "a", tmp_path / "a" / "b")} <= set(
        synced
    )


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CheckpointError, match=r"Cannot save .*step-00000000\.safetensors: File ex"):
        save({}, tmp_path / "file", step=0)


@pytest.fixture
def written(tmp_path):
    """A small checkpoint with a value of every kind."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "bf16": torch.ones(3, dtype=torch.bfloat16),
        "odd": [(1, -2.5), float("inf"), 2**70, torch.Size([2]), torch.tensor([1j]), None, True],
        "array": torch.arange(3.0).numpy(),
        "name": "π",
    }
    return save(state, tmp_path, step=5)


def overwrite(path, content):
    path.unlink()  # In place, ext4 would wait for the disk.
    path.write_bytes(content)


def refused(path, content):
    overwrite(path, content)
    with pytest.raises(CheckpointError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def mutated(content, rng):
    """The content with one flip, insertion, deletion, cut or exchange of blocks."""
    a, b = sorted(rng.sample(range(len(content)), 2))
    few = rng.randint(1, 16)
    match rng.randrange(7):
        case 0:
            return content[:a] + bytes([content[a] ^ 1 << rng.randrange(8)]) + content[a + 1 :]
        case 1:
            return content[:a] + rng.randbytes(few) + content[a:]
        case 2:
            return content[:a] + content[a + few :]
        case 3:
            return content[:a]
        case 4:
            return content[:a] + content[b:] + content[a:b]
        case 5:
            return content[:a] + rng.randbytes(few) + content[a + few :]
        case _:
            return content + rng.randbytes(few)


def test_a_thousand_mutants_are_refused(written):
    content, rng = written.read_bytes(), random.Random(0)
    mutants = {mutated(content, rng) for _ in range(1100)} - {content}
    assert len(mutants) > 1000
    for mutant in mutants:
        refused(written, mutant)


def test_a_flipped_bit_is_noticed_anywhere_in_the_file(written):
    content = written.read_bytes()
    for place in [*range(150), *range(150, len(content), 7)]:
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        refused(written, bytes(flipped))


class Payload:
    """Leaves a mark when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_is_never_opened(written, tmp_path, protocol):
    mark = tmp_path / "mark"
    pickles = [pickle.dumps(Payload(mark), protocol), pickle.dumps([b" " * 500, Payload(mark)])]
    for zipped in (True, False):
        torch.save(Payload(mark), tmp_path / "foreign.pt", _use_new_zipfile_serialization=zipped)
        pickles.append((tmp_path / "foreign.pt").read_bytes())
    for content in pickles:
        assert "a pickle, as torch.save writes it, is never opened" in refused(written, content)
        refused(written, forge(b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'"}}', content))
    assert not mark.exists()
    pickle.loads(pickles[0])
    assert mark.exists()  # The payload does work.


def forge(header, data):
    """A file with a header and data of one's own and the right hash, as an attacker can make."""
    if not isinstance(header, bytes):
        header = json.dumps(header, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    content = len(header).to_bytes(8, "little") + header + data
    if not re.match(rb'\{"__metadata__":\{"sha256":"', content[8:]):
        return content
    zeroed = content[:35] + b"0" * 64 + content[99:]
    return content[:35] + sha256(zeroed).hexdigest().encode() + content[99:]


def split(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def test_the_forger_is_right(written):
    """Unchanged parts are forged into the same file, so that what follows tests what it says."""
    content = written.read_bytes()
    assert forge(*split(content)) == content


FIRST = "model/0.weight"
HEADERS = {
    "overlap": lambda h: h[FIRST].update(data_offsets=[0, 48]),
    "reversed": lambda h: h[FIRST].update(data_offsets=h[FIRST]["data_offsets"][::-1]),
    "beyond the end": lambda h: h[FIRST].update(data_offsets=[10**6, 10**6 + 48]),
    "negative offset": lambda h: h[FIRST].update(data_offsets=[-48, 0]),
    "offset that is no number": lambda h: h[FIRST].update(data_offsets=["a", "b"]),
    "offset that is no list": lambda h: h[FIRST].update(data_offsets=None),
    "offset of 2^80": lambda h: h[FIRST].update(data_offsets=[0, 2**80]),
    "unknown dtype": lambda h: h[FIRST].update(dtype="F128"),
    "other dtype": lambda h: h[FIRST].update(dtype="F64"),
    "same width": lambda h: h[FIRST].update(dtype="C64", shape=[2, 3]),
    "other shape": lambda h: h[FIRST].update(shape=[4, 4]),
    "negative shape": lambda h: h[FIRST].update(shape=[-4, -3]),
    "huge shape": lambda h: h[FIRST].update(shape=[2**40, 2**40]),
    "huge empty shape": lambda h: h[FIRST].update(shape=[2**62, 0]),
    "second name": lambda h: h.update(extra=h[FIRST]),
    "unused tensor": lambda h: h.update(
        extra={"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    ),
    "missing tensor": lambda h: h.pop("bf16"),
    "missing first tensor": lambda h: h.pop(FIRST),
    "renamed tensor": lambda h: h.update({"../../x": h.pop(FIRST)}),
    "extra field": lambda h: h[FIRST].update(extra=1),
    "missing field": lambda h: h[FIRST].pop("shape"),
    "missing state": lambda h: h["__metadata__"].pop("state"),
    "state that is no text": lambda h: h["__metadata__"].update(state={}),
    "state that is no JSON": lambda h: h["__metadata__"].update(state="{"),
    "deep state": lambda h: h["__metadata__"].update(state="[" * 10**5 + "]" * 10**5),
    "deep dicts": lambda h: h["__metadata__"].update(state='{"dict":' * 10**5 + "1" + "}" * 10**5),
    "NaN": lambda h: h["__metadata__"].update(state="NaN"),
    "huge number": lambda h: h["__metadata__"].update(state="9" * 10**5),
    "blank in the state": lambda h: h["__metadata__"].update(state=" 1"),
    "step that is no number": lambda h: h["__metadata__"].update(step="five"),
    "other step": lambda h: h["__metadata__"].update(step="6"),
    "step in other digits": lambda h: h["__metadata__"].update(step="٥"),
    "other format": lambda h: h["__metadata__"].update(format="other"),
    "later version": lambda h: h["__metadata__"].update(version="2"),
    "more metadata": lambda h: h["__metadata__"].update(author="me"),
    "metadata that is no text": lambda h: h["__metadata__"].update(version=1),
}


@pytest.mark.parametrize("name", HEADERS)
def test_a_forged_header_is_refused(written, name):
    header, data = split(written.read_bytes())
    HEADERS[name](header)
    refused(written, forge(header, data))


W = {"tensor": FIRST}
SKELETONS = [
    *(
        {"pickle": "x"},
        {"eval": "print()"},
        {},
        {"tensor": W},
        {"tensor": "none"},
        {"tensor": None},
    ),
    *({"array": 1}, {"array": {"tensor": "bf16"}}, {"scalar": W}, {"scalar": []}, {"complex": W}),
    *({"float": "zz"}, {"float": "00"}, {"float": 1}, {"float": "3ff0000000000000"}),
    *({"int": "0x5"}, {"int": "5"}, {"int": 5}, {"int": "__import__('os')"}),
    *({"size": ["a"]}, {"size": 1}, {"tuple": 1}, {"tuple": "ab"}, {"list": []}),
    *({"dict": 1}, {"dict": [1]}, {"dict": [[[], 1]]}, {"dict": [["a", 1], ["a", 1]]}),
    *(
        {"dict": [["a"]]},
        {"dict": [[1.5, 0]]},
        {"dict": "ab"},
        {"dict": {"ab": 1}},
        {"dict": ["ab"]},
    ),
    *({"counter": 5}, {"counter": [["a"]]}, {"ordered": 5}, {"ordered": {"ab": 1}}),
    *({"state_dict": []}, {"state_dict": 1, "metadata": None}, {"tuple": [], "extra": 1}),
]


@pytest.mark.parametrize("node", SKELETONS, ids=json.dumps)
def test_a_forged_state_is_refused(written, node):
    header, data = split(written.read_bytes())
    state = json.loads(header["__metadata__"]["state"])
    state["dict"].append(["more", node])
    header["__metadata__"]["state"] = json.dumps(state, separators=(",", ":"))
    refused(written, forge(header, data))


def test_headers_that_no_one_would_write(written):
    content = written.read_bytes()
    header, data = split(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    refused(written, forge(text.replace(b"}", b" }"), data))
    refused(
        written, forge(text[:-1] + b',"bf16":' + json.dumps(header["bf16"]).encode() + b"}", data)
    )
    refused(written, forge(text + b" " * 8, data))
    refused(written, forge(text.replace(b'"format"', b'"format":"x","format"'), data))
    refused(written, forge(text[:-1], data))
    refused(written, forge(b'{"__metadata__":{"sha256":"' + b"[" * 10**6, data))
    refused(written, forge(header, data + b"\0" * 8))
    refused(written, forge(header, data[:-8]))
    refused(written, b"")
    refused(written, content[:8])


@pytest.mark.parametrize("length", [2**60, 2**63, 2**64 - 1, 100_000_001, 0, 26, 100])
def test_an_absurd_header_length_costs_no_memory(written, length):
    content = length.to_bytes(8, "little") + written.read_bytes()[8:]
    tracemalloc.start()
    refused(written, content)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21


def test_a_terabyte_of_nothing_costs_no_memory(written):
    """A file that has grown, but takes no room on the disk, is refused before it is read."""
    os.truncate(written, 2**40)
    with pytest.raises(CheckpointError, match="damaged: 1,099,511,627,776 bytes instead of"):
        load(written)


def test_forged_at_random(written, tmp_path, monkeypatch):
    """With the right hash: what is accepted is, byte for byte, what would have been saved."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    content, rng = written.read_bytes(), random.Random(0)
    header, data = split(content)
    text = content[8 : len(content) - len(data)].rstrip()
    fragments = [None, 0, -1, 2**65, 1.5, "", "x", [], {}, [[]], *SKELETONS]
    accepted = 0
    for i in range(600):
        if i % 2:
            candidate = forge(mutated(text, rng), data)
        else:
            state = json.loads(header["__metadata__"]["state"])
            replace_somewhere(state, rng, fragments)
            changed = header["__metadata__"] | {"state": json.dumps(state, separators=(",", ":"))}
            candidate = forge({**header, "__metadata__": changed}, data)
        overwrite(written, candidate)
        try:
            state = load(written)
        except CheckpointError:
            continue
        accepted += 1
        assert save(state, tmp_path / "again", step=5).read_bytes() == candidate
    assert 0 < accepted < 200


def replace_somewhere(node, rng, fragments):
    """Walk down a JSON tree at random and put a fragment in place of what is there."""
    keys = list(node) if isinstance(node, dict) else range(len(node))
    key = rng.choice(keys)
    if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.8:
        replace_somewhere(node[key], rng, fragments)
    else:
        node[key] = rng.choice(fragments)


def test_links_are_not_followed(written, tmp_path):
    """Not even to a sound checkpoint: what is outside of the folder is not the folder's."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, target in [(written.name, written), ("best.safetensors", tmp_path / "nothing")]:
        (folder / name).symlink_to(target)
        with pytest.raises(CheckpointError, match="is refused: it is a symbolic link"):
            load(folder / name)
    with pytest.warns(UserWarning, match="symbolic link"):
        assert latest(folder) is None
    with pytest.warns(UserWarning, match="symbolic link"):
        assert best(folder) is None
    content = written.read_bytes()
    save({}, folder, step=5, best=True)
    assert written.read_bytes() == content  # A save replaces the link, not what it leads to.
    assert load(best(folder)) == {}
    assert not (tmp_path / "nothing").exists()


def test_what_is_no_file_is_refused(tmp_path):
    path = tmp_path / "step-00000001.safetensors"
    with pytest.raises(CheckpointError, match=r"Cannot read .*: No such file"):
        load(path)
    path.mkdir()
    with pytest.raises(CheckpointError, match=r"Cannot read .*: Is a directory"):
        load(path)
    path.rmdir()
    os.mkfifo(path)  # Opening a pipe would wait for a writer forever.
    with pytest.raises(CheckpointError, match="is not a regular file"):
        load(path)
