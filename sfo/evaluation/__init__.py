"""Errors of predictions, what they are worth, and what they cost."""

from sfo.evaluation import metrics, spectrum  # Importing them registers what is in them.
from sfo.evaluation.cost import (
    Cost,
    count_flops,
    count_parameters,
    measure_cost,
    training_memory,
)
from sfo.evaluation.errors import Errors, ErrorSums, evaluate, measure
from sfo.evaluation.metric import Context, Metric, printed_metrics
from sfo.evaluation.statistics import Comparison, Interval, compare, mean_interval

__all__ = [
    "Comparison",
    "Context",
    "Cost",
    "ErrorSums",
    "Errors",
    "Interval",
    "Metric",
    "compare",
    "count_flops",
    "count_parameters",
    "evaluate",
    "mean_interval",
    "measure",
    "measure_cost",
    "metrics",
    "printed_metrics",
    "spectrum",
    "training_memory",
]
