"""Shallow water: the equations, Riemann fluxes, random lakes, and the published dam break."""

from sfo.pdes.shallow_water.equation import ShallowWater
from sfo.pdes.shallow_water.radial_dam_break import RadialDamBreak

__all__ = ["RadialDamBreak", "ShallowWater"]
