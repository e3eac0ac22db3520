"""The kernel view: the learned κ of each layer, and the sizes of its modes' coefficients."""

from typing import Any

import torch
from torch import Tensor, nn

PAIRS = 4
"""Kernels that are shown per layer: those between the channels with the largest coefficients."""
MAX_NUMBERS = 2**22
"""Numbers that the modes may take on the grid of the picture; it is made coarser until they do."""


def has_kernels(model: nn.Module) -> bool:
    """Whether a model's kernels are mixtures of modes, as those of SFO are."""
    kernels = getattr(model, "kernels", [])
    return bool(kernels) and all(hasattr(k, "theta") and hasattr(k, "modes") for k in kernels)


@torch.no_grad()
def kernel_view(model: nn.Module, shape: tuple[int, ...]) -> tuple[dict[str, Any], Tensor]:
    """What to say about all kernels, and their values `(layer, pair, *offsets)`.

    Offset 0 is in the middle. Of three axes or more the plane through offset 0 is shown. The gate
    and the pointwise path of a layer are not part of κ.

    Args:
        model: A model with `has_kernels`.
        shape: Grid that the model was trained on.
    """
    kernels: Any = model.kernels
    while len(kernels[0].modes) * _period(kernels[0], shape) > MAX_NUMBERS and min(shape) > 8:
        shape = tuple(n // 2 for n in shape)
    images, titles, sizes = [], [], []
    phi = kernels[0].modes.modes(shape)
    for kernel in kernels:
        theta = kernel.theta.to(phi)
        chosen = theta.square().sum(0).flatten().argsort(descending=True)[:PAIRS]
        kappa = torch.einsum("lp,l...->p...", theta.flatten(1)[:, chosen], phi)
        kappa = torch.fft.fftshift(kappa, dim=tuple(range(1, kappa.ndim)))
        while kappa.ndim > 3:
            kappa = kappa[..., kappa.shape[-1] // 2]
        images.append(kappa)
        channels = theta.shape[2]
        titles.append([f"{int(i) % channels} → {int(i) // channels}" for i in chosen])
        sizes.append(mode_sizes(kernel))
    options = kernels[0].modes.options
    meta = dict(
        basis=options.basis,
        modes=options.n_modes,
        index=options.index,
        boundary=options.boundary,
        titles=titles,
        sizes=sizes,
        shape=list(shape),
    )
    return meta, torch.stack(images)


def mode_sizes(kernel: Any) -> list[float]:
    """‖Θₗ‖ by the order l of the mode; of several indices per mode, by each of them on average.

    For modes with one index per axis, the square of the value at l is the mean over the axes of
    the sum over all modes whose index along that axis is l.
    """
    squares = kernel.theta.detach().double().square().sum((1, 2))
    options = kernel.modes.options
    if options.index == "tied" or options.n_dim == 1:
        return squares.sqrt().tolist()
    squares = squares.reshape([options.along_axis] * options.n_dim)
    axes = range(options.n_dim)
    by_axis = [squares.sum([other for other in axes if other != axis]) for axis in axes]
    return torch.stack(by_axis).mean(0).sqrt().tolist()


def _period(kernel: Any, shape: tuple[int, ...]) -> int:
    """Points of one period of the kernel, at most."""
    twice = 1 if kernel.modes.options.boundary == "circular" else 2
    total = 1
    for n in shape:
        total *= twice * n
    return total
