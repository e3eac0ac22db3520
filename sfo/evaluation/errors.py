"""How wrong a prediction is: the paper's metric, and those of the libraries it is compared with.

All metrics follow from two sums of squares over the grid points of a region Ω, kept for every
sample s, component c and time t,

    E_Ω(s, c, t) = Σ_{x ∈ Ω} (û − u)²,        U_Ω(s, c, t) = Σ_{x ∈ Ω} u²,

where Ω is the band along the boundary or the interior. Letters that are left out are summed over:
E(s) runs over all points, times and components. Errors are fractions, not per cent.

A relative error is undefined where the target is zero throughout. It then counts 0 if the
prediction is exact and 1 if not, which is also what the prediction 0 costs everywhere else: finite,
so that one such frame does not swallow an average. `Errors.zero_targets` counts these frames.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.grid import Grid
from sfo.shapes import Field

# So many numbers are held in float64 at a time (or one sample): 2 MB, which stay in cache.
CHUNK = 2**18

Sums = Float[Tensor, "sample component time region"]


class ErrorSums:
    """E and U of the module's head, gathered batch by batch in float64.

    The result does not depend on how the samples are cut into batches. What is kept is five
    numbers for every sample and channel, on the CPU.

    Args:
        components: Fields that share the channel axis.
        n_times: Time steps of each; channel = component · n_times + time.
        grid: Of the fields.
        band: Width of the boundary band, in parts of an axis; the paper's is 0.1.

    Example:
        >>> sums = ErrorSums(components=1, n_times=1, grid=Grid((4,), (0.0,), (1.0,)))
        >>> truth = torch.tensor([[[3.0, 0.0, 4.0, 0.0]]])
        >>> sums.update(truth + torch.tensor([0.0, 0.3, 0.0, 0.4]), truth)
        >>> round(sums.errors().percent, 5)
        10.0
    """

    def __init__(self, *, components: int, n_times: int, grid: Grid, band: float = 0.1) -> None:
        if components < 1 or n_times < 1:
            raise ValueError(
                "`components` and `n_times` must be at least 1, got "
                f"components={components}, n_times={n_times}."
            )
        self.components, self.n_times, self.grid = components, n_times, grid
        in_band = grid.boundary_band(band).flatten()
        self.points = len(in_band)
        self.regions = (in_band.nonzero()[:, 0], (~in_band).nonzero()[:, 0])
        self._rows: list[tuple[Tensor, Tensor, Tensor]] = []

    def update(self, prediction: Field, truth: Field) -> None:
        """Add the samples of a batch, `(sample, component · n_times, *grid)`."""
        channels = self.components * self.n_times
        expected = (channels, *self.grid.shape)
        if tuple(truth.shape[1:]) != expected or prediction.shape != truth.shape:
            raise ValueError(
                f"`prediction` and `truth` must be (sample, {', '.join(map(str, expected))}) by "
                f"components={self.components}, n_times={self.n_times} and the grid, got "
                f"{tuple(prediction.shape)} and {tuple(truth.shape)}."
            )
        step = max(1, CHUNK // (channels * self.points))
        for p, y in zip(prediction.detach().split(step), truth.detach().split(step), strict=True):
            self._rows.append(self._reduce(p, y))

    def _reduce(self, prediction: Field, truth: Field) -> tuple[Tensor, Tensor, Tensor]:
        # Apple's GPUs have no float64.
        device = torch.device("cpu") if prediction.device.type == "mps" else prediction.device
        y = truth.to(device, torch.float64).flatten(2)
        difference = prediction.to(device, torch.float64).flatten(2) - y
        peak = difference.abs().amax(dim=2)
        shape = (len(y), self.components, self.n_times)
        error, target = (self._sum(f.square()).reshape(*shape, 2) for f in (difference, y))
        return error, target, peak.cpu().reshape(shape)

    def _sum(self, f: Float[Tensor, "sample channel points"]) -> Tensor:
        parts = [f[..., index.to(f.device)].sum(-1) for index in self.regions]
        return torch.stack(parts, dim=-1).cpu()

    @property
    def error(self) -> Sums:
        """E, in the band and in the interior."""
        return self._gather(0)

    @property
    def target(self) -> Sums:
        """U, in the band and in the interior."""
        return self._gather(1)

    @property
    def peak(self) -> Float[Tensor, "sample component time"]:
        """max |û − u| over all points."""
        return self._gather(2)

    def _gather(self, column: int) -> Tensor:
        if not any(len(row[0]) for row in self._rows):
            raise ValueError("No errors without samples: call `update` first.")
        return torch.cat([row[column] for row in self._rows])

    def errors(self) -> "Errors":
        """Every metric of the samples so far."""
        return Errors(
            relative_l2=relative_l2(self),
            per_sample=per_sample(self).tolist(),
            per_time=per_time(self).tolist(),
            boundary_l2=boundary_l2(self),
            interior_l2=interior_l2(self),
            max_error=max_error(self),
            pdenneval_l2re=pdenneval_l2re(self).tolist(),
            pdenneval_max=pdenneval_max(self).tolist(),
            pdebench_rmse=pdebench_rmse(self),
            pdebench_nrmse=pdebench_nrmse(self),
            pdebench_max=pdebench_max(self),
            neuralop_l2=neuralop_l2(self),
            zero_targets=int((self.target.sum(-1) == 0).sum()),
        )


@dataclass(frozen=True)
class Errors:
    """All metrics of a model on a set of samples; `dataclasses.asdict` gives plain JSON.

    Attributes:
        relative_l2: The paper's: see `relative_l2`.
        per_sample: The same for each sample, in order, for paired comparisons.
        per_time: The same for each frame alone, mean over the samples.
        boundary_l2: The same on the band along the boundary; None where it has no points.
        interior_l2: The same on the rest of the grid; None where it has no points.
        max_error: The largest |û − u| of all.
        pdenneval_l2re: PDENNEval's L2RE, one a component.
        pdenneval_max: PDENNEval's maximum error, one a component.
        pdebench_rmse: PDEBench's RMSE.
        pdebench_nrmse: PDEBench's normalised RMSE.
        pdebench_max: PDEBench's maximum error.
        neuralop_l2: neuraloperator's relative LpLoss.
        zero_targets: Frames of a component whose target is zero throughout.
    """

    relative_l2: float
    per_sample: list[float]
    per_time: list[float]
    boundary_l2: float | None
    interior_l2: float | None
    max_error: float
    pdenneval_l2re: list[float]
    pdenneval_max: list[float]
    pdebench_rmse: float
    pdebench_nrmse: float
    pdebench_max: float
    neuralop_l2: float
    zero_targets: int

    @property
    def percent(self) -> float:
        """The paper's metric as it prints it, L₂(%) = 100 · `relative_l2`."""
        return 100 * self.relative_l2


def evaluate(
    model: nn.Module,
    a: Field,
    u: Field,
    *,
    components: int = 1,
    n_times: int,
    grid: Grid,
    batch_size: int = 16,
) -> Errors:
    """All errors of a model, on its own device and in its own precision.

    Args:
        model: It is put in evaluation mode, and back into what it was in.
        a: Input fields, anywhere; only `batch_size` of them are moved to the model at a time.
        u: True solutions.
        components, n_times, grid: See `ErrorSums`.
        batch_size: It bounds the memory and does not change the result.

    Example:
        >>> u = torch.rand(5, 3, 8)
        >>> evaluate(nn.Identity(), u, u, n_times=3, grid=Grid((8,), (0.0,), (1.0,))).relative_l2
        0.0
    """
    if len(a) != len(u) or batch_size < 1:
        raise ValueError(
            "`a` and `u` must have as many samples and `batch_size` must be at least 1, got "
            f"{len(a)} and {len(u)} samples, batch_size={batch_size}."
        )

    def predictions() -> Iterator[tuple[Tensor, Tensor]]:
        for inputs, truth in zip(a.split(batch_size), u.split(batch_size), strict=True):
            yield model(to_model(model, inputs)), truth

    with evaluating(model):
        return measure(predictions(), components=components, n_times=n_times, grid=grid)


def measure(
    batches: Iterable[tuple[Field, Field]], *, components: int = 1, n_times: int, grid: Grid
) -> Errors:
    """All errors of (prediction, truth) batches; the arguments are those of `ErrorSums`."""
    sums = ErrorSums(components=components, n_times=n_times, grid=grid)
    for prediction, truth in batches:
        sums.update(prediction, truth)
    return sums.errors()


def to_model(model: nn.Module, a: Field) -> Field:
    """Fields on the device and in the real precision of a model's weights."""
    weight = next(model.parameters(), a)
    return a.to(weight.device, weight.dtype.to_real())


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every part is in the mode it was in."""
    modes = {part: part.training for part in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in modes.items():
            part.training = training


def relative_l2(sums: ErrorSums) -> float:
    """The paper's: mean over s of √(E(s) / U(s)), over all points, times and components."""
    return per_sample(sums).mean().item()


def per_sample(sums: ErrorSums) -> Float[Tensor, " sample"]:
    """√(E(s) / U(s)) of every sample."""
    return _relative(sums.error.sum((1, 2, 3)), sums.target.sum((1, 2, 3)))


def per_time(sums: ErrorSums) -> Float[Tensor, " time"]:
    """Mean over s of √(E(s, t) / U(s, t)): each frame against its own size."""
    return _relative(sums.error.sum((1, 3)), sums.target.sum((1, 3))).mean(0)


def boundary_l2(sums: ErrorSums) -> float | None:
    """Mean over s of √(E_Ω(s) / U_Ω(s)), Ω the band along the boundary."""
    return _in_region(sums, 0)


def interior_l2(sums: ErrorSums) -> float | None:
    """Mean over s of √(E_Ω(s) / U_Ω(s)), Ω the grid without the band."""
    return _in_region(sums, 1)


def max_error(sums: ErrorSums) -> float:
    """max |û − u| over everything."""
    return sums.peak.max().item()


def pdenneval_l2re(sums: ErrorSums) -> Float[Tensor, " component"]:
    """PDENNEval's L2RE, one a component: mean over s of √(E(s, c) / U(s, c)).

    PDENNEval leaves the frames out that an autoregressive model is given; here all count.
    """
    return _relative(sums.error.sum((2, 3)), sums.target.sum((2, 3))).mean(0)


def pdenneval_max(sums: ErrorSums) -> Float[Tensor, " component"]:
    """PDENNEval's mERR, one a component: max over s, t and x of |û − u|."""
    return sums.peak.amax((0, 2))


def pdebench_rmse(sums: ErrorSums) -> float:
    """PDEBench's RMSE: mean over s, c and t of √(E(s, c, t) / points)."""
    return (sums.error.sum(-1) / sums.points).sqrt().mean().item()


def pdebench_nrmse(sums: ErrorSums) -> float:
    """PDEBench's nRMSE: mean over s, c and t of √(E(s, c, t) / U(s, c, t)).

    The square roots are taken frame by frame, so small frames weigh as much as large ones.
    """
    return _relative(sums.error.sum(-1), sums.target.sum(-1)).mean().item()


def pdebench_max(sums: ErrorSums) -> float:
    """PDEBench's maximum error: max over s and x, then the mean over c and t."""
    return sums.peak.amax(0).mean().item()


def neuralop_l2(sums: ErrorSums, reduction: Literal["mean", "sum"] = "mean") -> float:
    """neuraloperator's LpLoss(d=n_dim, p=2): √E / (√U + 10⁻⁸) of each channel.

    Its default reduction is the sum over samples and channels. The mean is `pdebench_nrmse` but
    for the 10⁻⁸, and with d=n_dim + 1 it would be `relative_l2`.
    """
    ratio = sums.error.sum(-1).sqrt() / (sums.target.sum(-1).sqrt() + 1e-8)
    return (ratio.mean() if reduction == "mean" else ratio.sum()).item()


def _in_region(sums: ErrorSums, region: int) -> float | None:
    if len(sums.regions[region]) == 0:
        return None
    error, target = sums.error[..., region], sums.target[..., region]
    return _relative(error.sum((1, 2)), target.sum((1, 2))).mean().item()


def _relative(error: Tensor, target: Tensor) -> Tensor:
    """√(error / target) of sums of squares; for a zero target 0 where exact, else 1."""
    zero = target == 0
    # A prediction that is not a number is not exact either.
    return torch.where(zero, (error != 0).to(error), (error / target.masked_fill(zero, 1)).sqrt())
