"""The 2D Navier–Stokes equations for the vorticity of an incompressible fluid, driven by a wave."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid
from sfo.pdes.base import Semilinear
from sfo.pdes.derivative import Derivatives, Spectral


@dataclass(frozen=True)
class NavierStokes(Semilinear):
    """∂w/∂t + v · ∇w = ν Δw + f,    ∇ · v = 0,    w = ∂v₂/∂x − ∂v₁/∂y, periodic in a square.

        f(x, y) = forcing · (sin(2π(x + y)/L) + cos(2π(x + y)/L)),    L the period

    The velocity is that of the stream function, v = (∂ψ/∂y, −∂ψ/∂x) with Δψ = −w. The mean of
    w is constant, and at rest on average the fluid stays so. Without forcing, energy and
    enstrophy obey dE/dt = −2ν Z and dZ/dt = −2ν P, see `energy`, `enstrophy`, `palinstrophy`.

    Example:
        >>> import torch
        >>> w = NavierStokes().solve(torch.zeros(1, 1, 16, 16), [0.0, 0.1])[0, -1]
        >>> bool(w.mean().abs() < 1e-12), bool(w.abs().max() > 0)  # the forcing sets it in motion
        (True, True)
    """

    viscosity: float = 1e-3
    forcing: float = 0.1
    lower: float = 0.0
    upper: float = 1.0
    max_step: float = 0.05

    names: ClassVar[tuple[str, ...]] = ("w",)
    n_dim: ClassVar[int] = 2
    dealias: ClassVar[float] = 2 / 3

    def linear(self, u: Tensor, d: Derivatives) -> Tensor:
        return self.viscosity * d.laplacian(u)

    def reaction(self, u: Tensor, d: Derivatives) -> Tensor:
        vx, vy = self.velocity(u, d)
        return -(vx * d(u, 1, 0) + vy * d(u, 0, 1))

    def velocity(self, w: Tensor, d: Derivatives) -> tuple[Tensor, Tensor]:
        """(v₁, v₂) of the vorticity w."""
        return -d(w, 0, 1, laplacian=-1), d(w, 1, 0, laplacian=-1)

    def source(self, grid: Grid) -> Float[Tensor, "X Y"]:
        x, y = grid.mesh()
        phase = 2 * math.pi / self.length * (x + y)
        return self.forcing * (torch.sin(phase) + torch.cos(phase))

    def energy(self, w: Float[Tensor, "*batch X Y"]) -> Float[Tensor, "*batch"]:
        """E, the mean of |v|²/2."""
        vx, vy = self.velocity(w, self._derivatives(w))
        return (vx**2 + vy**2).mean((-2, -1)) / 2

    def enstrophy(self, w: Float[Tensor, "*batch X Y"]) -> Float[Tensor, "*batch"]:
        """Z, the mean of w²/2."""
        return (w**2).mean((-2, -1)) / 2

    def palinstrophy(self, w: Float[Tensor, "*batch X Y"]) -> Float[Tensor, "*batch"]:
        """P, the mean of |∇w|²/2."""
        d = self._derivatives(w)
        return (d(w, 1, 0) ** 2 + d(w, 0, 1) ** 2).mean((-2, -1)) / 2

    def _derivatives(self, w: Tensor) -> Spectral:
        return Spectral(w.shape[-2:], self.lengths)
