"""Which parameters of a model are matrices, and where their rows and columns lie.

A parameter that multiplies channels is a linear map, or a batch of them, and an optimizer may use
that (see `sfo.training.muon`). Most lie as `(*batch, rows, columns)`. A module whose parameters lie
otherwise says so, for its own parameters or for those inside of it, by patterns of their names:

    class FactoredKernel(nn.Module):
        matrix_layouts: ClassVar[dict[str, Layout | None]] = {"theta": "first_by_rest"}
"""

from fnmatch import fnmatchcase
from math import prod
from typing import Literal

from jaxtyping import Shaped
from torch import Tensor, nn

Layout = Literal["last_two", "first_two", "first_by_rest"]
"""Rows and columns are the last two axes, or the first two; all other axes are a batch. Or the
rows are the first axis and the columns all others, flattened: one matrix."""

CONVOLUTIONS = (
    *(nn.Conv1d, nn.Conv2d, nn.Conv3d),
    *(nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d),
)
TABLES = (nn.Embedding, nn.EmbeddingBag, nn.LayerNorm, nn.RMSNorm)
"""Modules whose parameters are entries or factors of their own, whatever their shape."""


def matrix_layouts(model: nn.Module) -> dict[str, Layout | None]:
    """How each parameter is a matrix, by its name and in the order of `model.parameters()`.

    None where it is not: a vector, a matrix with a side of length 1 (such as the weight of a map
    from one channel, or a bias with axes to broadcast over), a table, the weight of a convolution
    with groups. Another convolution's weight is one matrix, its first axis by all others. What
    `matrix_layouts` of a module says goes first, that of the innermost module before that of
    those around it.

    Example:
        >>> matrix_layouts(nn.Sequential(nn.Linear(2, 3), nn.Conv1d(3, 4, kernel_size=5)))
        {'0.weight': 'last_two', '0.bias': None, '1.weight': 'first_by_rest', '1.bias': None}
    """
    modules = dict(model.named_modules())
    layouts: dict[str, Layout | None] = {}
    for name, parameter in model.named_parameters():
        layout = _layout(modules, name, parameter)
        if layout is not None and min(matrix_sides(parameter.shape, layout)) < 2:
            layout = None
        layouts[name] = layout
    return layouts


def _layout(modules: dict[str, nn.Module], name: str, parameter: Tensor) -> Layout | None:
    """What modules say, from the inside out, or else the owner's kind."""
    if parameter.ndim < 2:
        return None
    parts = name.split(".")
    for depth in reversed(range(len(parts))):
        around = modules[".".join(parts[:depth])]
        for pattern, layout in getattr(around, "matrix_layouts", {}).items():
            if fnmatchcase(".".join(parts[depth:]), pattern):
                return layout
    owner = modules[".".join(parts[:-1])]
    if isinstance(owner, TABLES):
        return None
    if isinstance(owner, CONVOLUTIONS):
        return "first_by_rest" if owner.groups == 1 else None
    return "last_two"


def matrix_sides(shape: tuple[int, ...], layout: Layout) -> tuple[int, int]:
    """Rows and columns of each matrix.

    Example:
        >>> matrix_sides((2, 3, 4), "last_two"), matrix_sides((2, 3, 4), "first_by_rest")
        ((3, 4), (2, 12))
    """
    match layout:
        case "last_two":
            return shape[-2], shape[-1]
        case "first_two":
            return shape[0], shape[1]
    return shape[0], prod(shape[1:])


def as_matrices(values: Tensor, layout: Layout) -> Shaped[Tensor, "batch rows columns"]:
    """A parameter, or what belongs to it, as a batch of matrices; a copy where no view will do."""
    rows, columns = matrix_sides(values.shape, layout)
    if layout == "first_two":
        values = values.movedim((0, 1), (-2, -1))
    return values.reshape(-1, rows, columns)


def from_matrices(
    matrices: Shaped[Tensor, "batch rows columns"], layout: Layout, shape: tuple[int, ...]
) -> Tensor:
    """What `as_matrices` was given, of that shape."""
    if layout == "first_two":
        return matrices.reshape(*shape[2:], *shape[:2]).movedim((-2, -1), (0, 1))
    return matrices.reshape(shape)
