"""Downloads from a local server that breaks off, stalls, lies and changes its file."""

import hashlib
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sfo.data import download as module
from sfo.data.download import DownloadError, download
from sfo.data.published import PUBLISHED, PublishedFile

HALF = 100_000


def hdf5_like(seed, size=2 * HALF):
    return b"\x89HDF\r\n\x1a\n" + random.Random(seed).randbytes(size - 8)


DATA = hdf5_like(seed=0)


class Answer(BaseHTTPRequestHandler):
    """One answer, in the way that is next in the site's plan."""

    def do_GET(self):
        site = self.server
        if self.path == "/api":
            self.send_response(302)
            self.send_header("Location", "/file")
            self.end_headers()
            return
        way = site.plan.pop(0) if site.plan else "well"
        asked, if_range = self.headers["Range"], self.headers["If-Range"]
        site.asked.append(asked)
        if way in ("404", "503", "page"):
            self.reply(200 if way == "page" else int(way), b"<html>Sorry", kind="text/html")
            return
        fits = if_range in (None, site.tag) or "no if-range" in way
        if asked is None or "no range" in way or not fits:
            self.reply(200, site.data, way=way)
            return
        start, size = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]), len(site.data)
        if start >= size:
            self.reply(416, b"", span=f"bytes */{size}")
            return
        start += way == "shifted"
        span = f"bytes {start}-{size - 1}/{'*' if way == 'endless' else size}"
        self.reply(206, site.data[start:], span=span, way=way)

    def reply(self, status, body, *, kind="application/x-hdf5", span=None, way="well"):
        site = self.server
        self.send_response(status)
        self.send_header("Content-Type", kind)
        if span:
            self.send_header("Content-Range", span)
        if site.tag:
            self.send_header("ETag", site.tag)
        if "unannounced" not in way:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        middle = len(body) // 2
        try:
            self.send(body[:middle])
            if "stall" in way:
                site.go_on.wait()
            if "cut" not in way:
                self.send(body[middle:])
        except ConnectionError:
            pass

    def send(self, body):
        for start in range(0, len(body), 2**14):
            chunk = body[start : start + 2**14]
            self.server.sent += len(chunk)
            self.wfile.write(chunk)
            if self.server.delay:
                time.sleep(self.server.delay)

    def log_message(self, *args):
        pass


class Site(ThreadingHTTPServer):
    """Serves `data`; `plan` says how to answer the next requests, `asked` which ranges they had."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.data, self.tag, self.delay = DATA, '"first"', 0.0
        self.plan, self.asked, self.sent = [], [], 0
        self.go_on = threading.Event()
        self.address = f"http://127.0.0.1:{self.server_port}/file"


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    site = Site()
    thread = threading.Thread(target=site.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.go_on.set()
    site.shutdown()
    site.server_close()
    thread.join()


WAVES = PublishedFile(
    name="waves",
    file_name="waves.h5",
    address=None,
    size=len(DATA),
    md5=hashlib.md5(DATA).hexdigest(),
    sha256=hashlib.sha256(DATA).hexdigest(),
    licence="CC BY 4.0",
    note="Open http://example.org/waves in a browser.",
)
UNCHECKED = replace(WAVES, size=None, md5=None, sha256=None)


def fetch(site, folder, file=WAVES, **options):
    options = {"address": site.address, "timeout": 30, "pause": 0.001, **options}
    return download("waves", folder, published={"waves": file}, **options)


def fails(match, site, folder, file=WAVES, **options):
    with pytest.raises(DownloadError, match=match) as caught:
        fetch(site, folder, file, **options)
    assert not (folder / "waves.h5").exists()
    assert "waves.h5" in str(caught.value)


def interrupt(site, folder, file=WAVES):
    """Leave the first half behind, as an earlier call that broke off would."""
    site.plan.append("cut")
    fails("run the download again", site, folder, file, attempts=1)
    assert (folder / "waves.h5.part").read_bytes() == site.data[:HALF]


def left_in(folder):
    return {path.name for path in folder.iterdir()} - {".waves.h5.lock"}


def test_whole(site, tmp_path):
    """The bytes come by way of a redirect, are counted, and leave nothing else behind."""
    counts = []
    address = site.address.replace("/file", "/api")
    folder = tmp_path / "new" / "folder"
    path = fetch(site, folder, address=address, progress=lambda *count: counts.append(count))
    assert path == folder / "waves.h5"
    assert path.read_bytes() == DATA
    assert left_in(folder) == {"waves.h5"}
    done, total = zip(*counts, strict=True)
    assert (done[0], done[-1]) == (0, len(DATA))
    assert list(done) == sorted(done)
    assert set(total) == {len(DATA)}


@pytest.mark.parametrize("way", ["cut", "stall"])
def test_resumes(site, tmp_path, way):
    """After early ends and stalls only the missing bytes are asked for, redirected or not."""
    site.plan = [way, way]
    path = fetch(site, tmp_path, address=site.address.replace("/file", "/api"), timeout=1)
    assert path.read_bytes() == DATA
    assert site.asked == [None, f"bytes={HALF}-", f"bytes={HALF * 3 // 2}-"]
    assert site.sent == len(DATA)


def test_next_call_resumes(site, tmp_path):
    """A call that gave up leaves its part to the next one."""
    interrupt(site, tmp_path)
    counts = []
    path = fetch(site, tmp_path, progress=lambda *count: counts.append(count))
    assert path.read_bytes() == DATA
    assert counts[0] == (HALF, len(DATA))
    assert site.asked == [None, f"bytes={HALF}-"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_stopped_here(site, tmp_path, error):
    """Ctrl-C or a full disk is no failure of the network: no further attempt, the part stays."""

    def stop(done, total):
        if done == HALF:
            raise error("stop")

    site.plan = ["stall"]
    with pytest.raises(error, match="stop"):
        fetch(site, tmp_path, progress=stop)
    assert site.asked == [None]
    assert (tmp_path / "waves.h5.part").read_bytes() == DATA[:HALF]
    assert not (tmp_path / "waves.h5").exists()
    assert fetch(site, tmp_path).read_bytes() == DATA
    assert site.asked == [None, f"bytes={HALF}-"]


def test_range_ignored(site, tmp_path):
    """The whole file in answer to a range restarts the part instead of following it."""
    site.plan = ["cut", "no range"]
    assert fetch(site, tmp_path).read_bytes() == DATA
    assert site.asked == [None, f"bytes={HALF}-"]


def test_gives_up(site, tmp_path):
    """To reach the same byte again and again is no progress, to reach a new one is."""
    site.plan = ["cut no range"] * 9
    fails(f"at byte {HALF} after 3 failures", site, tmp_path, attempts=3)
    assert len(site.asked) == 3
    site.plan = ["cut"] * 9
    assert fetch(site, tmp_path, attempts=2).read_bytes() == DATA


def test_server_busy(site, tmp_path, monkeypatch):
    """503 pages are waited out, each time twice as long, and never end up in the part."""
    pauses = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    site.plan = ["503"] * 3
    fails("503", site, tmp_path, attempts=3, pause=7)
    assert left_in(tmp_path) == set()
    interrupt(site, tmp_path)
    site.plan = ["503"] * 3
    assert fetch(site, tmp_path, attempts=4, pause=1).read_bytes() == DATA
    assert pauses == [7, 14, 1, 2, 4]


def test_no_server(site, tmp_path):
    """A port that nobody listens on is reported with the reason."""
    fails("after 2 failures.*refused", site, tmp_path, address="http://127.0.0.1:1/", attempts=2)


@pytest.mark.parametrize(("way", "match"), [("page", "web page"), ("404", "404 Not Found")])
def test_page_refused(site, tmp_path, way, match):
    """A web page is refused at once, whatever its status, and spares the bytes that were there."""
    site.plan = [way]
    fails(match, site, tmp_path)
    assert left_in(tmp_path) == set()
    interrupt(site, tmp_path)
    site.plan = [way]
    fails(match, site, tmp_path)
    assert len(site.asked) == 3
    assert fetch(site, tmp_path).read_bytes() == DATA
    assert site.asked[-1] == f"bytes={HALF}-"


@pytest.mark.parametrize("known", ["md5", "sha256"])
def test_wrong_checksum(site, tmp_path, known):
    """One flipped bit is found by either checksum; the bad file is moved aside, not resumed."""
    file = replace(UNCHECKED, **{known: getattr(WAVES, known)})
    site.data = DATA[:-1] + bytes([DATA[-1] ^ 1])
    fails(f"{known}.*moved aside to .*waves.h5.bad", site, tmp_path, file)
    assert left_in(tmp_path) == {"waves.h5.bad"}
    assert (tmp_path / "waves.h5.bad").read_bytes() == site.data
    site.data = DATA
    assert fetch(site, tmp_path, file).read_bytes() == DATA
    assert site.asked == [None, None]


def test_wrong_size(site, tmp_path):
    """A file of another size is refused before a byte is written; unannounced, after the last."""
    site.data = DATA + b"more"
    fails("200004 bytes where", site, tmp_path)
    assert left_in(tmp_path) == set()
    site.plan = ["unannounced"]
    fails("200004 bytes where 200000", site, tmp_path)
    assert left_in(tmp_path) == {"waves.h5.bad"}


def test_without_checksum(site, tmp_path):
    """The size that the server announced and the HDF5 signature stand in for a checksum."""
    site.data = b"not " + DATA
    fails("signature of an HDF5 file", site, tmp_path, UNCHECKED)
    site.data, site.plan = DATA, ["cut"]
    assert fetch(site, tmp_path, UNCHECKED).read_bytes() == DATA


@pytest.mark.parametrize("file", [WAVES, UNCHECKED])
def test_unannounced_length(site, tmp_path, file):
    """Where the server gives no length, the published size or a further request finds the end."""
    site.plan = ["unannounced cut"]
    assert fetch(site, tmp_path, file).read_bytes() == DATA
    assert site.asked == [None, f"bytes={HALF}-"]


def test_unknown_length(site, tmp_path):
    """Bytes that may be all or not are not accepted, unless a checksum vouches for them."""
    site.plan = ["unannounced no range"] * 5
    fails("how long the file is", site, tmp_path, UNCHECKED)
    site.plan = ["unannounced no range"] * 5
    assert fetch(site, tmp_path, replace(UNCHECKED, md5=WAVES.md5)).read_bytes() == DATA


@pytest.mark.parametrize(
    ("tag", "size", "way", "requests"),
    [
        ('"second"', 2 * HALF, "well", 1),
        ('"second"', 2 * HALF, "no if-range", 2),
        (None, 2 * HALF + 1, "well", 2),
        ('"second"', HALF // 2, "well", 1),
        (None, HALF // 2, "well", 2),
    ],
)
def test_remote_file_changed(site, tmp_path, tag, size, way, requests):
    """Bytes of two versions never meet: If-Range, the ETag or the size keeps them apart."""
    site.tag = tag and '"first"'
    interrupt(site, tmp_path, UNCHECKED)
    site.data, site.tag, site.plan = hdf5_like(seed=1, size=size), tag, [way]
    assert fetch(site, tmp_path, UNCHECKED).read_bytes() == site.data
    assert len(site.asked) == 1 + requests


def test_weak_tag(site, tmp_path):
    """A weak ETag vouches for no byte: it neither goes into If-Range nor stops a resume."""
    site.tag = 'W/"first"'
    interrupt(site, tmp_path)
    site.tag = 'W/"second"'
    assert fetch(site, tmp_path).read_bytes() == DATA
    assert site.sent == len(DATA)


@pytest.mark.parametrize("way", ["shifted", "endless"])
def test_wrong_range(site, tmp_path, way):
    """A range that starts elsewhere than asked, or of a file of any length, is not appended."""
    site.plan = ["cut", way]
    assert fetch(site, tmp_path, UNCHECKED).read_bytes() == DATA
    assert site.asked == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("way", ["well", "unannounced"])
def test_part_is_whole(site, tmp_path, way):
    """A part that lacks only its check is not fetched again; if in doubt, 416 says that it is."""
    site.plan = [way]

    def stop(done, total):
        if done == len(DATA):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site, tmp_path, UNCHECKED, progress=stop)
    assert fetch(site, tmp_path, UNCHECKED).read_bytes() == DATA
    assert site.asked == ([None] if way == "well" else [None, f"bytes={len(DATA)}-"])
    assert site.sent == len(DATA)


def test_part_too_long(site, tmp_path):
    """A part longer than the file makes the server answer 416, and starts again."""
    interrupt(site, tmp_path)
    (tmp_path / "waves.h5.part").write_bytes(DATA + b"more")
    assert fetch(site, tmp_path).read_bytes() == DATA
    assert site.asked == [None, f"bytes={len(DATA) + 4}-", None]


def test_part_of_unknown_origin(site, tmp_path):
    """A part from another address, or that nobody vouches for, is not continued."""
    interrupt(site, tmp_path)
    assert fetch(site, tmp_path, address=site.address + "?mirror").read_bytes() == DATA
    (tmp_path / "waves.h5").unlink()
    (tmp_path / "waves.h5.part").write_bytes(b"?" * HALF)
    assert fetch(site, tmp_path).read_bytes() == DATA
    assert site.asked == [None, None, None]


def test_there_already(site, tmp_path):
    """The right file is not fetched again, not even from a server; a wrong one is left alone."""
    path = tmp_path / "waves.h5"
    path.write_bytes(DATA)
    assert fetch(site, tmp_path) == path
    assert download("waves", tmp_path, published={"waves": WAVES}) == path
    for wrong in (DATA[:-1], DATA[:-1] + b"?"):
        path.write_bytes(wrong)
        with pytest.raises(DownloadError, match=r"exists but has .* move it away"):
            fetch(site, tmp_path)
        assert path.read_bytes() == wrong
    assert site.asked == []


def test_disk_full(site, tmp_path, monkeypatch):
    """The room for the missing bytes, and no more, must be there before the first is written."""
    interrupt(site, tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage._replace(free=HALF - 1))
    fails(f"needs {HALF} more bytes .* {HALF - 1} are free", site, tmp_path)
    assert (tmp_path / "waves.h5.part").read_bytes() == DATA[:HALF]
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage._replace(free=HALF))
    assert fetch(site, tmp_path).read_bytes() == DATA


def test_named_last(site, tmp_path, monkeypatch):
    """The name is given once, to bytes that are right and on the disk."""
    events = []
    sync, rename = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda number: (events.append("sync"), sync(number)))

    def watch(source, target):
        events.append((target.name, source.read_bytes() == DATA))
        rename(source, target)

    monkeypatch.setattr(os, "replace", watch)
    fetch(site, tmp_path)
    assert events == ["sync", ("waves.h5", True)]


def test_two_at_once(site, tmp_path):
    """The second caller sees the first's progress, waits for it, and fetches nothing itself."""
    site.plan = ["stall"]
    site.delay = 0.05  # The reader is faster: the last bytes before the stall come by themselves.
    first = threading.Thread(target=fetch, args=(site, tmp_path))
    first.start()
    while not site.asked:
        time.sleep(0.01)

    def go_on(done, total):
        if done == HALF:
            site.go_on.set()

    assert fetch(site, tmp_path, progress=go_on).read_bytes() == DATA
    first.join()
    assert site.asked == [None]


# The packages are stood in for: the real ones would import torch each time.
CHILD = """
import sys, types
here, size, md5, address, folder = sys.argv[1:]
for name in ("sfo", "sfo.data"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["sfo"].__path__ = [here + "/.."]
sys.modules["sfo.data"].__path__ = [here]
from sfo.data.download import PublishedFile, download
file = PublishedFile("waves", "waves.h5", address, int(size), md5, None, "", "")
download("waves", folder, published={"waves": file})
"""


@pytest.mark.parametrize(
    ("delay", "longest", "seed"), [(0.004, 0.15, 0), (0.0, 0.02, 1), (0.0, 0.02, 2)]
)
def test_killed(site, tmp_path, delay, longest, seed):
    """kill -9 at any moment leaves a part that the next process continues, byte for byte."""
    site.data, site.delay = hdf5_like(seed=2, size=2**21), delay
    md5 = hashlib.md5(site.data).hexdigest()
    arguments = [Path(module.__file__).parent, len(site.data), md5, site.address, tmp_path]
    command = [sys.executable, "-c", CHILD, *map(str, arguments)]
    moment = random.Random(seed)
    path, kept = tmp_path / "waves.h5", tmp_path / "waves.h5.part"
    missing_from = []
    for _ in range(4):
        missing_from.append(len(kept.read_bytes()) if kept.exists() else 0)
        requests = len(site.asked)
        process = subprocess.Popen(command)
        while len(site.asked) == requests and process.poll() is None:
            time.sleep(0.001)
        time.sleep(moment.uniform(0, longest))
        process.kill()
        process.wait()
        if path.exists():
            break
    else:
        missing_from.append(len(kept.read_bytes()) if kept.exists() else 0)
        subprocess.run(command, check=True)
    assert path.read_bytes() == site.data
    asked = [int(span[6:-1]) if span else 0 for span in site.asked]
    # A process killed while it checked a whole part leaves nothing to ask for.
    assert asked == [start for start in missing_from if start < len(site.data)]


def test_by_hand(tmp_path):
    """Without an address the error says where to go and where to put the file; then it counts."""
    with pytest.raises(ValueError, match=r"3D_Maxwell_10_1.h5.*drive.google.com/file/d/11b3p8zq"):
        download("maxwell", tmp_path)
    (tmp_path / "3D_Maxwell_10_1.h5").write_bytes(DATA)
    assert download("maxwell", tmp_path) == tmp_path / "3D_Maxwell_10_1.h5"


def test_wrong_arguments(tmp_path):
    """A wrong name is answered with the right ones; only the web is a source."""
    with pytest.raises(ValueError, match=r"allen_cahn, cahn_hilliard,.* got 'waves'"):
        download("waves", tmp_path)
    with pytest.raises(ValueError, match="http"):
        download("maxwell", tmp_path, address="file:///etc/hostname")


@pytest.mark.parametrize(
    ("name", "floats"),
    [("diffusion_reaction", 10_000 * 101 * 1024), ("shallow_water", 1000 * 101 * 128**2)],
)
def test_published_sizes(name, floats):
    """The files hold their float32 arrays and little else."""
    assert 0 < PUBLISHED[name].size / (4 * floats) - 1 < 0.002


def test_published_checksums():
    """What can be fetched can be checked: whole digests, each file its own address and name."""
    files = [file for file in PUBLISHED.values() if file.address]
    assert {f.name for f in files} == {
        "diffusion_reaction",
        "diffusion_sorption",
        "shallow_water",
    }
    assert all(re.fullmatch("[0-9a-f]{32}", f.md5) for f in files)
    assert all(f.sha256 is None or re.fullmatch("[0-9a-f]{64}", f.sha256) for f in files)
    assert len({f.address for f in files}) == len({f.md5 for f in files}) == 3
    assert len({f.file_name for f in PUBLISHED.values()}) == 6
