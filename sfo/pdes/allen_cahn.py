"""The 1D Allen–Cahn equation: phases that separate behind thin walls."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sfo.pdes.base import Semilinear, ginzburg_landau
from sfo.pdes.derivative import Derivatives


@dataclass(frozen=True)
class AllenCahn(Semilinear):
    """∂u/∂t = ε ∂²u/∂x² + s (u − u³), periodic on (lower, upper).

    Walls between u = −1 and u = 1 have the width √(2ε/s) ≈ 0.006: 1,024 points resolve
    them, 256 do not.

    Example:
        >>> import torch
        >>> u = AllenCahn().solve(0.5 * torch.ones(1, 1, 64), [0.0, 1.0])[0, -1]
        >>> bool((u > 0.98).all())  # it falls into the nearer one of the two wells
        True
    """

    epsilon: float = 1e-4
    strength: float = 5.0
    lower: float = -1.0
    upper: float = 1.0
    max_step: float = 2.5e-3

    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        return self.epsilon * d(u, 2) + self.strength * u

    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        return -self.strength * u**3

    def energy(self, u: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
        """∫ ε/2 (∂u/∂x)² + s/4 (u² − 1)² dx, which never increases."""
        return ginzburg_landau(u, self.length, tension=self.epsilon, strength=self.strength)
