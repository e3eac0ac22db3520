"""The 1D diffusion–reaction (Fisher–KPP) equation: diffusion with logistic growth."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sfo.pdes.derivative import Derivative, second_derivative


@dataclass(frozen=True)
class DiffusionReaction:
    """∂u/∂t = ν ∂²u/∂x² + ρ u (1 − u), periodic on (lower, upper)."""

    nu: float = 0.5
    rho: float = 1.0
    lower: float = 0.0
    upper: float = 1.0

    def rhs(
        self, u: Float[Tensor, "*batch n"], d2: Derivative = second_derivative
    ) -> Float[Tensor, "*batch n"]:
        """∂u/∂t, with ∂²/∂x² as `d2` takes it."""
        return self.nu * d2(u, self.upper - self.lower) + self.rho * u * (1 - u)
