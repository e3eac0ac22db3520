"""The metrics: the paper's, and those of the libraries it is compared with.

E and U are the sums of squares of `sfo.evaluation.errors`, where letters that are left out are
summed over.

Example:
    >>> from sfo.registry import METRICS
    >>> "relative_l2" in METRICS
    True
"""

from collections.abc import Callable
from typing import Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.evaluation.errors import ErrorSums
from sfo.evaluation.metric import Metric, Value
from sfo.registry import METRICS

Result = TypeVar("Result", float, int, float | None, Tensor, dict[str, float])


def _metric(
    name: str, title: str, unit: str = ""
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Register a function of the sums; it stays callable as it is."""

    def register(function: Callable[..., Result]) -> Callable[..., Result]:
        def value(sums: ErrorSums) -> Value:
            result = function(sums)
            return result.tolist() if isinstance(result, Tensor) else result

        METRICS.register(name)(Metric(title, value, unit))
        return function

    return register


@_metric("relative_l2", "relative L2 (the paper's)", "%")
def relative_l2(sums: ErrorSums) -> float:
    """The paper's: mean over s of √(E(s) / U(s)), over all points, times and components."""
    return per_sample(sums).mean().item()


@_metric("per_sample", "each sample", "%")
def per_sample(sums: ErrorSums) -> Float[Tensor, " sample"]:
    """√(E(s) / U(s)) of every sample."""
    return relative(sums.error.sum((1, 2, 3)), sums.target.sum((1, 2, 3)))


@_metric("per_time", "each frame", "%")
def per_time(sums: ErrorSums) -> Float[Tensor, " time"]:
    """Mean over s of √(E(s, t) / U(s, t)): each frame against its own size."""
    return relative(sums.error.sum((1, 3)), sums.target.sum((1, 3))).mean(0)


@_metric("boundary_l2", "boundary band", "%")
def boundary_l2(sums: ErrorSums) -> float | None:
    """Mean over s of √(E_Ω(s) / U_Ω(s)), Ω the band along the boundary."""
    return _in_region(sums, 0)


@_metric("interior_l2", "interior", "%")
def interior_l2(sums: ErrorSums) -> float | None:
    """Mean over s of √(E_Ω(s) / U_Ω(s)), Ω the grid without the band."""
    return _in_region(sums, 1)


@_metric("max_error", "largest error")
def max_error(sums: ErrorSums) -> float:
    """max |û − u| over everything."""
    return sums.peak.max().item()


@_metric("pdenneval_l2re", "PDENNEval L2RE, by field")
def pdenneval_l2re(sums: ErrorSums) -> Float[Tensor, " component"]:
    """PDENNEval's L2RE, one per component: mean over s of √(E(s, c) / U(s, c)).

    PDENNEval leaves the frames out that an autoregressive model is given; here all count.
    """
    return relative(sums.error.sum((2, 3)), sums.target.sum((2, 3))).mean(0)


@_metric("pdenneval_max", "PDENNEval largest error, by field")
def pdenneval_max(sums: ErrorSums) -> Float[Tensor, " component"]:
    """PDENNEval's mERR, one per component: max over s, t and x of |û − u|."""
    return sums.peak.amax((0, 2))


@_metric("pdebench_rmse", "PDEBench RMSE")
def pdebench_rmse(sums: ErrorSums) -> float:
    """PDEBench's RMSE: mean over s, c and t of √(E(s, c, t) / points)."""
    return (sums.error.sum(-1) / sums.points).sqrt().mean().item()


@_metric("pdebench_nrmse", "PDEBench nRMSE")
def pdebench_nrmse(sums: ErrorSums) -> float:
    """PDEBench's nRMSE: mean over s, c and t of √(E(s, c, t) / U(s, c, t)).

    The square roots are taken frame by frame, so small frames weigh as much as large ones.
    """
    return relative(sums.error.sum(-1), sums.target.sum(-1)).mean().item()


@_metric("pdebench_max", "PDEBench largest error")
def pdebench_max(sums: ErrorSums) -> float:
    """PDEBench's maximum error: max over s and x, then the mean over c and t."""
    return sums.peak.amax(0).mean().item()


@_metric("neuralop_l2", "neuraloperator L2")
def neuralop_l2(sums: ErrorSums, reduction: Literal["mean", "sum"] = "mean") -> float:
    """neuraloperator's LpLoss(d=n_dim, p=2): √E / (√U + 10⁻⁸) of each channel.

    Its default reduction is the sum over samples and channels. The mean is `pdebench_nrmse` but
    for the 10⁻⁸, and with d=n_dim + 1 it would be `relative_l2`.
    """
    ratio = sums.error.sum(-1).sqrt() / (sums.target.sum(-1).sqrt() + 1e-8)
    return (ratio.mean() if reduction == "mean" else ratio.sum()).item()


@_metric("zero_targets", "frames whose target is zero")
def zero_targets(sums: ErrorSums) -> int:
    """Frames of a component whose target is zero throughout."""
    return int((sums.target.sum(-1) == 0).sum())


@_metric("field_l2", "relative L2 by field", "%")
def field_l2(sums: ErrorSums) -> dict[str, float]:
    """Mean over s of √(E(s, c) / U(s, c)) of each named field c, over all of its frames."""
    values = relative(sums.error.sum((2, 3)), sums.target.sum((2, 3))).mean(0)
    return dict(zip(sums.context.fields, values.tolist(), strict=True))


def _in_region(sums: ErrorSums, region: int) -> float | None:
    if len(sums.regions[region]) == 0:
        return None
    error, target = sums.error[..., region], sums.target[..., region]
    return relative(error.sum((1, 2)), target.sum((1, 2))).mean().item()


def relative(error: Tensor, target: Tensor) -> Tensor:
    """√(error / target) of sums of squares; for a zero target 0 where exact, else 1."""
    zero = target == 0
    # A prediction that is not a number is not exact either.
    return torch.where(zero, (error != 0).to(error), (error / target.masked_fill(zero, 1)).sqrt())
