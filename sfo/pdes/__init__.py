"""Equations: frozen dataclasses of constants with their right-hand side, in float64."""

from sfo.pdes.allen_cahn import AllenCahn
from sfo.pdes.cahn_hilliard import CahnHilliard
from sfo.pdes.diffusion_reaction import DiffusionReaction

__all__ = ["AllenCahn", "CahnHilliard", "DiffusionReaction"]
