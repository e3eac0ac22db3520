"""Equations: frozen dataclasses of constants with their right-hand side and solver, in float64."""

from sfo.pdes.allen_cahn import AllenCahn
from sfo.pdes.burgers import Burgers
from sfo.pdes.cahn_hilliard import CahnHilliard
from sfo.pdes.darcy import Darcy
from sfo.pdes.default_rk45 import DefaultRK45Sorption
from sfo.pdes.diffusion_reaction import DiffusionReaction
from sfo.pdes.diffusion_sorption import DiffusionSorption
from sfo.pdes.float32_reaction import Float32DiffusionReaction
from sfo.pdes.kuramoto_sivashinsky import KuramotoSivashinsky
from sfo.pdes.maxwell import Maxwell
from sfo.pdes.navier_stokes import NavierStokes
from sfo.pdes.radial_dam_break import RadialDamBreak
from sfo.pdes.shallow_water import ShallowWater

__all__ = [
    "AllenCahn",
    "Burgers",
    "CahnHilliard",
    "Darcy",
    "DefaultRK45Sorption",
    "DiffusionReaction",
    "DiffusionSorption",
    "Float32DiffusionReaction",
    "KuramotoSivashinsky",
    "Maxwell",
    "NavierStokes",
    "RadialDamBreak",
    "ShallowWater",
]
