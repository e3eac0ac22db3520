"""What a metric is: a name for people, and a function from predictions and truths to numbers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid
from sfo.registry import METRICS

if TYPE_CHECKING:
    from sfo.evaluation.errors import ErrorSums

Value = float | int | None | list[float] | dict[str, float]
"""What a metric gives: one number, several in order, or several by name."""


@dataclass(frozen=True)
class Context:
    """What a metric may know of the fields besides their values.

    Args:
        fields: Names of the fields.
        n_times: Number of frames of each field.
        grid: The grid of every frame.

    Example:
        >>> context = Context(("h", "u"), n_times=3, grid=Grid((8,), (0.0,), (1.0,)))
        >>> context.fields, context.grid.n_dim
        (('h', 'u'), 1)
    """

    fields: tuple[str, ...]
    n_times: int
    grid: Grid


Fields = Float[Tensor, "sample field time *grid"]
Gather = Callable[[Fields, Fields, Context], Tensor]
"""From prediction and truth of some samples, in float64, to one row per sample."""


@dataclass(frozen=True)
class Metric:
    """An entry of `METRICS`.

    A plain function (prediction, truth, context) that gives one number, or one row of numbers, per
    sample may be registered as it is; the metric is then the mean over the samples:

        @METRICS.register("bias")
        def bias(prediction, truth, context):
            return (prediction - truth).flatten(1).mean(1)

    Args:
        title: The metric's name as tables print it.
        value: From the sums over all samples to the value of the metric.
        unit: "%" for a fraction that is printed in percent; "" for what is printed as it is.
        gather: What to keep of each sample beside the sums of squares; `value` finds it in
            `sums.rows(gather)`. None if the sums of squares are enough.

    Example:
        >>> largest = Metric("largest error", lambda sums: max(sums.errors().per_sample))
        >>> largest.title, largest.gather
        ('largest error', None)
    """

    title: str
    value: Callable[["ErrorSums"], Value]
    unit: str = ""
    gather: Gather | None = None


def as_metric(name: str) -> Metric:
    """A registered metric; a plain function becomes the mean of its rows over the samples."""
    entry = METRICS[name]
    if isinstance(entry, Metric):
        return entry
    return Metric(name, lambda sums: sums.rows(entry).mean(0).tolist(), gather=entry)


def metric_names(*errors: Mapping[str, Any]) -> list[str]:
    """Registered metrics, then those that only some `errors` have, such as a plugin's."""
    return list(dict.fromkeys([*METRICS.in_order(), *(name for e in errors for name in e)]))


def metric_title(name: str) -> str:
    """The name of a metric as tables print it, with its unit; an unknown one goes by its name."""
    if name not in METRICS:
        return name
    metric = as_metric(name)
    return f"{metric.title}, {metric.unit}" if metric.unit else metric.title


def metric_text(name: str, errors: Mapping[str, Any]) -> str:
    """A metric as tables print it; "–" if `errors` lack it."""
    return print_value(errors.get(name), as_metric(name).unit if name in METRICS else "")


def printed_metrics(errors: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Title and text of every metric that is registered, or that `errors` have.

    Example:
        >>> dict(printed_metrics({"relative_l2": 0.0123, "mine": 4.0}))["mine"]
        '4'
    """
    return [(metric_title(name), metric_text(name, errors)) for name in metric_names(errors)]


def print_value(value: Any, unit: str = "") -> str:
    """A metric's value as tables print it; of many numbers the first and the last.

    Example:
        >>> print_value(0.0123, "%"), print_value({"h": 0.5, "u": 2.0}), print_value(None)
        ('1.23', 'h 0.5, u 2', '–')
        >>> print_value([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
        '1 … 7 (7 numbers)'
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {print_value(v, unit)}" for key, v in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        texts = [print_value(v, unit) for v in value]
        many = len(texts) > 6
        return f"{texts[0]} … {texts[-1]} ({len(texts)} numbers)" if many else ", ".join(texts)
    if isinstance(value, (int, float)):
        return f"{100 * value if unit == '%' else value:.4g}"
    return "–" if value is None else str(value)
