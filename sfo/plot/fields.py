"""Pictures of trajectories: space–time images in 1D, frames in 2D, middle planes in 3D."""

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from sfo.checks import check_at_least
from sfo.data.load import benchmark_path, load_file
from sfo.data.pairs import Pairs
from sfo.data.trajectories import Trajectories
from sfo.files import save_figure
from sfo.grid import Grid
from sfo.plot.colours import EARLY_TO_LATE, FieldColours
from sfo.registry import BENCHMARKS
from sfo.titles import drawn


def picture(data: Trajectories | Pairs, samples: int = 6, title: str | None = None) -> Figure:
    """The first samples of `data`, with one colour scale per field.

    Args:
        data: Trajectories; or pairs, whose solutions are drawn.
        samples: How many at most.
        title: Title of the picture.

    Example:
        >>> grid = Grid((8,), (-1.0,), (1.0,))
        >>> u = torch.rand(2, 5, 1, 8)
        >>> data = Trajectories(u, torch.linspace(0, 1, 5), grid, ("u",), ids=(0, 1))
        >>> picture(data).savefig("/dev/null", format="png")
    """
    check_at_least(1, samples=samples)
    if isinstance(data, Pairs):
        data = _trajectories(data)
    # Paper has two axes: a field of one axis leaves one for time, a field of three must be cut.
    draw = {1: _space_time, 2: _frames, 3: _middle_planes}
    if data.grid.n_dim not in draw:
        raise ValueError(f"Fields of 1, 2 or 3 axes can be drawn, got {data.grid.n_dim}.")
    figure = draw[data.grid.n_dim](_first(data, samples))
    if title is not None:
        figure.suptitle(drawn(title))
    return figure


def show_benchmark(
    name: str,
    scale: str = "smoke",
    samples: int = 4,
    seed: int = 0,
    out: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Path:
    """Generate the first samples of a benchmark, unless they are there, and draw them.

    Args:
        name: A benchmark.
        scale: "smoke", "desk" or "paper".
        samples: How many.
        seed: Seed of the data.
        out: The picture to write; None: runs/NAME.png.
        options: Options of the benchmark.

    Returns:
        Where the picture is.
    """
    from sfo.data.generate import generate

    benchmark = BENCHMARKS[name].with_options(**options)
    path = benchmark_path(benchmark, scale, samples, seed)
    generate(benchmark, path, scale=scale, samples=samples, seed=seed)
    file = load_file(path, benchmark.scale(scale).stride)
    out = Path("runs") / f"{name}.png" if out is None else Path(out)
    return save_figure(picture(file[:], samples, title=benchmark.title), out)


def _trajectories(pairs: Pairs) -> Trajectories:
    """The solutions of pairs, and those of their inputs that do not change in time."""
    fixed = tuple(name for name in pairs.inputs if name not in pairs.names)
    fields = pairs.fields()
    return Trajectories(
        pairs.trajectory(),
        torch.tensor(pairs.times, dtype=torch.float64),
        pairs.grid,
        pairs.names,
        pairs.ids,
        torch.cat([fields[name] for name in fixed], dim=1) if fixed else None,
        fixed,
    )


def _first(data: Trajectories, samples: int) -> Trajectories:
    static = None if data.static is None else data.static[:samples]
    return replace(data, values=data.values[:samples], ids=data.ids[:samples], static=static)


def _space_time(data: Trajectories) -> Figure:
    """Above, an image per sample, x to the right and time upwards; below, u(x) at a few times."""
    fields, columns = len(data.names), len(data)
    figure = Figure(figsize=(1.9 * columns + 1.1, 3.2 * fields + 0.4), layout="constrained")
    heights = [2, 1] * fields
    panels = figure.subplots(
        2 * fields, columns, squeeze=False, sharex=True, sharey="row", height_ratios=heights
    )
    for row in range(fields):
        _draw_space_time(figure, panels[2 * row : 2 * row + 2], data, row)
    return figure


def _draw_space_time(figure: Figure, panels: np.ndarray, data: Trajectories, channel: int) -> None:
    images, profiles = panels
    name, values, times = drawn(data.names[channel]), data.values[:, :, channel], data.times.numpy()
    unit, suffix = _unit(data.grid)
    edges, t = _edges(data.grid, axis=0) / unit, _between(times[0], times, times[-1])
    x = data.grid.coordinates()[0].numpy() / unit
    # What changes fast does so at the begin.
    shown = sorted({0, len(times) // 10, len(times) - 1})
    colours = FieldColours.of(values)
    for column, (field, sample) in enumerate(zip(values.numpy(), data.ids, strict=True)):
        colours.draw(images[column], edges, t, field)
        images[column].set_title(f"sample {sample}", fontsize="medium")
        for i, shade in zip(shown, EARLY_TO_LATE, strict=False):
            label = f"t = {times[i]:.3g}"
            profiles[column].plot(x, field[i], color=shade, lw=0.9, label=label)
        profiles[column].set_xlabel(f"x{suffix}")
    images[0].set_ylabel("t")
    profiles[0].set_ylabel(name)
    colours.add_bar(figure, images, name, location="right", aspect=25)
    beside = dict(loc="center left", bbox_to_anchor=(1.03, 0.5), fontsize="x-small")
    legend = profiles[-1].legend(frameon=False, handlelength=0.8, **beside)
    legend.set_in_layout(False)  # It stands below the colour bar, which has made room already.


def _frames(data: Trajectories) -> Figure:
    """A row per sample: the static fields, then each field at a few times."""
    blocks = _blocks(data)
    rows, columns = len(data), sum(len(titles) for _, titles, _ in blocks)
    figure = Figure(figsize=(1.15 * columns + 0.8, 1.15 * rows + 1.3), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    unit, suffix = _unit(data.grid)
    x, y = (_edges(data.grid, axis) / unit for axis in (0, 1))
    left = 0
    for name, titles, fields in blocks:
        block = panels[:, left : left + len(titles)]
        left += len(titles)
        colours = FieldColours.of(fields)
        for (row, column), axes in np.ndenumerate(block):
            colours.draw(axes, x, y, fields[row, column].numpy().T)
            axes.set_aspect("equal")
        for axes, title in zip(block[0], titles, strict=True):
            axes.set_title(f"{name}\n{title}", fontsize="small")
        colours.add_bar(figure, block, name, location="bottom", aspect=12 * len(titles))
    for axes, sample in zip(panels[:, 0], data.ids, strict=True):
        axes.set_ylabel(f"sample {sample}\ny{suffix}", fontsize="small")
    for axes in panels[-1]:
        axes.set_xlabel(f"x{suffix}", fontsize="small")
    # Ticks at the outer panels only: they are what takes time.
    for axes in panels[:-1].flat:
        axes.set_xticks([])
    for axes in panels[:, 1:].flat:
        axes.set_yticks([])
    for axes in (*panels[:, 0], *panels[-1]):
        axes.tick_params(labelsize="x-small")
    return figure


def _middle_planes(data: Trajectories) -> Figure:
    """The frames on the plane z = const. through the middle."""
    middle, grid = data.grid.shape[2] // 2, data.grid
    plane = replace(grid, shape=grid.shape[:2], lower=grid.lower[:2], upper=grid.upper[:2])
    static = None if data.static is None else data.static[..., middle]
    figure = _frames(replace(data, values=data.values[..., middle], grid=plane, static=static))
    z = float(grid.coordinates()[2][middle])
    figure.supxlabel(f"in the plane z = {z:.3g}", fontsize="medium")
    return figure


def _blocks(data: Trajectories) -> list[tuple[str, list[str], Float[Tensor, "sample frame X Y"]]]:
    """What stands side by side: (field, titles of its frames, its frames)."""
    blocks = []
    if data.static is not None:
        for name, field in zip(data.static_names, data.static.unbind(1), strict=True):
            blocks.append((drawn(name), [""], field[:, None]))
    n_frames = min(5, max(2, 10 // len(data.names)))
    for name, fields in zip(data.names, data.values.unbind(2), strict=True):
        # Water at rest has no velocity to show.
        first = 0 if fields[:, 0].any() or len(data.times) == 1 else 1
        shown = np.linspace(first, len(data.times) - 1, n_frames).round().astype(int)
        shown = np.unique(shown)
        steady = len(data.times) == 1
        titles = ["" if steady else f"t = {data.times[i]:.3g}" for i in shown]
        blocks.append((drawn(name), titles, fields[:, shown]))
    return blocks


def _unit(grid: Grid) -> tuple[float, str]:
    """A power of ten that coordinates are counted in, and how to say so."""
    largest = max(map(abs, (*grid.lower, *grid.upper)))
    power = math.floor(math.log10(largest))
    return (1.0, "") if -2 <= power <= 3 else (10.0**power, f" / 1e{power}")


def _edges(grid: Grid, axis: int) -> Float[np.ndarray, " edges"]:
    """Of the pixels along an axis; the outermost reach to the ends of the box."""
    x = grid.coordinates()[axis].numpy()
    return _between(grid.lower[axis], x, grid.upper[axis])


def _between(first: float, x: np.ndarray, last: float) -> np.ndarray:
    if len(x) == 1 and first == last:
        first, last = first - 0.5, last + 0.5
    return np.concatenate([[first], (x[1:] + x[:-1]) / 2, [last]])
