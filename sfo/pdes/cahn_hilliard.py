"""The 1D Cahn–Hilliard equation: phases that separate and keep their mass."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sfo.pdes.derivative import Derivative, second_derivative


@dataclass(frozen=True)
class CahnHilliard:
    """∂u/∂t = ∂²/∂x² (m (u³ − u) − γ ∂²u/∂x²), periodic on (lower, upper).

    The mean of u is constant. About u = 0 waves of number k grow at the rate
    m k² − γ k⁴, at most m²/(4γ) = 25. Sources disagree on γ (1e-6 or 1e-5): this is the
    paper's.
    """

    mobility: float = 1e-2
    gamma: float = 1e-6
    lower: float = -1.0
    upper: float = 1.0

    def rhs(
        self, u: Float[Tensor, "*batch n"], d2: Derivative = second_derivative
    ) -> Float[Tensor, "*batch n"]:
        """∂u/∂t, with ∂²/∂x² as `d2` takes it."""
        length = self.upper - self.lower
        potential = self.mobility * (u**3 - u) - self.gamma * d2(u, length)
        return d2(potential, length)
