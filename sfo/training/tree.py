"""A training state as a tree: its tensors by path, and the rest as JSON can hold it."""

import math
import struct
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

MAX_DEPTH = 100  # Far from Python's own limit, so that what is saved can be loaded.

DTYPES = {
    torch.bool: "BOOL",
    torch.uint8: "U8",
    torch.uint16: "U16",
    torch.uint32: "U32",
    torch.uint64: "U64",
    torch.int8: "I8",
    torch.int16: "I16",
    torch.int32: "I32",
    torch.int64: "I64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.bfloat16: "BF16",
    torch.float16: "F16",
    torch.float32: "F32",
    torch.float64: "F64",
}
"""The types of tensors that a file can hold, as safetensors spells them."""


class CheckpointError(ValueError):
    """A state that cannot be stored, or a file that is not a whole, unchanged checkpoint."""


def flatten(state: Any) -> tuple[dict[str, Tensor], Any]:
    """Split a state into its tensors, by path, and a skeleton that JSON can hold.

    `unflatten(*flatten(state))` is the state again, with every value of its own type and every
    float with its own bits. A state may hold None, bool, int, float, str, list, tuple,
    torch.Size, tensors, NumPy arrays and scalars, and dict, OrderedDict (with the versions that
    `state_dict()` attaches) and Counter with text or whole numbers for keys. Parameters come
    back as plain tensors. No tensor is copied.

    Example:
        >>> flatten({"lr": 0.1, "state": {0: {"mean": torch.zeros(2)}}})[0]
        {'state/0/mean': tensor([0., 0.])}
    """
    tensors: dict[str, Tensor] = {}

    def items(values: Sequence[Any], path: tuple[int | str, ...]) -> list[Any]:
        return [node(value, (*path, i)) for i, value in enumerate(values)]

    def pairs(mapping: Mapping[Any, Any], path: tuple[int | str, ...]) -> list[Any]:
        for key in mapping:
            if type(key) not in (int, str):
                raise CheckpointError(
                    f"Cannot store {_name(path)!r}: its key {key!r} is neither text nor a whole "
                    "number. Use str(key)."
                )
        return [[node(key, path), node(value, (*path, key))] for key, value in mapping.items()]

    def node(value: Any, path: tuple[int | str, ...]) -> Any:
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if value.bit_length() < 64 else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": struct.pack(">d", value).hex()}
        if len(path) > MAX_DEPTH:
            raise CheckpointError(
                f"Cannot store {_name(path[:3])!r}: it is more than {MAX_DEPTH} levels deep or "
                "contains itself. Flatten it."
            )
        if kind is list:
            return items(value, path)
        if kind is tuple:
            return {"tuple": items(value, path)}
        if kind is torch.Size:
            return {"size": items(value, path)}
        if kind is dict:
            return {"dict": pairs(value, path)}
        if kind is Counter:
            return {"counter": pairs(value, path)}
        if kind is OrderedDict and hasattr(value, "_metadata"):
            return {"state_dict": pairs(value, path), "metadata": node(value._metadata, path)}
        if kind is OrderedDict:
            return {"ordered": pairs(value, path)}
        if kind in (Tensor, nn.Parameter) and value.layout is torch.strided and not value.is_meta:
            value = value.detach()
            if value.is_complex():
                return {"complex": node(torch.view_as_real(value.resolve_conj()), path)}
            if value.dtype in DTYPES:
                name = _name(path)
                while name in tensors or name == "__metadata__":
                    name += "~"
                tensors[name] = value
                return {"tensor": name}
        if kind is np.ndarray or isinstance(value, np.generic):
            with suppress(TypeError, ValueError):  # What PyTorch has no type for.
                tensor = torch.from_numpy(np.array(value))
                return {"array" if kind is np.ndarray else "scalar": node(tensor, path)}
        described = f"{value.dtype} {kind.__name__}" if hasattr(value, "dtype") else kind.__name__
        raise CheckpointError(
            f"Cannot store {_name(path)!r}, of type {described}: a checkpoint holds numbers, "
            "text, lists, tuples, dicts, dense tensors and arrays; convert it to these."
        )

    return tensors, node(state, ())


def unflatten(tensors: Mapping[str, Tensor], skeleton: Any) -> Any:
    """The state that `flatten` split."""

    def build(node: Any) -> Any:
        match node:
            case None | bool() | int() | float() | str():
                return node
            case list():
                return [build(item) for item in node]
            case {"tensor": name}:
                return tensors[name]
            case {"complex": parts}:
                return torch.view_as_complex(build(parts))
            case {"array": values}:
                return build(values).numpy()
            case {"scalar": values}:
                return build(values).numpy()[()]
            case {"float": bits}:
                return struct.unpack(">d", bytes.fromhex(bits))[0]
            case {"int": digits}:
                return int(digits, 16)
            case {"tuple": items}:
                return tuple(build(items))
            case {"size": items}:
                return torch.Size(build(items))
            case {"dict": pairs}:
                return dict(build(pairs))
            case {"counter": pairs}:
                return Counter(dict(build(pairs)))
            case {"state_dict": pairs, "metadata": metadata}:
                state_dict = OrderedDict(build(pairs))
                state_dict._metadata = build(metadata)  # type: ignore[attr-defined]
                return state_dict
            case {"ordered": pairs}:
                return OrderedDict(build(pairs))
        raise CheckpointError(f"its state holds a value of unknown kind, {str(node)[:40]}")

    return build(skeleton)


def _name(path: Sequence[Any]) -> str:
    """A path for people and for safetensors, which takes no half of a surrogate pair."""
    return "/".join(map(str, path)).encode(errors="replace").decode()
