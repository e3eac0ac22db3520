"""Errors of predictions, what they are worth, and what they cost."""

from sfo.evaluation.cost import (
    Cost,
    count_flops,
    count_parameters,
    measure_cost,
    training_memory,
)
from sfo.evaluation.errors import Errors, ErrorSums, evaluate, measure
from sfo.evaluation.statistics import Comparison, Interval, compare, mean_interval

__all__ = [
    "Comparison",
    "Cost",
    "ErrorSums",
    "Errors",
    "Interval",
    "compare",
    "count_flops",
    "count_parameters",
    "evaluate",
    "mean_interval",
    "measure",
    "measure_cost",
    "training_memory",
]
