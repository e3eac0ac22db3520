"""Inputs beside what a model makes of them, where there is no truth to compare with."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sfo.grid import Grid
from sfo.plot.colours import FieldColours
from sfo.titles import drawn


def answer_figure(
    a: np.ndarray,
    u: np.ndarray,
    grid: Grid,
    times: Sequence[float],
    names: Sequence[str],
    inputs: Sequence[str],
    word: str = "prediction",
) -> Figure:
    """The first channel of some inputs, and the first field of their predictions.

    On one axis a prediction of several frames is drawn over space and time; on more, its last
    frame, and of three axes or more the middle plane.

    Args:
        a: Inputs `(sample, channel, *grid)`, or one without the first axis.
        u: Predictions for them.
        grid: The points that the model was trained on; the picture may be on others.
        times: Times of u's frames.
        names: Names of u's fields.
        inputs: Names of a's fields.
        word: Word for u in the titles.

    Example:
        >>> import torch
        >>> grid, a = Grid((16,), (0.0,), (1.0,)), torch.rand(2, 1, 16)
        >>> figure = answer_figure(a, 2 * a, grid, times=(0.0,), names=("u",), inputs=("a",))
        >>> figure.savefig("/dev/null", format="png")
    """
    if a.ndim == grid.n_dim + 1:
        a, u = a[None], u[None]
    rows = len(a)
    figure = Figure(figsize=(7, 2.4 * rows), layout="constrained")
    panels = figure.subplots(rows, 2, squeeze=False)
    for row, (left, right) in enumerate(panels):
        frames = u[row, : len(times)]
        _draw(left, a[row, :1], f"sample {row}: input {inputs[0]}", grid)
        title = f"{word} {names[0]}"
        if grid.n_dim > 1 and len(times) > 1:
            title += f" at t = {times[-1]:.3g}"
        _draw(right, frames if grid.n_dim == 1 else frames[-1:], title, grid, times)
    return figure


def _draw(
    panel: Any, frames: np.ndarray, title: str, grid: Grid, times: Sequence[float] = (0.0,)
) -> None:
    if grid.n_dim == 1 and len(frames) == 1:
        n = frames.shape[-1]
        panel.plot(np.linspace(grid.lower[0], grid.upper[0], n, endpoint=False), frames[0])
        panel.set(xlabel="x")
    else:
        plane = frames
        while plane.ndim > 2:
            plane = plane[len(plane) // 2]
        lower, upper = grid.lower, grid.upper
        extent = (
            (lower[0], upper[0], times[0], times[-1])
            if grid.n_dim == 1
            else (lower[-1], upper[-1], lower[-2], upper[-2])
        )
        colours = FieldColours.of(plane)
        colours.draw_evenly(panel, plane, extent, aspect="auto")
        colours.add_bar(panel.figure, panel)
        panel.set(xlabel="x" if grid.n_dim == 1 else "y", ylabel="t" if grid.n_dim == 1 else "x")
    panel.set_title(drawn(title), fontsize="medium")
