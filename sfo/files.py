"""Files that are never half written: atomic writes, locks and checksums, for the whole package."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout


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
    except BaseException:
        temporary.unlink(missing_ok=True)
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
def locked(path: Path, *, timeout: float = -1, busy: str = "") -> Iterator[None]:
    """Hold a lock file while the block runs; the system releases it if the process dies.

    Args:
        path: The lock file.
        timeout: Seconds to wait for another process; negative: as long as it takes.
        busy: The sentence to raise as a `ValueError` after that time.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        raise ValueError(busy or f"{path} is locked by another process.") from None
    try:
        yield
    finally:
        lock.release()


def sha256(content: bytes | str) -> str:
    """SHA-256 in hexadecimal digits.

    Example:
        >>> sha256("sfo")[:8]
        'bf00412b'
    """
    return hashlib.sha256(content.encode() if isinstance(content, str) else content).hexdigest()


def json_sha256(value: Any) -> str:
    """SHA-256 of a value as JSON with sorted keys: equal for equal values.

    Example:
        >>> json_sha256({"b": 1, "a": 2}) == json_sha256({"a": 2, "b": 1})
        True
    """
    return sha256(json.dumps(value, sort_keys=True))


def _temporary(path: Path) -> Path:
    return path.parent / f".{path.name}.{secrets.token_hex(4)}"
