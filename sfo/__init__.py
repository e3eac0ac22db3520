"""The Spectral Filtering Operator: neural operators in the eigenbasis of the Hilbert matrix."""

from sfo.data import load_benchmark, load_file
from sfo.models import SFO
from sfo.models.build import build_model
from sfo.registry import BASES, BENCHMARKS, MODELS

__all__ = ["BASES", "BENCHMARKS", "MODELS", "SFO", "build_model", "load_benchmark", "load_file"]
__version__ = "0.3.0"
