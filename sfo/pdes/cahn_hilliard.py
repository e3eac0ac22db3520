"""The 1D Cahn–Hilliard equation: phases that separate and keep their mass."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sfo.pdes.base import Semilinear, ginzburg_landau
from sfo.pdes.derivative import Derivatives


@dataclass(frozen=True)
class CahnHilliard(Semilinear):
    """∂u/∂t = ∂²/∂x² (m (u³ − u) − γ ∂²u/∂x²), periodic on (lower, upper).

    The mean of u is constant. About u = 0 waves of number k grow at the rate
    m k² − γ k⁴, at most m²/(4γ) = 25. Sources disagree on γ (1e-6 or 1e-5): this is the
    paper's.

    Example:
        >>> import torch
        >>> start = 0.1 * torch.randn(1, 1, 128, dtype=torch.float64)
        >>> u = CahnHilliard().solve(start, [0.0, 1e-3])[0, -1]
        >>> bool((u.mean() - start.mean()).abs() < 1e-12)
        True
    """

    mobility: float = 1e-2
    gamma: float = 1e-6
    lower: float = -1.0
    upper: float = 1.0
    max_step: float = 2.5e-4

    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        return -d(self.mobility * u + self.gamma * d(u, 2), 2)

    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        return self.mobility * u**3

    def outer(self, v: Tensor, d: Derivatives) -> Tensor:
        return d(v, 2)

    def energy(self, u: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
        """∫ m/4 (u² − 1)² + γ/2 (∂u/∂x)² dx, which never increases."""
        return ginzburg_landau(u, self.length, tension=self.gamma, strength=self.mobility)
