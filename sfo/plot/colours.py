"""The one colour rule of all pictures: what a field, a line and a guide look like."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor

SIGNED, POSITIVE = "RdBu_r", "viridis"
"""Colour maps of fields of either sign, and of fields that are nowhere negative."""
COLOURS = (*(f"C{k}" for k in range(10)), "black")
"""Of things without an order, such as models: one per line, in this order."""
PAPER: dict[str, Any] = dict(color="0.55", label="paper")
"""The paper's numbers, in every figure."""
MEAN = "black"
"""A mean among the lines that it is taken over."""
GUIDE = "0.8"
"""What the eye compares with: a zero line, a limit, where a model was trained."""
EARLY_TO_LATE = ("0.7", "tab:blue", "black")
"""Three times of one solution."""


def shades(count: int) -> list[tuple[float, float, float, float]]:
    """Colours of things with an order, such as lengths: from dark to light."""
    return [colormaps[POSITIVE](x) for x in np.linspace(0.05, 0.85, count)]


@dataclass(frozen=True)
class FieldColours:
    """The colour scale of a field, the same for all samples and times."""

    norm: Normalize
    cmap: str
    extend: Literal["neither", "min", "max", "both"]

    @classmethod
    def of(cls, fields: Tensor | np.ndarray) -> "FieldColours":
        """Symmetric about 0 for fields of either sign, else from the lowest to the highest value.

        A few peaks must not make all else pale: if the range would shrink by a fifth without
        the outermost 0.2 % of the values, it does.
        """
        every = np.asarray(fields, dtype=np.float64)
        values = every[np.isfinite(every)]
        if not len(values):
            return cls(Normalize(0, 1), POSITIVE, "neither")
        low, high = values.min(), values.max()
        inner = np.quantile(values, [0.002, 0.998])
        if np.ptp(inner) < 0.8 * (high - low):
            low, high = inner
        signed = low < 0
        if signed:
            low, high = -max(-low, high), max(-low, high)
        if low == high:
            low, high = low - 0.5, high + 0.5
        below, above = values.min() < low, values.max() > high
        extend: Literal["neither", "min", "max", "both"] = "neither"
        if below or above:
            extend = "both" if below and above else "min" if below else "max"
        return cls(Normalize(low, high), SIGNED if signed else POSITIVE, extend)

    @classmethod
    def of_difference(cls, difference: Tensor | np.ndarray) -> "FieldColours":
        """Symmetric about 0, up to the largest value: no part of an error is hidden."""
        every = np.abs(np.asarray(difference, dtype=np.float64))
        largest = float(every[np.isfinite(every)].max(initial=0)) or 1.0
        return cls(Normalize(-largest, largest), SIGNED, "neither")

    def draw(self, axes: Axes, x: np.ndarray, y: np.ndarray, field: np.ndarray) -> None:
        """An image `(y, x)` whose pixels have the edges x and y."""
        axes.pcolormesh(x, y, field, norm=self.norm, cmap=self.cmap, rasterized=True)

    def draw_evenly(
        self, axes: Axes, field: np.ndarray, extent: tuple[float, float, float, float], **more: Any
    ) -> None:
        """An image `(y, x)` whose pixels divide a box (left, right, bottom, top) evenly."""
        axes.imshow(field, origin="lower", extent=extent, norm=self.norm, cmap=self.cmap, **more)

    def add_bar(self, figure: Figure, panels: Any, label: str = "", **where: Any) -> None:
        """The colour bar of some panels."""
        bar = figure.colorbar(
            ScalarMappable(self.norm, self.cmap),
            ax=np.ravel(panels).tolist(),
            label=label,
            extend=self.extend,
            pad=0.02,
            **where,
        )
        bar.ax.tick_params(labelsize="x-small")
        bar.ax.locator_params(nbins=5)
