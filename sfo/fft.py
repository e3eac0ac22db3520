"""The Fourier transform of real fields: every convention of the package, stated once.

    v̂(k) = Σ_x v(x) exp(−2πi k·x/n)          v(x) = (1/N) Σ_k v̂(k) exp(+2πi k·x/n)

The transform runs over the trailing axes. Real input makes v̂(−k) the conjugate of v̂(k), so only
half of the last axis, k = 0..n/2, is kept. A sum over all frequencies is then a sum over the kept
ones with weight 2, or 1 where −k is kept itself (`half_weights`).
"""

from collections.abc import Sequence
from math import prod

import numpy as np
import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor


def frequency_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The frequencies that `rfftn` keeps of a grid.

    Example:
        >>> frequency_shape((8, 6))
        (8, 4)
    """
    return (*shape[:-1], shape[-1] // 2 + 1)


def rfftn(v: Float[Tensor, "..."], n_dim: int) -> Complex[Tensor, "..."]:
    """Transform over the last `n_dim` axes."""
    return torch.fft.rfftn(v, dim=tuple(range(-n_dim, 0)))


def irfftn(v_hat: Complex[Tensor, "..."], shape: Sequence[int]) -> Float[Tensor, "..."]:
    """Transform back to a real field on a grid of this shape."""
    return torch.fft.irfftn(v_hat, s=tuple(shape), dim=tuple(range(-len(shape), 0)))


def irfftn_by_axis(v_hat: Complex[Tensor, "..."], shape: Sequence[int]) -> Float[Tensor, "..."]:
    """The same up to rounding, a third quicker on a CPU: torch copies the field once less."""
    if v_hat.device.type != "cpu":
        return irfftn(v_hat, shape)
    for axis in range(-len(shape), -1):
        v_hat = torch.fft.ifft(v_hat, dim=axis)
    return torch.fft.irfft(v_hat, n=shape[-1])


def half_weights(shape: Sequence[int]) -> Float[Tensor, "half"]:
    """How often each kept frequency of the last axis counts in a sum over all of them.

    Example:
        >>> half_weights((6,))
        tensor([1., 2., 2., 1.], dtype=torch.float64)
        >>> half_weights((5,))
        tensor([1., 2., 2.], dtype=torch.float64)
    """
    n = shape[-1]
    weights = torch.full((n // 2 + 1,), 2.0, dtype=torch.float64)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights


def wave_numbers(shape: Sequence[int]) -> Int[np.ndarray, "freq axes"]:
    """The signed integer frequency of every kept coefficient, −n/2 < k ≤ n/2, in memory order.

    Example:
        >>> wave_numbers((3, 2)).tolist()
        [[0, 0], [0, 1], [1, 0], [1, 1], [-1, 0], [-1, 1]]
    """
    full = [(np.arange(n) + (n - 1) // 2) % n - (n - 1) // 2 for n in shape[:-1]]
    half = np.arange(shape[-1] // 2 + 1)
    mesh = np.meshgrid(*full, half, indexing="ij")
    return np.stack([k.ravel() for k in mesh], axis=1)


def resample(v: Float[Tensor, "... n"], n: int) -> Float[Tensor, "... m"]:
    """Change the last axis to `n` points, keeping the coefficients v̂(k) of shared frequencies.

    As the kernel of a circular convolution, the result acts on band-limited fields exactly
    as `v` did on the old grid. Frequencies that the old grid did not have become zero.

    Example:
        >>> resample(torch.tensor([4.0, 0, 0, 0], dtype=torch.float64), 2)
        tensor([4., 0.], dtype=torch.float64)
    """
    old = v.shape[-1]
    if n == old:
        return v
    v_hat = torch.fft.rfft(v)
    kept = min(old, n) // 2 + 1
    out_hat = v_hat.new_zeros(*v.shape[:-1], n // 2 + 1)
    out_hat[..., :kept] = v_hat[..., :kept]
    # The highest frequency of an even grid stands for ±k at once, so only its real part
    # acts there; irfft does that for the new grid's own highest, this line for the old's.
    if old % 2 == 0 and old < n:
        out_hat[..., kept - 1] = v_hat[..., kept - 1].real.to(v_hat.dtype)
    return torch.fft.irfft(out_hat, n=n)


def flat_frequencies(v_hat: Complex[Tensor, "..."], n_dim: int) -> Complex[Tensor, "..."]:
    """Join the `n_dim` frequency axes into one."""
    return v_hat.reshape(*v_hat.shape[:-n_dim], prod(v_hat.shape[-n_dim:]))
