"""Which benchmark a file without our header belongs to, by looking at what is in it."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, permutations
from typing import Any

import h5py
import numpy as np
import torch

from sfo.data.hdf5 import AXES, DataFileError, Header, Layout
from sfo.data.opening import own_dataset
from sfo.grid import Grid
from sfo.pdes import AllenCahn, CahnHilliard, DiffusionReaction
from sfo.pdes.base import Semilinear
from sfo.registry import BENCHMARKS

GROUPS = {
    # (axes of the grid, channels): benchmark
    (1, 1): "diffusion_sorption",
    (2, 1): "shallow_water_rdb",
    (2, 3): "shallow_water",
    (3, 6): "maxwell",
}
EQUATIONS: tuple[tuple[str, AllenCahn | CahnHilliard | DiffusionReaction], ...] = (
    ("allen_cahn", AllenCahn()),
    ("diffusion_reaction", DiffusionReaction()),
    ("cahn_hilliard", CahnHilliard()),
    # The name of the published file, and some codes that read it, have ten times the paper's γ.
    ("cahn_hilliard", CahnHilliard(gamma=1e-5)),
)
ENOUGH_POINTS = 512
LARGEST_MISFIT = 0.2


def recognise(file: h5py.File, layout: Layout, keys: list[str]) -> Header:
    """The header that a published file, or a subset of it, would have.

    Its `source` holds the constants of the equation that was found to fit, and its misfit.
    """
    return _tensor(file) if layout == "tensor" else _groups(file, keys)


def _tensor(file: h5py.File) -> Header:
    for name in ("x-coordinate", "t-coordinate"):
        if name not in file:
            raise DataFileError(f"{file.filename} has no `{name}` beside `tensor`.")
    shape = file["tensor"].shape
    x, t = (np.atleast_1d(own_dataset(file, f"{axis}-coordinate")[()]) for axis in "xt")
    # The published Diffusion–Reaction file has one time too many.
    frames = (len(t), len(t) - 1)
    _check_axes(file, "tensor", shape, {"sample": (), "time": frames, "x": (len(x),)})
    times = _times(file, t[: shape[1]])
    name, source = _which_equation(file, x, times)
    return Header(name, shape[0], _grid(file, {"x": x}, name), times, ("u",), source=source)


def _groups(file: h5py.File, keys: list[str]) -> Header:
    needed = ("data", "grid/x", "grid/t")
    whole = [key for key in keys if all(name in file[key] for name in needed)]
    if not whole:
        raise DataFileError(f"{file.filename} has no sample with all of {', '.join(needed)}.")
    first = file[whole[0]]
    lines = {
        axis: own_dataset(first, f"grid/{axis}")[()] for axis in AXES if f"grid/{axis}" in first
    }
    times, shape = own_dataset(first, "grid/t")[()], own_dataset(first, "data").shape
    sizes = {axis: (len(x),) for axis, x in lines.items()}
    channels = tuple(c for n_dim, c in GROUPS if n_dim == len(lines))
    axes = {"time": (len(times),), **sizes, "channel": channels}
    _check_axes(file, f"{whole[0]}/data", shape, axes)
    name = GROUPS[len(lines), shape[-1]]
    known = BENCHMARKS[name]
    static_names = known.static_names if "static" in first else ()
    grid = _grid(file, lines, name)
    return Header(name, len(keys), grid, _times(file, times), known.names, static_names)


def _check_axes(
    file: h5py.File, what: str, shape: tuple[int, ...], axes: dict[str, tuple[int, ...]]
) -> None:
    """Refuse a shape that the coordinates contradict, and say so if axes are only swapped.

    Args:
        file: For the message.
        what: The array.
        shape: As found.
        axes: Names in the right order, and the lengths that each may have; none: any.
    """

    def fit(names: Sequence[str]) -> bool:
        return all(not axes[a] or n in axes[a] for a, n in zip(names, shape, strict=True))

    right = ", ".join(
        f"{name} {' or '.join(map(str, lengths[:1] if name == 'time' else lengths))}".strip()
        for name, lengths in axes.items()
    )
    message = (
        f"{file.filename} has `{what}` of the shape {shape}; by its coordinates it must be "
        f"({right})."
    )
    if len(shape) == len(axes):
        if fit(list(axes)):
            return
        if orders := [order for order in permutations(axes) if fit(order)]:
            found = min(orders, key=lambda order: _disorder([list(axes).index(a) for a in order]))
            back = tuple(found.index(name) for name in axes)
            message += (
                f" Its axes look swapped, ({', '.join(found)}): put them right with "
                f"np.transpose(…, {back})."
            )
    raise DataFileError(message)


def _disorder(ranks: list[int]) -> int:
    """How many pairs are in the wrong order."""
    return sum(a > b for a, b in combinations(ranks, 2))


def _which_equation(
    file: h5py.File, x: np.ndarray, times: tuple[float, ...]
) -> tuple[str, dict[str, Any]]:
    """The equation that carries the first frame to the second, and how well it does.

    The right one misses less than 1 % of the change, on coarse subsets too, the others more than
    40 %. The published Diffusion–Reaction file passes, because so early diffusion rules; what its
    reaction is worth, `sfo doctor` says.
    """
    tensor, length = file["tensor"], len(x) * _spacing(file, "x", x)
    if not len(tensor) or len(times) < 2:
        return "unknown", {}
    rows = np.unique(np.linspace(0, len(tensor) - 1, 8).astype(int))
    frames = torch.from_numpy(tensor[rows, :2].astype(np.float64))
    frames = frames[_informative(frames)]
    for name, equation in EQUATIONS:
        if len(frames) and np.isclose(length, equation.length, rtol=0.01):
            misfit = _misfit(equation, frames, times)
            if misfit < LARGEST_MISFIT:
                return name, dict(equation=asdict(equation), misfit=misfit)
    if {"Nu", "rho"} <= set(file.attrs):
        return "diffusion_reaction", {}
    return "unknown", {}


def _informative(frames: torch.Tensor) -> torch.Tensor:
    """Which samples `(sample, 2, n)` are finite, move, and have no waves as short as two points.

    A subset may be too coarse for some of its samples: those fit no equation.
    """
    moving = (frames[:, 0] != frames[:, 1]).any(-1)
    power = torch.fft.rfft(frames[:, 0]).abs() ** 2
    shortest = power[:, int(0.47 * frames.shape[-1]) + 1 :].sum(-1)
    return frames.isfinite().all(-1).all(-1) & moving & (shortest < 1e-3 * power.sum(-1))


def _misfit(equation: Semilinear, frames: torch.Tensor, times: tuple[float, ...]) -> float:
    """‖solution − second frame‖ / ‖second − first frame‖, the median over the samples."""
    n = frames.shape[-1]
    finer = -(-ENOUGH_POINTS // n)
    start = torch.fft.irfft(finer * torch.fft.rfft(frames[:, :1]), n=finer * n)
    try:
        # The equation's own steps without refining them: 1 % is asked for, and numbers from
        # anywhere would be refined as far as that goes.
        steps = equation.max_step
        solution = equation.solve(start, times[:2], max_step=steps)[:, 1, 0, ::finer]
    except ValueError:  # It blew up: the data are far from what the equation allows.
        return float("inf")
    missed = (solution - frames[:, 1]).norm(dim=-1)
    return float((missed / (frames[:, 1] - frames[:, 0]).norm(dim=-1)).median())


def _times(file: h5py.File, stored: np.ndarray) -> tuple[float, ...]:
    if not (len(stored) and (np.diff(stored) > 0).all()):
        raise DataFileError(f"{file.filename} has times that do not increase.")
    # Through text: the float32 nearest to 0.01 is meant as 0.01.
    return tuple(float(str(t)) for t in stored)


def _spacing(file: h5py.File, axis: str, x: np.ndarray) -> float:
    """The distance h of the points along one axis, without the round-off of float32."""
    if len(x) > 1:
        h = float(x[-1] - x[0]) / (len(x) - 1)
        if h > 0 and np.allclose(np.diff(x), h, rtol=1e-2, atol=0):
            return float(f"{h:.6g}")
    raise DataFileError(
        f"{file.filename} has coordinates along {axis} that are not increasing, equally spaced "
        "numbers."
    )


def _grid(file: h5py.File, lines: dict[str, np.ndarray], benchmark: str) -> Grid:
    """The grid whose points these are: in the benchmark's box if they fit there, else centred.

    A subset that takes every r-th point of cells begins at h/2r, not h/2.
    """
    n = np.asarray([len(x) for x in lines.values()])
    h = np.asarray([_spacing(file, axis, x) for axis, x in lines.items()])
    first = np.asarray([float(x[0]) for x in lines.values()])
    lower, upper, offset, periodic = first - h / 2, first + (n - 0.5) * h, 0.5, False
    if benchmark in BENCHMARKS:
        known = BENCHMARKS[benchmark]
        box = known.grid(known.scale("paper"))
        periodic = box.periodic
        offsets = (first - box.lower) / h
        if np.ptp(offsets) < 0.01 and -0.01 < offsets[0] < 1:
            offset, lower = _exact(offsets[0]), np.asarray(box.lower)
            upper = lower + n * h
            upper = np.where(abs(upper - box.upper) < 0.1 * h, box.upper, upper)
    return Grid(tuple(n.tolist()), tuple(lower.tolist()), tuple(upper.tolist()), offset, periodic)


def _exact(offset: float) -> float:
    """0, or 1/2r, if the offset is that but for round-off."""
    if offset < 0.005:
        return 0.0
    exact = 0.5 / max(1, round(0.5 / offset))
    return exact if abs(exact - offset) < 0.005 else float(offset)
