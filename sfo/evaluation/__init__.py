"""Errors of predictions, what they are worth, and what they cost."""

from sfo.evaluation import metrics, spectrum  # Importing them registers what is in them.
from sfo.evaluation.cost import (
    Cost,
    count_flops,
    count_parameters,
    measure_cost,
    training_memory,
)
from sfo.evaluation.errors import Errors, ErrorSums, compute_errors, evaluate, evaluate_fields
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
    "compute_errors",
    "count_flops",
    "count_parameters",
    "evaluate",
    "evaluate_fields",
    "mean_interval",
    "measure_cost",
    "metrics",
    "printed_metrics",
    "spectrum",
    "training_memory",
]
