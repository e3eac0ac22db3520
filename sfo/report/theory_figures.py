"""The figures of `docs/theory.md`. Each function draws one and writes it to a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch import Tensor

from sfo.plot.colours import COLOURS, GUIDE, shades
from sfo.theory.approximation import coefficients, powers

BASES = ("usb", "hankel", "chebyshev", "fourier", "random")
BASIS_COLOURS = dict(zip(BASES, COLOURS, strict=False))


def kernel_decay(roots: Sequence[float], path: Path) -> None:
    """ρᵗ against the offset: from three points to ten thousand."""
    figure, (axis,) = _figure(1, (6.2, 3.6))
    t = np.unique(np.geomspace(1, 65536, 400).astype(int)) - 1
    for rho, colour in zip(roots, shades(len(roots)), strict=True):
        axis.plot(t + 1, rho**t, color=colour, label=f"ρ = {rho:g}")
    axis.set(xscale="log", yscale="log", ylim=(1e-12, 2), xlabel="1 + t", ylabel="g[t] = ρᵗ")
    axis.legend(frameon=False)
    _save(figure, path)


def coefficient_decay(roots: Sequence[float], n: int, path: Path) -> None:
    """|⟨φₗ, ρᵗ⟩| against l: exponential, and slower kernels only start higher."""
    figure, (axis,) = _figure(1, (6.2, 3.6))
    size = (
        coefficients(powers(torch.tensor(roots, dtype=torch.float64), n), min(60, n)).abs().numpy()
    )
    for row, rho, colour in zip(size, roots, shades(len(roots)), strict=True):
        axis.plot(np.arange(1, len(row) + 1), row, ".-", color=colour, ms=4, label=f"ρ = {rho:g}")
    axis.axhline(1e-16, color=GUIDE, lw=0.8, ls=":")
    axis.set(yscale="log", ylim=(1e-18, 1e2), xlabel="mode l", ylabel=f"|⟨φₗ, ρᵗ⟩|,  N = {n:,}")
    axis.legend(frameon=False)
    _save(figure, path)


def error_against_modes(
    roots: Sequence[float], usb: dict[int, Tensor], sharp: dict[int, Tensor], path: Path
) -> None:
    """One panel per root, one line per length N, the bound (1) dashed."""
    figure, axes = _figure(len(roots), (2.3 * len(roots), 3.2))
    for i, (axis, rho) in enumerate(zip(axes, roots, strict=True)):
        for (n, errors), colour in zip(usb.items(), shades(len(usb)), strict=True):
            axis.plot(errors[i].numpy(), color=colour, label=f"N = {n:,}")
            axis.plot(sharp[n][i].numpy(), color=colour, ls="--", lw=0.8)
        axis.set(yscale="log", ylim=(1e-16, 1e3), xlim=(0, 80), xlabel="L", title=f"ρ = {rho:g}")
    axes[0].set_ylabel("relative error; dashed: bound (1)")
    axes[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    _save(figure, path)


def bases_and_bound(
    roots: Sequence[float],
    errors: dict[str, Tensor],
    bounds: dict[str, Tensor],
    n: int,
    path: Path,
) -> None:
    """One panel per root, one line per basis, the two bounds dashed."""
    figure, axes = _figure(len(roots), (2.3 * len(roots), 3.2))
    for i, (axis, rho) in enumerate(zip(axes, roots, strict=True)):
        for name, values in errors.items():
            axis.plot(values[i].numpy(), color=BASIS_COLOURS[name], label=name)
        for (name, values), style in zip(bounds.items(), ("--", ":"), strict=True):
            axis.plot(values[i].numpy(), color=BASIS_COLOURS["usb"], ls=style, lw=0.9, label=name)
        axis.set(yscale="log", ylim=(1e-16, 1e3), xlim=(0, 130), xlabel="L", title=f"ρ = {rho:g}")
    axes[0].set_ylabel(f"relative error, N = {n:,}")
    axes[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    _save(figure, path)


def modes_against_tolerance(
    roots: Sequence[float], tolerances: Sequence[float], usb: dict[int, Tensor], path: Path
) -> None:
    """L against ε: straight lines, the slope set by log N and not by ρ."""
    figure, axes = _figure(2, (8.4, 3.6))
    eps = torch.tensor(tolerances, dtype=torch.float64)
    longest = max(usb)
    panels = (
        ([(f"N = {n:,}", e[roots.index(0.99)]) for n, e in usb.items()], "ρ = 0.99"),
        (
            [(f"ρ = {r:g}", usb[longest][i]) for i, r in enumerate(roots)],
            f"N = {longest:,}",
        ),
    )
    for axis, (lines, title) in zip(axes, panels, strict=True):
        for (name, errors), colour in zip(lines, shades(len(lines)), strict=True):
            reached = (errors[None, :] <= eps[:, None]).numpy()
            needed = np.where(reached.any(1), reached.argmax(1), np.nan)
            axis.plot(tolerances, needed, "o-", ms=3, color=colour, label=name)
        axis.set(xscale="log", xlabel="relative error ε", title=title)
        axis.invert_xaxis()
        axis.legend(frameon=False, fontsize=8)
    axes[0].set_ylabel("USB modes L")
    axes[1].sharey(axes[0])
    _save(figure, path)


def linearised(kernels: dict[tuple[str, str, str], Tensor], path: Path) -> None:
    """|G| of the implicit step in the middle of a wave, for both second derivatives."""
    names = list(dict.fromkeys(key[0] for key in kernels))
    figure, axes = _figure(len(names), (3.4 * len(names), 3.3))
    for axis, name in zip(axes, names, strict=True):
        for d2, colour in (
            ("spectral", BASIS_COLOURS["chebyshev"]),
            ("central", BASIS_COLOURS["usb"]),
        ):
            green = kernels[name, "wave", d2]
            row = green[len(green) // 4].abs().numpy()
            offset = np.arange(len(row)) - len(row) // 2
            near = np.abs(offset) <= 120
            axis.plot(offset[near], row[near], color=colour, lw=1, label=d2)
        axis.set(yscale="log", ylim=(1e-12, 3), title=name, xlabel="offset from the source")
    axes[0].set_ylabel("|(I − dt J)⁻¹|, one column")
    axes[0].legend(frameon=False, fontsize=8)
    _save(figure, path)


def _figure(panels: int, size: tuple[float, float]) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for k, axis in enumerate(axes):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25, lw=0.6)
        if k:
            axis.tick_params(labelleft=False)
    return figure, list(axes)


def _save(figure: Figure, path: Path) -> None:
    FigureCanvasAgg(figure).print_figure(path, dpi=90)
