"""The 1D diffusion–reaction (Fisher–KPP) equation: diffusion with logistic growth."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from sfo.pdes.base import Semilinear
from sfo.pdes.derivative import Derivatives


@dataclass(frozen=True)
class DiffusionReaction(Semilinear):
    """∂u/∂t = ν ∂²u/∂x² + ρ u (1 − u), periodic on (lower, upper).

    Fields live on cell centres. What begins between 0 and 1 stays there.

    Example:
        >>> import torch
        >>> u = DiffusionReaction().solve(0.5 * torch.ones(1, 1, 32), [0.0, 1.0])[0, -1]
        >>> round(float(u.mean()), 4)  # logistic growth: 1 / (1 + 1/e)
        0.7311
    """

    nu: float = 0.5
    rho: float = 1.0
    lower: float = 0.0
    upper: float = 1.0
    max_step: float = 5e-3

    offset: ClassVar[float] = 0.5
    # Initial fields with steep flanks, 0.01 wide, change within 1e-4: steps begin at 1e-5.
    warm_up: ClassVar[int] = 9

    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        return self.nu * d(u, 2) + self.rho * u

    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        return -self.rho * u**2
