"""Prediction beside truth and error: the best, the median and the worst sample."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from sfo.data.pairs import Pairs
from sfo.plot.colours import FieldColours
from sfo.titles import drawn


def prediction_figure(pairs: Pairs, prediction: Tensor, errors: Sequence[float]) -> Figure:
    """Truth, prediction and error of the best, the median and the worst sample.

    In 1D the whole solution over space and time; in 2D the last frame of the first field; in 3D
    the middle plane of it.

    Args:
        pairs: The test samples.
        prediction: u as the model has it, for all of them.
        errors: Relative L2 of each sample.

    Example:
        >>> import torch
        >>> from sfo.grid import Grid
        >>> u, grid = torch.rand(3, 1, 16), Grid((16,), (0.0,), (1.0,))
        >>> pairs = Pairs(u, u, grid, (0, 1, 2), (0.0,), ("u",), ("u",))
        >>> prediction_figure(pairs, 0.9 * u, [0.1, 0.1, 0.1]).savefig("/dev/null", format="png")
    """
    order = np.argsort(errors)
    rows = {"best": order[0], "median": order[len(order) // 2], "worst": order[-1]}
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    panels = figure.subplots(3, 3, squeeze=False)
    for line, (title, row) in zip(panels, rows.items(), strict=True):
        truth = _plane(pairs, pairs.trajectory()[row])
        guess = _plane(pairs, pairs.trajectory(prediction)[row])
        difference = guess - truth
        if pairs.grid.n_dim == 1 and pairs.n_times == 1:
            _draw_lines(line, pairs, title, truth[0], guess[0], int(row), errors[row])
            continue
        colours = FieldColours.of(truth)
        for axes, name, values, scale in (
            (line[0], f"{title}: sample {pairs.ids[row]}", truth, colours),
            (line[1], f"prediction ({100 * errors[row]:.3g} %)", guess, colours),
            (line[2], "error", difference, FieldColours.of_difference(difference)),
        ):
            scale.draw_evenly(axes, values, _extent(pairs), aspect="auto")
            scale.add_bar(figure, axes)
            axes.set_title(name, fontsize="medium")
            x, y = ("x", "t") if pairs.grid.n_dim == 1 else ("y", "x")
            axes.set(xlabel=x, ylabel=y)
    what = _part_title(pairs)
    named = pairs.benchmark not in (
        "unknown",
        "arrays",
    )  # Arrays in memory have no name of their own.
    title = f"{pairs.benchmark}: {what}" if named else what
    figure.suptitle(drawn(title), fontsize="medium")
    return figure


def _part_title(pairs: Pairs) -> str:
    """The part of the solution that is drawn."""
    steady = pairs.n_times == 1
    if pairs.grid.n_dim == 1:
        return pairs.names[0] if steady else f"{pairs.names[0]}, whole trajectory"
    time = "" if steady else f" at t = {pairs.times[-1]:.3g}"
    plane = ", middle plane" if pairs.grid.n_dim == 3 else ""
    return f"{pairs.names[0]}{time}{plane}"


def _draw_lines(
    axes: np.ndarray,
    pairs: Pairs,
    title: str,
    truth: np.ndarray,
    guess: np.ndarray,
    row: int,
    error: float,
) -> None:
    """A steady solution on one axis, beside its prediction and their difference."""
    x = pairs.grid.coordinates()[0].numpy()
    for panel, name, values in (
        (axes[0], f"{title}: sample {pairs.ids[row]}", truth),
        (axes[1], f"prediction ({100 * error:.3g} %)", guess),
        (axes[2], "error", guess - truth),
    ):
        panel.plot(x, values)
        panel.set_title(name, fontsize="medium")
        panel.set(xlabel="x")
    axes[1].sharey(axes[0])


def _plane(pairs: Pairs, trajectory: Tensor) -> np.ndarray:
    """The two-dimensional picture of one sample `(time, field, *grid)`."""
    if pairs.grid.n_dim == 1:
        return trajectory[:, 0].numpy()
    last = trajectory[-1, 0]
    while last.ndim > 2:
        last = last[last.shape[0] // 2]
    return last.numpy()


def _extent(pairs: Pairs) -> tuple[float, float, float, float]:
    lower, upper = pairs.grid.lower, pairs.grid.upper
    if pairs.grid.n_dim == 1:
        return lower[0], upper[0], pairs.times[0], pairs.times[-1]
    return lower[-1], upper[-1], lower[-2], upper[-2]
