"""Pointwise work on large fields, tile by tile, so that what lies between stays in cache."""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.shapes import Field
from sfo.transforms import is_observed, needs_plain_operators

POINTS = 2048
"""Points of one tile: 64 channels of them take half a megabyte, and fit most caches."""
LARGE = 2**20
"""Fields of fewer numbers than this, four megabytes in float32, stay in cache as they are."""
PER_THREAD = 4
"""Tiles of each thread at a time, if there are several: waking threads takes as long as a tile."""


def in_tiles(
    function: Callable[..., Field], *fields: Field, modules: tuple[nn.Module, ...]
) -> Field:
    """What a pointwise function gives, computed tile by tile where that is quicker.

    A chain of pointwise maps reads and writes the whole field at every link. In prediction
    nothing between the links is needed later: done for some points at a time, all but the first
    and the last link stay in cache. The numbers are the same to the bit. It is done on a CPU,
    without gradients, for large fields. Several threads share a group of tiles, which the function
    sees as a batch.

    Args:
        function: Maps fields `(batch, channel, points)` to one, each point on its own.
        fields: Its arguments, fields on one grid.
        modules: What the function calls; hooks on them see whole fields.

    Example:
        >>> v = torch.linspace(-1, 1, 2**20).view(1, 2, 2**19)
        >>> with torch.no_grad():
        ...     torch.equal(in_tiles(torch.relu, v, modules=()), v.relu())
        True
    """
    v = fields[0]
    is_small = (
        # First, because an export with a dynamic batch must not ask for its size.
        needs_plain_operators(*fields)
        or v.device.type != "cpu"
        or v.numel() < LARGE
        or torch.is_grad_enabled()
        or any(is_observed(part) for module in modules for part in module.modules())
    )
    if is_small:
        return function(*fields)
    flat = [field.flatten(2) for field in fields]
    points = flat[0].shape[2]
    out: Field | None = None
    for sample in range(len(v)):
        for start, n, width in _groups(points):
            part = function(*(_as_batch(field[sample], start, n, width) for field in flat))
            if out is None:
                out = part.new_empty(len(v), part.shape[1], points)
            _as_batch(out[sample], start, n, width).copy_(part)
    assert out is not None  # a large field has points
    return out.view(*out.shape[:2], *v.shape[2:])


def _groups(points: int) -> Iterator[tuple[int, int, int]]:
    """Where each group of tiles begins, how many tiles it has, and of how many points."""
    threads = torch.get_num_threads()
    together = 1 if threads == 1 else PER_THREAD * threads
    start = 0
    while start < points:
        left = points - start
        n, width = max(1, min(together, left // POINTS)), min(POINTS, left)
        yield start, n, width
        start += n * width


def _as_batch(
    field: Float[Tensor, "channel points"], start: int, n: int, width: int
) -> Float[Tensor, "n channel width"]:
    """A group of tiles as a batch, without a copy: products of a batch are shared by threads."""
    return field[:, start : start + n * width].unflatten(1, (n, width)).transpose(0, 1)
