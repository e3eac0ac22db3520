"""Checkpoints of a whole training state: one hashed safetensors file each, and no pickle.

A state is a tree of dicts, lists and tuples with numbers, text and tensors at its leaves:
weights, optimizer, schedule, random generators, history. A checkpoint `step-00001234.safetensors`
is an ordinary safetensors file with the tensors under their paths in the tree
(`optimizer/state/0/exp_avg`) and, in its metadata, the rest of the tree as JSON:

    length of header (8 bytes) | header (JSON) | tensors
    header = {"__metadata__":{"sha256":"…","format":…,"version":…,"step":…,"state":"…"},
              "model/lift.weight":{"dtype":"F32","shape":[…],"data_offsets":[…]},…}

The SHA-256 is that of the whole file with 64 zeros in its own place, so no bit can change
unnoticed. It is no signature: whoever edits a file can hash it again. Hence `load` also writes
the header of what it read once more and accepts only a file that is, byte for byte, what `save`
would have written. No code of a file is ever run.

One process at a time saves into a folder; any number may read.
"""

import hashlib
import json
import os
import re
import stat
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_safetensors
from torch import Tensor

from sfo.files import create_folder, link_atomically, sync_folder, write_atomically
from sfo.training.tree import DTYPES, CheckpointError, flatten, unflatten

FORMAT = "sfo-torch checkpoint"
VERSION = "1"
BEST = "best.safetensors"

START = b'{"__metadata__":{"sha256":"'
DIGEST = slice(8 + len(START), 8 + len(START) + 64)
MAX_HEADER = 100_000_000  # What safetensors reads at most.

STEP = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,})\.safetensors")
TEMPORARY = re.compile(r"\.(step-[0-9]{8,}|best)\.safetensors\.[a-z0-9_]{8}")


def save(
    state: Mapping[str, Any],
    folder: str | os.PathLike[str],
    step: int,
    *,
    keep_last: int = 2,
    best: bool = False,
) -> Path:
    """Write a checkpoint; when this returns, it is on the disk and outlives a power cut.

    A kill or a full disk on the way leaves the earlier checkpoints as they were; those beyond
    the last `keep_last` are removed only at the very end. Checkpoints of later steps, left by a
    run that was since taken back to an earlier one, are renamed to `….aside` with a warning:
    `latest` would return to them.

    Args:
        state: See `flatten` for what it may hold.
        folder: Is created if need be.
        step: Gives the file its name; an earlier checkpoint of this step is replaced.
        keep_last: Number of checkpoints to keep besides the best, at least 1.
        best: Keep this checkpoint as `best.safetensors` as well, in place of the former best. The
            two are one file with two names, where the file system can do that.

    Returns:
        The path of the checkpoint.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     path = save({"weight": torch.ones(2), "rate": (0.1, None)}, folder, step=7)
        ...     path.name, load(path)
        ('step-00000007.safetensors', {'weight': tensor([1., 1.]), 'rate': (0.1, None)})
    """
    if step < 0 or keep_last < 1:
        raise CheckpointError(
            "`step` must be at least 0 and `keep_last` at least 1, got "
            f"step={step}, keep_last={keep_last}."
        )
    folder = Path(folder)
    path = folder / f"step-{step:08d}.safetensors"
    content = _serialise(state, step)
    try:
        create_folder(folder)
        _remove(entry for entry in folder.iterdir() if TEMPORARY.fullmatch(entry.name))
        _set_aside(folder, step)
        if best:
            # The best first: a kill in between must leave no checkpoint that speaks of a best
            # which is not there.
            write_atomically(folder / BEST, content)
            sync_folder(folder)
            link_atomically(folder / BEST, path, content)
        else:
            write_atomically(path, content)
        sync_folder(folder)
        _remove(_checkpoints(folder)[keep_last:])
    except OSError as error:
        raise CheckpointError(
            f"Cannot save {path}: {error.strerror or error}. Earlier checkpoints are still there; "
            "make room or choose another folder."
        ) from error
    return path


def load(path: str | os.PathLike[str], *, require_finite: Sequence[str] = ()) -> dict[str, Any]:
    """Read a checkpoint, or say why it is refused; tensors come back on the CPU.

    Args:
        path: Path of the file itself; links are not followed.
        require_finite: Top-level parts of the state, such as `("model",)`, in which a tensor
            with NaN or infinite entries is refused.
    """
    path = Path(path)
    try:
        state = _parse(_read(path), path)
        _check_finite(state, require_finite)
    except OSError as error:
        raise CheckpointError(f"Cannot read {path}: {error.strerror or error}.") from error
    except Exception as error:  # Whatever foreign bytes provoke, they are refused.
        known = isinstance(error, CheckpointError)
        reason = str(error) if known else f"it is damaged ({error!r:.200})"
        raise CheckpointError(
            f"{path} is refused: {reason}. Load another: `latest` finds the newest sound one."
        ) from error
    return state


def latest(folder: str | os.PathLike[str], *, require_finite: Sequence[str] = ()) -> Path | None:
    """The newest checkpoint that `load` accepts, with a warning for each one passed over."""
    return _first_sound(_checkpoints(Path(folder)), require_finite)[0]


def load_latest(
    folder: str | os.PathLike[str], *, require_finite: Sequence[str] = ()
) -> dict[str, Any] | None:
    """The state of that checkpoint, or None if there is none."""
    return _first_sound(_checkpoints(Path(folder)), require_finite)[1]


def best(folder: str | os.PathLike[str], *, require_finite: Sequence[str] = ()) -> Path | None:
    """The checkpoint last saved as the best, or None, with a warning if it is damaged."""
    return _first_sound(_best(folder), require_finite)[0]


def load_best(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """The state of that checkpoint, or None if there is none."""
    return _first_sound(_best(folder), ())[1]


def check_shapes(state: Any, template: Any) -> None:
    """Refuse a state whose tensors differ in name or shape from those of a template.

    Example:
        >>> check_shapes({"bias": torch.zeros(3)}, {"bias": torch.zeros(4)})
        Traceback (most recent call last):
        sfo.training.tree.CheckpointError: 'bias' has shape (3,), but (4,) is needed: ...
    """
    shapes, needed = (
        {
            name: tuple(tensor.shape)
            for name, tensor in flatten(tree)[0].items()
            # What a module keeps besides weights is its own matter, in any shape.
            if not name.endswith("_extra_state")
        }
        for tree in (state, template)
    )
    for name in [*needed, *shapes]:
        if shapes.get(name) != needed.get(name):
            raise CheckpointError(
                f"{name!r} {_has(shapes.get(name))}, but {needed.get(name, 'none')} is needed: "
                "build the model with the arguments that the checkpoint was trained with."
            )


def _layout(tensors: Mapping[str, Tensor]) -> list[str]:
    """The order of the tensors in a file: wide types first, so that each is aligned."""
    return sorted(tensors, key=lambda name: -tensors[name].element_size())


def _header(tensors: Mapping[str, Tensor], skeleton: Any, step: int) -> bytes:
    """The header with zeros for its hash, filled up with blanks to whole eights of bytes."""
    header: dict[str, Any] = {
        "__metadata__": {
            "sha256": "0" * 64,
            "format": FORMAT,
            "version": VERSION,
            "step": str(step),
            "state": _json(skeleton),
        }
    }
    end = 0
    for name in _layout(tensors):
        tensor = tensors[name]
        begin, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
    text = _json(header).encode()
    return text + b" " * (-len(text) % 8)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _serialise(state: Any, step: int) -> bytes:
    """The content of a checkpoint: the one copy that is made of the state."""
    tensors, skeleton = flatten(state)
    header = _header(tensors, skeleton, step)
    if len(header) > MAX_HEADER:
        raise CheckpointError(
            f"Cannot store a state with {len(header):,} bytes of numbers and text outside of "
            f"tensors, at most {MAX_HEADER:,}: keep long lists as tensors."
        )
    start = len(header).to_bytes(8, "little") + header
    values = [_bytes(tensors[name]) for name in _layout(tensors)]
    digest = _digest(start, *values).encode()
    return b"".join([start[: DIGEST.start], digest, start[DIGEST.stop :], *values])


def _bytes(tensor: Tensor) -> memoryview:
    # With one entry or none, a contiguous tensor may still have a stride that bytes cannot have.
    flat = tensor.cpu().resolve_neg().contiguous().as_strided((tensor.numel(),), (1,))
    return flat.view(torch.uint8).numpy().data


def _digest(start: bytes | memoryview, *rest: bytes | memoryview) -> str:
    """SHA-256 in hexadecimal digits of a file in parts, its own digits counted as zeros."""
    digest = hashlib.sha256(start[: DIGEST.start])
    for part in (b"0" * 64, start[DIGEST.stop :], *rest):
        digest.update(part)
    return digest.hexdigest()


def _read(path: Path) -> bytes:
    """The content of a file that begins, and is as long, as a checkpoint should."""
    # A link may lead out of the folder, a pipe would be waited on forever.
    if path.is_symlink():
        raise CheckpointError("it is a symbolic link")
    careful = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | careful)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError("it is not a regular file")
        start = file.read(DIGEST.stop)
        if start[8 : DIGEST.start] != START:
            raise CheckpointError(
                "it is not a checkpoint of this package (a pickle, as torch.save writes it, is "
                "never opened)"
            )
        length = int.from_bytes(start[:8], "little")
        if length > min(MAX_HEADER, status.st_size - 8):
            raise CheckpointError(f"it is damaged: its header cannot have {length:,} bytes")
        file.seek(8)
        # Before a large file is read into memory, does it have the size that it claims?
        header = json.loads(file.read(length))
        ends = (header[name]["data_offsets"][1] for name in header if name != "__metadata__")
        size = 8 + length + max(ends, default=0)
        if size != status.st_size:
            raise CheckpointError(f"it is damaged: {status.st_size:,} bytes instead of {size:,}")
        file.seek(0)
        return file.read(size)


def _parse(content: bytes, path: Path) -> Any:
    """The state in the content of a file, if that is exactly what `save` would have written."""
    if _digest(memoryview(content)) != content[DIGEST].decode(errors="replace"):
        raise CheckpointError("it is damaged: its SHA-256 is not the one written into it")
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    metadata = json.loads(header)["__metadata__"]
    if (metadata["format"], metadata["version"]) != (FORMAT, VERSION):
        raise CheckpointError(
            f"it is a {metadata['format']!r:.40} of version {metadata['version']!r:.40}, not a "
            f"{FORMAT!r} of version {VERSION!r}"
        )
    step = int(metadata["step"])
    if STEP.fullmatch(path.name) and _step(path) != step:
        raise CheckpointError(f"it is the checkpoint of step {step} under another's name")
    state = unflatten(load_safetensors(content), json.loads(metadata["state"]))
    zeroed = header[: DIGEST.start - 8] + b"0" * 64 + header[DIGEST.stop - 8 :]
    if _header(*flatten(state), step) != zeroed:
        raise CheckpointError("it has been edited: `save` would have written it otherwise")
    return state


def _check_finite(state: Mapping[str, Any], parts: Sequence[str]) -> None:
    for part in parts:
        if part not in state:
            raise CheckpointError(f"it has no part {part!r}; it has {', '.join(map(str, state))}")
        for name, tensor in flatten({part: state[part]})[0].items():
            # The float8 types have no arithmetic of their own.
            if not torch.isfinite(tensor if tensor.element_size() > 1 else tensor.float()).all():
                raise CheckpointError(f"{name!r} has NaN or infinite entries")


def _has(shape: tuple[int, ...] | None) -> str:
    return "is missing" if shape is None else f"has shape {shape}"


def _first_sound(
    paths: Sequence[Path], require_finite: Sequence[str]
) -> tuple[Path, dict[str, Any]] | tuple[None, None]:
    """The first checkpoint that can be read, and its state."""
    for path in paths:
        try:
            return path, load(path, require_finite=require_finite)
        except CheckpointError as error:
            warnings.warn(f"A checkpoint is passed over. {error}", stacklevel=3)
    return None, None


def _best(folder: str | os.PathLike[str]) -> list[Path]:
    path = Path(folder) / BEST
    return [path] if os.path.lexists(path) else []


def _checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the newest first, sound or not."""
    if not folder.is_dir():
        return []
    return sorted((p for p in folder.iterdir() if STEP.fullmatch(p.name)), key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.name.removeprefix("step-").removesuffix(".safetensors"))


def _set_aside(folder: Path, step: int) -> None:
    """Rename checkpoints of later steps, which an earlier run through these steps has left."""
    for path in _checkpoints(folder):
        if _step(path) > step:
            aside = path.with_name(f"{path.name}.aside")
            os.replace(path, aside)
            warnings.warn(
                f"{path} is later than step {step}, which is saved now: renamed to {aside.name}.",
                stacklevel=3,
            )


def _remove(paths: Iterable[Path]) -> None:
    """Delete what is no longer needed; that it cannot be is no reason to stop a training run."""
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(f"Cannot remove {path}: {error.strerror}.", stacklevel=3)
