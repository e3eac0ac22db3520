"""Equations: frozen dataclasses of constants with their right-hand side and solver, in float64."""

from sfo.pdes.allen_cahn import AllenCahn
from sfo.pdes.burgers import Burgers
from sfo.pdes.cahn_hilliard import CahnHilliard
from sfo.pdes.darcy import Darcy
from sfo.pdes.diffusion_reaction import DiffusionReaction, Float32DiffusionReaction
from sfo.pdes.kuramoto_sivashinsky import KuramotoSivashinsky
from sfo.pdes.maxwell import Maxwell
from sfo.pdes.navier_stokes import NavierStokes
from sfo.pdes.shallow_water import RadialDamBreak, ShallowWater
from sfo.pdes.sorption import DefaultRK45Sorption, DiffusionSorption

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
