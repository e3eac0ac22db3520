"""Pictures of modes, kernels and coefficients; each function returns a matplotlib `Figure`."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sfo.models.kernel import SpectralKernel
from sfo.models.sfo import SFO
from sfo.plot.colours import GUIDE, MEAN, FieldColours
from sfo.registry import BASES


def modes(n: int = 256, n_modes: int = 6, basis: str = "usb") -> Figure:
    """The leading modes of a basis, against the grid point (logarithmic: they crowd at 0).

    Example:
        >>> modes(n=64, n_modes=4).savefig("/dev/null", format="png")
    """
    phi = BASES[basis](n, n_modes).numpy()
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for row, mode in enumerate(phi):
        axes.plot(range(1, n + 1), mode, label=f"φ$_{{{row + 1}}}$", lw=1.4)
    axes.axhline(0, color=GUIDE, lw=0.8, zorder=0)
    axes.set(xscale="log", xlabel="grid point", ylabel="φ", title=f"{basis} modes, n = {n}")
    axes.legend(ncols=min(n_modes, 10), fontsize="small", frameon=False)
    return figure


def kernel(
    kernel: SpectralKernel, grid_shape: Sequence[int], channels: Sequence[tuple[int, int]] = ()
) -> Figure:
    """The learned kernel κ(x − x'), the offset 0 in the middle.

    Args:
        kernel: As in `model.kernels[0]`, which is `model.layers[0].kernel`.
        grid_shape: The grid to show it on; of more than two axes, the plane through offset 0.
        channels: Pairs (output, input); none: the four with the largest kernels.

    Example:
        >>> model = SFO(1, 2, n_modes=4, hidden_channels=8)
        >>> kernel(model.kernels[0], (32,)).savefig("/dev/null", format="png")
    """
    kappa = kernel.spatial(grid_shape).double().cpu()
    centre = tuple(range(2, kappa.ndim))
    kappa = torch.fft.fftshift(kappa, dim=centre)
    while kappa.ndim > 4:
        kappa = kappa[:, :, kappa.shape[2] // 2]
    if not channels:
        size = kappa.flatten(2).norm(dim=2)
        best = size.flatten().argsort(descending=True)[:4]
        channels = [divmod(int(i), size.shape[1]) for i in best]
    figure = Figure(figsize=(3.2 * len(channels), 2.9), layout="constrained")
    panels = figure.subplots(1, len(channels), squeeze=False)[0]
    for axes, (out, into) in zip(panels, channels, strict=True):
        _draw_kernel(axes, kappa[out, into])
        axes.set_title(f"channel {into} → {out}", fontsize="medium")
    return figure


def _draw_kernel(axes: Axes, kappa: Tensor) -> None:
    if kappa.ndim == 1:
        offset = torch.arange(len(kappa)) - len(kappa) // 2
        axes.plot(offset.numpy(), kappa.numpy(), lw=1.2)
        axes.axhline(0, color=GUIDE, lw=0.8, zorder=0)
        axes.set_xlabel("offset x − x'")
        return
    rows, columns = kappa.shape
    extent = (-columns // 2, columns // 2, -rows // 2, rows // 2)
    FieldColours.of_difference(kappa).draw_evenly(axes, kappa.numpy(), extent)


def coefficients(model: SFO) -> Figure:
    """‖Θₗ‖_F against the mode index l, layer by layer and on average (the paper's figure).

    Example:
        >>> coefficients(SFO(1, 2, n_modes=4, hidden_channels=8)).savefig("/dev/null", format="png")
    """
    rows = [k.theta.detach().cpu().flatten(1).norm(dim=1) for k in model.kernels]
    norms = torch.stack(rows).numpy()
    index = range(1, norms.shape[1] + 1)
    figure = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = figure.subplots()
    for number, row in enumerate(norms, start=1):
        axes.plot(index, row, lw=0.9, alpha=0.6, label=f"layer {number}")
    axes.plot(index, norms.mean(0), color=MEAN, lw=1.8, label="mean")
    axes.set(xlabel="mode index l", ylabel="‖Θ$_l$‖$_F$", ylim=(0, None))
    axes.legend(fontsize="small", frameon=False)
    return figure
