"""Diffusion–sorption: the equation, and the solver that the published data were made with."""

from sfo.pdes.sorption.default_rk45 import DefaultRK45Sorption
from sfo.pdes.sorption.equation import DiffusionSorption

__all__ = ["DefaultRK45Sorption", "DiffusionSorption"]
