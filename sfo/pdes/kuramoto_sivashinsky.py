"""The 1D Kuramoto–Sivashinsky equation: flame fronts, the simplest chaos in space and time."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from sfo.pdes.base import Semilinear
from sfo.pdes.derivative import Derivatives


@dataclass(frozen=True)
class KuramotoSivashinsky(Semilinear):
    """∂u/∂t + u ∂u/∂x + ∂²u/∂x² + ν ∂⁴u/∂x⁴ = 0, periodic on (lower, upper).

    The mean of u is constant. Waves of number k grow at the rate k² − ν k⁴ until u ∂u/∂x
    passes their energy on to shorter ones, which decay.

    Example:
        >>> import torch
        >>> start = 0.1 * torch.randn(1, 1, 64, dtype=torch.float64)
        >>> u = KuramotoSivashinsky().solve(start, [0.0, 1.0])[0, -1]
        >>> bool((u.mean() - start.mean()).abs() < 1e-12)
        True
    """

    nu: float = 1.0
    lower: float = 0.0
    upper: float = 64.0
    max_step: float = 0.025

    dealias: ClassVar[float] = 2 / 3

    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        return -d(u, 2) - self.nu * d(u, 4)

    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        return u**2 / 2

    def outer(self, v: Tensor, d: Derivatives) -> Tensor:
        return -d(v, 1)
