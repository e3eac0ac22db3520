"""The Spectral Filtering Operator: neural operators in the eigenbasis of the Hilbert matrix."""

from sfo.models import SFO
from sfo.registry import BASES, BENCHMARKS, MODELS

__all__ = ["BASES", "BENCHMARKS", "MODELS", "SFO"]
__version__ = "0.1.0"
