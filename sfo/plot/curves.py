"""Training curves."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from sfo.plot.colours import COLOURS
from sfo.titles import drawn


def training_curves(histories: Mapping[str, list[dict[str, Any]]]) -> Figure:
    """Training and validation error against the epoch, one colour per run.

    Args:
        histories: For each run's label, its rows of metrics.jsonl.

    Example:
        >>> rows = [dict(epoch=e, loss=1 / (e + 1), validation=2 / (e + 1)) for e in range(3)]
        >>> training_curves({"mine": rows}).savefig("/dev/null", format="png")
    """
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    axes = figure.subplots()
    for number, (label, rows) in enumerate(histories.items()):
        colour = COLOURS[number % len(COLOURS)]
        epochs = [row["epoch"] + 1 for row in rows]
        loss = [100 * row["loss"] for row in rows]
        axes.plot(epochs, loss, color=colour, lw=0.9, alpha=0.6, ls="--")
        checked = [(row["epoch"] + 1, row["validation"]) for row in rows]
        points = [(epoch, 100 * v) for epoch, v in checked if v is not None]
        xs, ys = [epoch for epoch, _ in points], [v for _, v in points]
        # One epoch is a point, of which a line shows nothing.
        marker = "o" if len(xs) == 1 else None
        axes.plot(xs, ys, color=colour, lw=1.6, label=drawn(label), marker=marker)
    axes.set(xlabel="epoch", ylabel="relative L2, %", yscale="log")
    axes.set_title("validation (solid) and training (dashed)", fontsize="medium")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3, which="both")
    return figure
