"""The 1D viscous Burgers equation: waves that steepen into shocks of finite width."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from sfo.pdes.base import Semilinear
from sfo.pdes.derivative import Derivatives


@dataclass(frozen=True)
class Burgers(Semilinear):
    """∂u/∂t + u ∂u/∂x = ν ∂²u/∂x², periodic on (lower, upper).

    The mean of u is constant and its extremes never grow. A shock between u₁ and u₂ has the
    width 4ν/(u₁ − u₂). The Cole–Hopf transform u = −2ν ∂(log φ)/∂x makes it ∂φ/∂t = ν ∂²φ/∂x².

    Example:
        >>> import torch
        >>> x = Burgers().grid(256).coordinates()[0]
        >>> u = Burgers().solve(torch.sin(2 * torch.pi * x)[None, None], [0.0, 0.2])
        >>> bool(u[0, 1].mean().abs() < 1e-12), bool(u[0, 1].max() < 1)
        (True, True)
    """

    nu: float = 0.01
    lower: float = 0.0
    upper: float = 1.0
    max_step: float = 1e-3

    dealias: ClassVar[float] = 2 / 3

    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        return self.nu * d(u, 2)

    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        return u**2 / 2

    def outer(self, v: Tensor, d: Derivatives) -> Tensor:
        return -d(v, 1)
