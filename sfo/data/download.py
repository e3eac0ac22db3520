"""Fetch the published data files: resumed where they broke off, checked before they get a name."""

import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, cast
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sfo.data.published import PUBLISHED, PublishedFile
from sfo.files import lock_path, locked, move_into_place, parse_json, resolved

ByteProgress = Callable[[int, int | None], None]


class DownloadError(OSError):
    """A file could not be fetched, or is not the one that was published."""


def download(
    name: str,
    folder: str | os.PathLike[str],
    *,
    address: str | None = None,
    published: Mapping[str, PublishedFile] | None = None,
    progress: ByteProgress | None = None,
    timeout: float = 30.0,
    attempts: int = 5,
    pause: float = 1.0,
) -> Path:
    """Fetch a published file into `folder`, unless the right one is there already.

    The bytes gather in `<file>.part`, which survives a lost connection, Ctrl-C and a killed
    process; the next call asks the server only for the rest. The file gets its name once its
    size and checksums are right, so a file under its final name is good. Where no checksum is
    known, it must have the size that the server announced and start as an HDF5 file does.
    A second process that wants the same file waits for the first.

    Args:
        name: One of `published`.
        folder: Created if missing.
        address: Address of a mirror, to use instead of the published one. A part from one address
            is not continued from another.
        published: The files to choose from, by default `PUBLISHED`.
        progress: Called with the bytes done and the bytes in all (None: not known). After
            a part had to be thrown away, the bytes done start again from 0.
        timeout: Seconds without a single byte after which a connection counts as broken.
        attempts: Failed attempts in a row, none with a byte of progress, after which to give up.
        pause: Seconds before the second attempt; twice as long before each further one.

    Returns:
        Where the file is.

    Raises:
        ValueError: The name is unknown, or the file has no address.
        DownloadError: The file could not be fetched, is not the published one, or another
            file stands in its place.

    Example:
        >>> file = PUBLISHED["shallow_water"]
        >>> file.file_name, file.size
        ('2D_rdb_NA_NA.h5', 6626098972)
    """
    published = PUBLISHED if published is None else published
    if name not in published:
        known = ", ".join(sorted(published))
        raise ValueError(f"`name` must be one of the published files {known}, got {name!r}.")
    file = published[name]
    named = Path(folder) / file.file_name
    target = resolved(named)
    if _is_complete(target, file):
        return named
    address = file.address if address is None else address
    if address is None:
        raise ValueError(f"{name} has no address to download it from to {target}. {file.note}")
    if not address.startswith(("http://", "https://")):
        raise ValueError(f"`address` must start with http:// or https://, got {address!r}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    report = progress or (lambda done, total: None)
    with _locked(target, file, report):
        # While this process waited, another may have fetched it.
        if not _is_complete(target, file):
            part = _Part(target, address)
            _complete(part, file, report, timeout, attempts, pause)
            _accept(part, file, target)
    return named


class _Busy(Exception):
    """Another process is downloading the file."""


class _Interrupted(Exception):
    """An attempt failed in a way that the next one may not."""


@dataclass(frozen=True)
class _Remote:
    """The file at an address, as its server describes it."""

    address: str
    version: str | None
    total: int | None

    def may_equal(self, other: "_Remote") -> bool:
        """Whether nothing that both know tells them apart."""
        return (
            self.address == other.address
            and (self.version == other.version or None in (self.version, other.version))
            and (self.total == other.total or None in (self.total, other.total))
        )


class _Part:
    """The bytes so far in `<file>.part`, and in `<file>.part.json` which remote file they are of.

    Without that note nobody knows what the bytes belong to, so they are thrown away.
    """

    def __init__(self, target: Path, address: str) -> None:
        self.path = target.with_name(target.name + ".part")
        self.note = target.with_name(target.name + ".part.json")
        self.remote = _Remote(address, version=None, total=None)
        try:
            remote = _Remote(**parse_json(self.note.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            remote = None
        if remote is not None and remote.address == address:
            self.remote = remote
        else:
            self.discard()

    @property
    def size(self) -> int:
        return _size(self.path)

    def begin(self, remote: _Remote) -> None:
        """Empty the part, then note whose bytes will follow: in this order a kill does no harm."""
        self.path.write_bytes(b"")
        self.note.write_text(json.dumps(asdict(remote)))
        self.remote = remote

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def _complete(
    part: _Part,
    file: PublishedFile,
    report: ByteProgress,
    timeout: float,
    attempts: int,
    pause: float,
) -> None:
    """Request after request until the part is whole."""
    furthest, failures = part.size, 0
    while True:
        try:
            return _extend(part, file, report, timeout)
        except _Interrupted as error:
            # ByteProgress is a byte that no attempt has reached before: else a server that
            # starts from 0 each time and breaks off half-way would be asked indefinitely.
            failures = 1 if part.size > furthest else failures + 1
            furthest = max(furthest, part.size)
            if failures >= attempts:
                raise DownloadError(
                    f"Gave up on {file.file_name} from {part.remote.address} at byte {part.size} "
                    f"after {failures} failures in a row, the last: {error}; what has arrived "
                    f"is kept in {part.path}, so run the download again to continue."
                ) from error
            time.sleep(min(60.0, pause * 2 ** (failures - 1)))


def _extend(part: _Part, file: PublishedFile, report: ByteProgress, timeout: float) -> None:
    """Ask once for what is missing and append what arrives."""
    done = part.size
    if done and done == part.remote.total:
        return
    headers = {}
    if done:
        headers["Range"] = f"bytes={done}-"
        if part.remote.version is not None:
            headers["If-Range"] = part.remote.version
    with _open(Request(part.remote.address, headers=headers), timeout) as response:
        start, remote = _describe(response, part.remote.address)
        if response.status == 416 and done and done in (remote.total, file.size):
            return
        _check_answer(response, remote, part, file)
        if start != 0 and not (start == done and remote.may_equal(part.remote)):
            part.discard()
            raise _Interrupted("the server's file does not continue the bytes that had arrived")
        total = file.size if remote.total is None else remote.total
        if total is not None:
            _check_space(part, file, total)
        if start == 0:
            done = 0
            part.begin(remote)
        report(done, total)
        with part.path.open("ab") as stream:
            for chunk in _chunks(response, None if remote.total is None else remote.total - done):
                stream.write(chunk)
                # What has arrived is in the file: others look at its size, and a kill keeps it.
                stream.flush()
                done += len(chunk)
                report(done, total)
    if total is not None and done < total:
        raise _Interrupted(f"the connection ended after {done} of {total} bytes")
    if total is None and file.md5 is None and file.sha256 is None:
        # This may be the end or not. The next attempt asks for more, and 416 says that it was.
        raise _Interrupted("the server does not say how long the file is")


class _OnlyHTTP(HTTPRedirectHandler):
    """Follows redirects, but not to other protocols: urllib would fetch from ftp too."""

    def redirect_request(
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
    ) -> Any:
        if not newurl.lower().startswith(("http://", "https://")):
            raise DownloadError(
                f"{req.full_url} redirects to {newurl}, which is neither http nor https; pass "
                "another `address`."
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(request: Request, timeout: float) -> HTTPResponse:
    try:
        return cast(HTTPResponse, build_opener(_OnlyHTTP).open(request, timeout=timeout))
    except HTTPError as error:
        # urllib raises the answers from 300 on, but they are answers like the others.
        return cast(HTTPResponse, error)
    except DownloadError:
        raise
    except (OSError, HTTPException) as error:
        raise _Interrupted(_reason(error)) from error


def _chunks(response: HTTPResponse, length: int | None) -> Iterator[bytes]:
    """What arrives, piece by piece, to the end or to `length` bytes."""
    largest = 2**18
    while length is None or length > 0:
        try:
            # `read` would wait for all it was asked for, and lose it when the server stalls.
            chunk = response.read1(largest if length is None else min(largest, length))
        except (OSError, HTTPException) as error:
            raise _Interrupted(_reason(error)) from error
        if not chunk:
            return
        if length is not None:
            length -= len(chunk)
        yield chunk


def _reason(error: Exception) -> str:
    return str(getattr(error, "reason", None) or error) or type(error).__name__


def _describe(response: HTTPResponse, address: str) -> tuple[int | None, _Remote]:
    """Where the answer's bytes start, and what the server says of the whole file."""
    # A weak ETag promises the same meaning, not the same bytes.
    tag = response.headers.get("ETag")
    version = response.headers.get("Last-Modified") if tag is None or tag[:2] == "W/" else tag
    if response.status == 200:
        return 0, _Remote(address, version, response.length)
    span = response.headers.get("Content-Range", "")
    match = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+)", span)
    if match is None:
        return None, _Remote(address, version, None)
    start = None if match[1] is None else int(match[1])
    return start, _Remote(address, version, int(match[2]))


def _check_answer(
    response: HTTPResponse, remote: _Remote, part: _Part, file: PublishedFile
) -> None:
    """Refuse what cannot be bytes of the file, but for a 416: that speaks against the part."""
    status = response.status
    if status in (408, 429) or status >= 500:
        raise _Interrupted(f"the server answered {status} {response.reason}")
    if status == 416 and part.size:
        return
    if status not in (200, 206):
        raise DownloadError(
            f"The server answered {status} {response.reason} when asked for {file.file_name} at "
            f"{remote.address}; check that address in a browser, or pass another as `address`."
        )
    if response.headers.get_content_type() == "text/html":
        raise DownloadError(
            f"The server sent a web page in place of {file.file_name} from {remote.address}; "
            "open that address in a browser to see what it says, or pass another as `address`."
        )
    if None not in (remote.total, file.size) and remote.total != file.size:
        raise DownloadError(
            f"The file at {remote.address} has {remote.total} bytes where {file.file_name} was "
            f"published with {file.size}; pass the address of the published file as `address`."
        )


def _check_space(part: _Part, file: PublishedFile, total: int) -> None:
    needed, free = total - part.size, shutil.disk_usage(part.path.parent).free
    if free < needed:
        raise DownloadError(
            f"{file.file_name} needs {needed} more bytes in {part.path.parent}, where {free} are "
            "free; make room, or choose another folder."
        )


def _accept(part: _Part, file: PublishedFile, target: Path) -> None:
    """Give a whole part its name if it is the published file, else set it aside."""
    fault = file.fault(part.path) or _unrecognised(part.path, file)
    if fault is not None:
        bad = target.with_name(target.name + ".bad")
        os.replace(part.path, bad)
        part.discard()
        raise DownloadError(
            f"{file.file_name} from {part.remote.address} {fault}; it was moved aside to {bad}, "
            "so run the download again, or pass another `address`."
        )
    move_into_place(part.path, target)
    part.discard()


def _unrecognised(path: Path, file: PublishedFile) -> str | None:
    """Where no checksum is known, what tells the contents from those of the benchmark."""
    if file.md5 is not None or file.sha256 is not None or file.name not in PUBLISHED:
        return None
    from sfo.data.hdf5 import DataFile, DataFileError
    from sfo.registry import BENCHMARKS

    try:
        found = DataFile(path).benchmark
    except DataFileError as error:
        return f"is not a file of {file.name}: {str(error).rstrip('.')}"
    if found not in BENCHMARKS or BENCHMARKS[found].paper_name != file.name:
        return f"is not a file of {file.name}: its contents are those of {found}"
    return None


def _is_complete(target: Path, file: PublishedFile) -> bool:
    if not target.exists():
        return False
    fault = file.fault(target)
    if fault is not None:
        raise DownloadError(
            f"{target} exists but {fault}; it was left as it is, so move it away and run the "
            "download again, or choose another folder."
        )
    return True


@contextmanager
def _locked(target: Path, file: PublishedFile, report: ByteProgress) -> Iterator[None]:
    """Hold the file's lock; while another process does, report how far that one is."""
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(locked(lock_path(target), timeout=0.5, busy=_Busy()))
                break
            except _Busy:
                report(_size(target.with_name(target.name + ".part")), file.size)
        yield


def _size(path: Path) -> int:
    """In bytes; 0 if there is no such file, or no longer."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
