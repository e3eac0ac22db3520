"""Second derivatives on a periodic axis: spectral, and by central differences."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Derivative = Callable[[Tensor, float], Tensor]
"""(values on one period, its length) → second derivative."""


def wave_numbers(n: int, length: float) -> Float[Tensor, " modes"]:
    """k = 2πm / length of the waves that a real transform of n points holds, m = 0, …, ⌊n/2⌋."""
    return 2 * math.pi / length * torch.arange(n // 2 + 1, dtype=torch.float64)


def second_derivative(u: Float[Tensor, "*batch n"], length: float) -> Float[Tensor, "*batch n"]:
    """∂²u/∂x² of n equally spaced values on one period, exact for resolved waves.

    Example:
        >>> x = torch.arange(8, dtype=torch.float64) * torch.pi / 4
        >>> wave = torch.sin(2 * x)
        >>> torch.dist(second_derivative(wave, 2 * torch.pi), -4 * wave) < 1e-13
        tensor(True)
    """
    n = u.shape[-1]
    k = wave_numbers(n, length).to(u)
    return torch.fft.irfft(-(k**2) * torch.fft.rfft(u), n=n)


def central_second_derivative(
    u: Float[Tensor, "*batch n"], length: float
) -> Float[Tensor, "*batch n"]:
    """The three-point difference (uᵢ₋₁ − 2uᵢ + uᵢ₊₁)/h², h = length/n: the theory's stencil."""
    h = length / u.shape[-1]
    return (torch.roll(u, 1, -1) - 2 * u + torch.roll(u, -1, -1)) / h**2
