"""The Spectral Filtering Operator: neural operators in the eigenbasis of the Hilbert matrix."""

from typing import TYPE_CHECKING, Any

from sfo.data import Arrays, load_benchmark, load_file, open_data
from sfo.grid import Grid
from sfo.models import SFO
from sfo.models.build import build_model
from sfo.registry import BASES, BENCHMARKS, METRICS, MODELS, STUDIES

if TYPE_CHECKING:
    from sfo.experiments.own import FinishedRun, fit, load_run
    from sfo.zoo import load_pretrained

__all__ = [
    "BASES",
    "BENCHMARKS",
    "METRICS",
    "MODELS",
    "SFO",
    "STUDIES",
    "Arrays",
    "FinishedRun",
    "Grid",
    "build_model",
    "fit",
    "load_benchmark",
    "load_file",
    "load_pretrained",
    "load_run",
    "open_data",
]
__version__ = "0.3.0"


def __getattr__(name: str) -> Any:
    # What trains takes a second to import, and is not needed by those who use a model.
    if name in ("FinishedRun", "fit", "load_run"):
        from sfo.experiments import own

        return getattr(own, name)
    if name == "load_pretrained":
        from sfo.zoo import load_pretrained

        return load_pretrained
    raise AttributeError(f"module 'sfo' has no attribute {name!r}")
