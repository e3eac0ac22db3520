"""What is measured on trained models beyond their test error: a name, and a function of a run."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from torch import nn

from sfo.evaluation.errors import evaluate
from sfo.experiments.run import run_pairs
from sfo.models.sfo import SFO
from sfo.registry import BENCHMARKS, Registry
from sfo.training.config import Experiment

ANALYSES: Registry[Callable[[Experiment, nn.Module], dict[str, Any]]] = Registry("analysis")
"""From an experiment and its trained model to numbers by name, which JSON can hold."""
COARSER, FINER = (2, 4, 8), (2,)
"""Strides of the grids that a trained model is taken to."""


@ANALYSES.register("coefficients")
def coefficients(experiment: Experiment, model: nn.Module) -> dict[str, Any]:
    """‖Θₗ‖_F of each mode, for each layer of an SFO."""
    kernels = cast(SFO, model).kernels
    norms = [kernel.theta.detach().double().norm(dim=(-2, -1)).tolist() for kernel in kernels]
    return {"norms": norms}


@ANALYSES.register("transfer")
def transfer(experiment: Experiment, model: nn.Module) -> dict[str, Any]:
    """Test errors in percent on other grids, without training again.

    An SFO is taken to a grid in both ways that it knows, `rebuild` and `restrict`; where its
    modes do not fit, the cell is None. Other models have one way, `evaluate`.
    """
    trained = run_pairs(experiment)
    n = trained.grid.shape[0]
    sizes = [n // s for s in COARSER if n % s == 0 and n // s >= 4]
    sizes += [n * s for s in FINER if _solved_on(experiment, n * s)]
    methods = ("rebuild", "restrict") if isinstance(model, SFO) else ("evaluate",)
    found: dict[str, dict[str, float | None]] = {method: {} for method in methods}
    for size in sorted([*sizes, n], reverse=True):
        pairs = trained if size == n else run_pairs(experiment, points=size)
        for method in methods:
            if isinstance(model, SFO):
                model.modes.transfer = method  # type: ignore[assignment]
                if not _modes_fit(model, pairs.grid.shape):
                    found[method][str(size)] = None
                    continue
            found[method][str(size)] = evaluate(model, pairs).percent
    return {"trained": n, "percent": found}


def _modes_fit(model: SFO, shape: Sequence[int]) -> bool:
    try:
        model.modes.modes(shape)
    except ValueError:
        return False
    return True


def _solved_on(experiment: Experiment, n: int) -> bool:
    """Whether the solver's grid holds a grid of n points."""
    solver = BENCHMARKS[experiment.data.benchmark].scale(experiment.data.scale).n
    return experiment.data.file is None and n <= solver and solver % n == 0
