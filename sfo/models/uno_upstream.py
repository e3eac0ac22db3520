"""UNO's Fourier parts as PDENNEval's code computes them, oversights included."""

from collections.abc import Sequence
from itertools import product

import torch
from torch import Tensor

from sfo.models.spectral_conv import SpectralConv
from sfo.shapes import Field
from sfo.spectral_mix import no_autocast


class OverlappingConv(SpectralConv):
    """A spectral convolution whose blocks of frequencies are written one over the other.

    Along all axes but the last, the first m and the last m entries of the spectrum are read and
    written in turn. Where an axis has less than 2m points the blocks overlap, and what is written
    last counts; an entry at the far end of one grid then becomes another frequency on a smaller
    one. `SpectralConv` keeps the frequencies that both grids have instead. Where nothing
    overlaps, the two are the same.
    """

    def forward(self, v: Field, shape: Sequence[int] | None = None) -> Field:
        grid = tuple(v.shape[2:])
        shape = grid if shape is None else tuple(shape)
        self._check(grid, shape)
        *others, last = self.modes.n_modes
        axes = tuple(range(2, v.ndim))
        dtype = torch.promote_types(v.dtype, torch.float32)
        with no_autocast(v.device.type):
            v_hat = torch.fft.rfftn(v.to(dtype), dim=axes, norm="forward")
            weight = self.weight.to(v_hat.dtype)
            spectrum = (*shape[:-1], shape[-1] // 2 + 1)
            out_hat = v_hat.new_zeros(v.shape[0], weight.shape[-1], *spectrum)
            # The first axis' blocks change fastest.
            for far in product((False, True), repeat=len(others)):
                sides = list(zip(others, reversed(far), strict=True))
                ends = (slice(-m, None) if end else slice(m) for m, end in sides)
                rows = tuple(slice(m, None) if end else slice(m) for m, end in sides)
                block = (..., *ends, slice(last))
                out_hat[block] = torch.einsum("bi...,...io->bo...", v_hat[block], weight[rows])
            return torch.fft.irfftn(out_hat, s=shape, dim=axes, norm="forward").to(v.dtype)

    def _check(self, grid: Sequence[int], shape: Sequence[int]) -> None:
        fewest = [min(n) for n in zip(grid, shape, strict=True)]
        fewest[-1] = fewest[-1] // 2 + 1
        if any(m > n for m, n in zip(self.modes.n_modes, fewest, strict=True)):
            raise ValueError(
                f"`n_modes` must be at most {fewest} between grids of shape {tuple(grid)} and "
                f"{tuple(shape)} with upstream=True, got {self.modes.n_modes}."
            )


def cut_spectrum(v: Field, shape: Sequence[int]) -> Field:
    """To another grid by cutting the spectrum's end off, or by appending zeros to it.

    The frequencies that the new grid has are kept, but their entries stay where they were: a
    smaller grid loses the negative ones along all axes but the last, a larger one takes them for
    high positive ones. And the sum over N points is divided by the N' of the new grid.

    Example:
        >>> cut_spectrum(torch.ones(1, 1, 8, 8, 8), (4, 4, 4)).mean()
        tensor(8.)
    """
    axes = tuple(range(2, v.ndim))
    dtype = torch.promote_types(v.dtype, torch.float32)
    with no_autocast(v.device.type):
        v_hat = torch.fft.rfftn(v.to(dtype), dim=axes)
        for axis, n in zip(axes, shape, strict=True):
            keep = _ends(v_hat.shape[axis], n // 2, last=axis == axes[-1], like=v)
            v_hat = v_hat * keep.view(-1, *[1] * (axes[-1] - axis))
        return torch.fft.irfftn(v_hat, s=list(shape), dim=axes).to(v.dtype)


def _ends(entries: int, kept: int, *, last: bool, like: Tensor) -> Tensor:
    """1 at the first so many entries and, but for the last axis, at the last so many; else 0."""
    i = torch.arange(entries, device=like.device)
    return ((i < kept) | ((i >= entries - kept) & (not last))).to(torch.float32)
