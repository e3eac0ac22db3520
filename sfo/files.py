"""Files that are never half written: atomic writes, locks and checksums, for the whole package."""

import errno
import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

DISK_FULL_ERRORS = (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), errno.EROFS)
"""What the system answers where nothing more can be written: full, over quota, read-only."""


def is_full(error: BaseException | None) -> bool:
    """Whether an error says that a disk takes nothing more.

    Example:
        >>> is_full(OSError(errno.ENOSPC, "No space left on device"))
        True
        >>> is_full(FileNotFoundError(errno.ENOENT, "No such file"))
        False
    """
    return isinstance(error, OSError) and error.errno in DISK_FULL_ERRORS


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step: whoever reads it finds the old or the new content, whole."""
    temporary = _temporary(path)
    # Not mkstemp, whose files nobody else may read.
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        _name_file(error, path)
        raise


def move_into_place(partial: Path, path: Path) -> None:
    """Give a file that was written under another name its own, once it is on the disk."""
    with open(partial, "r+b") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)


def link_atomically(source: Path, target: Path, content: bytes) -> None:
    """Give a file a second name in one step, or write a copy where there are no hard links."""
    temporary = _temporary(target)
    try:
        os.link(source, temporary)
    except OSError:
        write_atomically(target, content)
    else:
        os.replace(temporary, target)


def create_folder(folder: Path) -> None:
    """Make a folder that outlives a power cut, with its parents."""
    new = [part for part in (folder, *folder.parents) if not part.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for part in new:
        sync_folder(part.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, as fsync does for a file's content."""
    if os.name == "nt":  # Windows has no such call.
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(path: Path, *, timeout: float = -1, busy: Exception | None = None) -> Iterator[None]:
    """Hold a lock file while the block runs; the system releases it if the process dies.

    Args:
        path: The lock file.
        timeout: Seconds to wait for another process; negative: as long as it takes.
        busy: What to raise after that time; None: a `ValueError`.
    """
    lock = FileLock(path)
    # FileLock takes a lock file that cannot be made for one that another process is just removing,
    # and tries indefinitely.
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o644))
    _check_has_locks(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        raise busy or ValueError(f"{path} is locked by another process.") from None
    try:
        yield
    finally:
        lock.release()


def _check_has_locks(path: Path) -> None:
    """Refuse a file system without locks, such as Lustre mounted without them.

    FileLock would take the file itself for a lock there, which is never released.
    """
    try:
        import fcntl
    except ImportError:  # Windows has other locks.
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_UN)  # Of a lock that is not held: nothing happens.
    except OSError as error:
        if error.errno == errno.ENOSYS:
            why = "The file system has no locks (flock); mount it with them, or choose a folder "
            raise OSError(error.errno, f"{why}elsewhere", str(path)) from error
    finally:
        os.close(handle)


def resolved(path: str | os.PathLike[str]) -> Path:
    """The file itself, whatever links lead to it; it need not exist yet."""
    return Path(os.path.realpath(path))


def lock_path(target: str | os.PathLike[str]) -> Path:
    """The lock file of a file, which lies beside it, or of a folder, which lies in it.

    All processes that see the target see the same lock, however they spell its path and whatever
    their temporary folder is. The lock file stays, because removing it would let two processes
    hold two locks of one name.

    Args:
        target: The file or folder, not necessarily there yet; the folder around it must be.
    """
    path = resolved(target)
    return path / ".lock" if path.is_dir() else path.with_name(f".{path.name}.lock")


@contextmanager
def unfinished(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A path to write to; it becomes `target` in one step when the block ends without an error.

    The path is one that no other process uses, beside the target, so two writers never mix. After
    an error the unfinished file is removed and the target is as it was.

    Args:
        target: The file to make or replace. Its folder must exist.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     with unfinished(Path(folder) / "numbers.txt") as path:
        ...         n_written = path.write_text("1 2 3")
        ...     [entry.name for entry in Path(folder).iterdir()]
        ['numbers.txt']
    """
    goal = resolved(target)
    path = _temporary(goal)
    try:
        yield path
        move_into_place(path, goal)
    except BaseException as error:
        path.unlink(missing_ok=True)
        _name_file(error, goal)
        raise


@contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Like `unfinished`, for results that a user names: makes folders, keeps files of other kinds.

    A file that is there is replaced only by one that begins like it, as all pictures of one format
    and all arrays of NumPy do, so a mistyped name never costs a data file.

    Args:
        target: The file that the user named.
    """
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    with unfinished(path) as made:
        yield made
        if path.exists() and _start(path) not in (b"", _start(made)):
            raise ValueError(
                f"{path} exists and is of another kind than what would replace it; it was left as "
                "it is, so choose another file."
            )


def _start(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(8)


def save_figure(figure: Any, target: str | os.PathLike[str], dpi: int = 110) -> Path:
    """Write a figure of matplotlib in the format that the name says; PNG if it says none."""
    path = Path(target)
    with replacing(path) as made:
        figure.savefig(made, dpi=dpi, format=path.suffix[1:] or "png")
    return path


def remove_unfinished(target: str | os.PathLike[str]) -> None:
    """Remove what killed writers of `target` have left; only for the holder of its lock."""
    goal = resolved(target)
    name = re.compile(re.escape(f".{goal.name}.") + "[0-9a-f]{8}")
    for entry in goal.parent.iterdir():
        if name.fullmatch(entry.name):
            entry.unlink(missing_ok=True)


def sha256(content: bytes | str) -> str:
    """SHA-256 in hexadecimal digits.

    Example:
        >>> sha256("sfo")[:8]
        'bf00412b'
    """
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def parse_json(text: str | bytes) -> Any:
    """A value from JSON; whatever is wrong with the text is a ValueError.

    Example:
        >>> parse_json("[" * 100_000)
        Traceback (most recent call last):
        ValueError: it is nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, or a ValueError that names the file."""
    return _json_object(path, path.read_bytes(), str(path))


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """The JSON objects in the lines of a file; none if there is no file."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [_json_object(path, row, f"{path}, line {n + 1},") for n, row in enumerate(lines)]


def _json_object(path: Path, text: bytes, where: str) -> dict[str, Any]:
    try:
        entries = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{where} is damaged: {error}.") from None
    if not isinstance(entries, dict):
        raise ValueError(f"{where} is damaged: it must be a JSON object, got {entries!r:.80}.")
    return entries


def json_sha256(value: Any) -> str:
    """SHA-256 of a value as JSON with sorted keys: equal for equal values.

    Example:
        >>> json_sha256({"b": 1, "a": 2}) == json_sha256({"a": 2, "b": 1})
        True
    """
    return sha256(json.dumps(value, sort_keys=True))


def _name_file(error: BaseException, path: Path) -> None:
    """A write on a full disk fails without saying which file it was."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(path)


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(4)}"
