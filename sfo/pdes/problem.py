"""What every solver asks of its input, said in one sentence where it does not hold."""

import dataclasses
import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

Array = Tensor | np.ndarray
"""What solvers take: fields and times of either library, of any float type."""

MOST_STEPS = 1e8
"""From one time to the next; more would not end."""


FLOAT_TYPES = {str(kind) for kind in (float, "float", float | tuple[float, ...])}
"""Annotations of the fields of an equation that are numbers, also as text."""


class NotSolved(ArithmeticError, ValueError):
    """A solver gives up on a problem, or what it found is not finite."""


def check_constants(equation: Any, *positive: str) -> None:
    """Refuse constants that are not finite, a box without a size, and others that must be positive.

    Args:
        equation: A dataclass of numbers, of which `lower` and `upper` are the ends of its box.
        positive: Names of those that must be above 0.
    """
    for field in dataclasses.fields(equation):
        value = getattr(equation, field.name)
        if str(field.type) not in FLOAT_TYPES:
            continue
        for number in value if isinstance(value, tuple) else (value,):
            if not is_number(number):
                raise ValueError(f"`{field.name}` must be a number, got {value!r}.")
            # Of the solver, which takes it for whole intervals if infinite.
            if field.name != "max_step" and not math.isfinite(number):
                raise ValueError(f"`{field.name}` must be finite, got {value}.")
    for name in positive:
        if not getattr(equation, name) > 0:
            raise ValueError(f"`{name}` must be positive, got {getattr(equation, name)}.")
    if hasattr(equation, "lower") and hasattr(equation, "upper"):
        lower, upper = (np.atleast_1d(end) for end in (equation.lower, equation.upper))
        if len(lower) != len(upper) or not (lower < upper).all():
            raise ValueError(
                f"`lower` must be below `upper`, got lower={equation.lower} and "
                f"upper={equation.upper}."
            )


def check_solved(frames: Tensor) -> Tensor:
    """Solutions, found to be finite."""
    bad = (~frames.isfinite()).flatten(1).any(1)
    if bad.any():
        raise NotSolved(
            f"The solution of sample {int(bad.nonzero()[0])} is not finite; pass fields, times "
            "and constants of the size of the benchmark's."
        )
    return frames


def check_problem(
    initial: Array,
    times: Array | Sequence[float],
    channels: int | Sequence[int],
    n_dim: int = 1,
    least_points: int = 1,
) -> tuple[Tensor, Tensor]:
    """Initial fields and times in float64, or a ValueError that says what is wrong with them.

    Args:
        initial: Fields at the first of the times.
        times: Times of the frames.
        channels: How many channels the fields have, or the numbers that are allowed.
        n_dim: Number of axes of the grid.
        least_points: Fewest points along an axis.
    """
    return check_fields(initial, "initial", channels, n_dim, least_points), check_times(times)


def check_fields(
    fields: Array,
    name: str,
    channels: int | Sequence[int] = 1,
    n_dim: int = 1,
    least_points: int = 1,
) -> Tensor:
    """Fields `(sample, channel, *grid)` in float64: not empty, of the right shape, and finite.

    Args:
        fields: Fields to check.
        name: Name of the argument, for the message.
        channels: How many channels the fields have, or the numbers that are allowed.
        n_dim: Number of axes of the grid.
        least_points: Fewest points along an axis.
    """
    fields = numbers(fields, name)
    allowed = (channels,) if isinstance(channels, int) else tuple(channels)
    shape = tuple(fields.shape)
    if len(shape) != 2 + n_dim or shape[1] not in allowed or min(shape[2:]) < least_points:
        points = ["n"] if n_dim == 1 else list("XYZ")[:n_dim]
        axes = ", ".join(["sample", " or ".join(map(str, allowed)), *points])
        least = f" with at least {least_points} points per axis" if least_points > 1 else ""
        hint = "[None, None]" if allowed == (1,) else "[None]"
        raise ValueError(
            f"`{name}` must have the shape ({axes}){least}, got {shape}. "
            f"A single sample is passed as {name}{hint}."
        )
    if not len(fields):
        raise ValueError(f"`{name}` must hold at least one sample, got the shape {shape}.")
    bad = ~fields.isfinite()
    if bad.any():
        sample, channel, *point = map(int, bad.nonzero()[0])
        many = int(bad.flatten(1).any(1).sum())
        more = f" and in {many - 1} other samples" if many > 1 else ""
        raise ValueError(
            f"`{name}` must be finite, got {float(fields[bad][0])} in sample {sample}, channel "
            f"{channel}, at the point {tuple(point)}{more}."
        )
    return fields


def numbers(values: Any, name: str) -> Tensor:
    """What a caller passes for an array, as a tensor of real numbers in float64.

    Args:
        values: A tensor, an array of NumPy in any byte order or layout, or nested sequences.
        name: Name of the argument, for the message.

    Example:
        >>> numbers([0, 0.5], "times")
        tensor([0.0000, 0.5000], dtype=torch.float64)
        >>> numbers("soon", "times")
        Traceback (most recent call last):
        ValueError: `times` must be real numbers, got 'soon'; pass an array or a list of them.
    """
    if isinstance(values, Tensor):
        if values.is_meta or values.is_nested or values.layout != torch.strided:
            what = "on the meta device" if values.is_meta else "that is not dense"
            raise ValueError(
                f"`{name}` must be a dense tensor with numbers, got one {what}; make it dense, as "
                f"with {name}.to_dense()."
            )
        if values.is_complex() or values.is_quantized:
            raise ValueError(f"`{name}` must be real, got {values.dtype}; pass its real part.")
        return values.detach().to(torch.float64)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(
            f"`{name}` must have no masked values, whose numbers mean nothing; leave them out, or "
            f"fill them, as with {name}.filled(0.0)."
        )
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biuf":
            return torch.from_numpy(
                np.require(array, np.float64, ["C_CONTIGUOUS", "WRITEABLE", "ENSUREARRAY"])
            )
    # Lists of rows of several lengths, tensors on other devices, objects of others.
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    else:
        if array.dtype.kind == "c":
            raise ValueError(f"`{name}` must be real, got {array.dtype}; pass its real part.")
    kind = getattr(values, "dtype", None)
    got = f"an array of {kind}" if kind is not None else f"{values!r:.60}"
    raise ValueError(f"`{name}` must be real numbers, got {got}; pass an array or a list of them.")


def is_number(value: Any) -> bool:
    """Whether it is one real number: of Python, of NumPy, or a tensor without axes."""
    if isinstance(value, Tensor):
        return value.ndim == 0 and not value.is_complex() and not value.is_meta
    return isinstance(value, Real) and not isinstance(value, bool)


def check_positive(name: str, value: Any) -> float:
    """A number above 0, of whatever type of number, or a ValueError.

    Example:
        >>> check_positive("max_step", "0.1")
        Traceback (most recent call last):
        ValueError: `max_step` must be a positive number, got '0.1'.
    """
    if not is_number(value) or not value > 0:
        raise ValueError(f"`{name}` must be a positive number, got {value!r}.")
    return float(value)


def check_times(times: Array | Sequence[float]) -> Tensor:
    """Times of the frames in float64, found to be finite and increasing."""
    instants = numbers(times, "times")
    is_row = instants.ndim == 1 and len(instants) > 0
    if not is_row or not instants.isfinite().all() or not (instants.diff() > 0).all():
        raise ValueError(
            "`times` must be one row of increasing, finite numbers that begins with the time "
            f"of `initial`, got {instants.tolist()}."
        )
    return instants
