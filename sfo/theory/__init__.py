"""The theory as a tool: Green's kernels, compact expansions, a bound, a constructed layer."""

from sfo.theory.approximation import (
    coefficients,
    error_bound,
    modes_guaranteed,
    modes_needed,
    powers,
    projection_errors,
    sharp_error_bounds,
)
from sfo.theory.construct import ConstructedInverse, ConstructedSolver
from sfo.theory.linearise import compressibility, implicit_green, local_operator
from sfo.theory.problems import (
    DirichletProblem,
    UnsteadyProblem,
    diffusion_reaction_stencil,
    steady_diffusion_reaction,
    unsteady_diffusion_reaction,
)
from sfo.theory.stencil import Stencil, WideStencil

__all__ = [
    "ConstructedInverse",
    "ConstructedSolver",
    "DirichletProblem",
    "Stencil",
    "UnsteadyProblem",
    "WideStencil",
    "coefficients",
    "compressibility",
    "diffusion_reaction_stencil",
    "error_bound",
    "implicit_green",
    "local_operator",
    "modes_guaranteed",
    "modes_needed",
    "powers",
    "projection_errors",
    "sharp_error_bounds",
    "steady_diffusion_reaction",
    "unsteady_diffusion_reaction",
]
