"""The 1D Allen–Cahn equation: phases that separate behind thin walls."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from sfo.pdes.derivative import Derivative, second_derivative


@dataclass(frozen=True)
class AllenCahn:
    """∂u/∂t = ε ∂²u/∂x² + s (u − u³), periodic on (lower, upper).

    Walls between u = −1 and u = 1 have the width √(2ε/s) ≈ 0.006: 1,024 points resolve
    them, 256 do not.
    """

    epsilon: float = 1e-4
    strength: float = 5.0
    lower: float = -1.0
    upper: float = 1.0

    def rhs(
        self, u: Float[Tensor, "*batch n"], d2: Derivative = second_derivative
    ) -> Float[Tensor, "*batch n"]:
        """∂u/∂t, with ∂²/∂x² as `d2` takes it."""
        diffusion = self.epsilon * d2(u, self.upper - self.lower)
        return diffusion + self.strength * (u - u**3)
