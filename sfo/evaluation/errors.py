"""How wrong a prediction is: the paper's metric, and those of the libraries it is compared with.

The metrics of `sfo.evaluation.metrics` follow from two sums of squares over the grid points of a
region Ω, kept for every sample s, component c and time t,

    E_Ω(s, c, t) = Σ_{x ∈ Ω} (û − u)²,        U_Ω(s, c, t) = Σ_{x ∈ Ω} u²,

where Ω is the band along the boundary or the interior. Letters that are left out are summed over:
E(s) runs over all points, times and components. Errors are fractions, not percent. A metric that
needs more than these sums says what to gather: see `sfo.evaluation.metric`.

A relative error is undefined where the target is zero throughout. It then counts 0 if the
prediction is exact and 1 if not, which is also what the prediction 0 costs everywhere else: finite,
so that one such frame does not swallow an average. `Errors.zero_targets` counts these frames.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.data.pairs import Pairs
from sfo.evaluation.metric import Context, Gather, Value, as_metric
from sfo.grid import Grid
from sfo.registry import METRICS
from sfo.shapes import Field

# So many numbers are held in float64 at a time (or one sample): 2 MB, which stay in cache.
CHUNK = 2**18

Sums = Float[Tensor, "sample component time region"]


class ErrorSums:
    """E and U of the module's head, gathered batch by batch in float64.

    The result does not depend on how the samples are cut into batches. What is kept is five
    numbers for every sample and channel, and the rows that metrics of `METRICS` ask for, on the
    CPU.

    Args:
        components: Number of fields that share the channel axis.
        n_times: Number of time steps of each field; channel = component · n_times + time.
        grid: Grid of the fields.
        band: Width of the boundary band, in parts of an axis; the paper's is 0.1.
        fields: Names of the fields; None: their numbers.

    Example:
        >>> sums = ErrorSums(components=1, n_times=1, grid=Grid((4,), (0.0,), (1.0,)))
        >>> truth = torch.tensor([[[3.0, 0.0, 4.0, 0.0]]])
        >>> sums.update(truth + torch.tensor([0.0, 0.3, 0.0, 0.4]), truth)
        >>> round(sums.errors().percent, 5)
        10.0
    """

    def __init__(
        self,
        *,
        components: int,
        n_times: int,
        grid: Grid,
        band: float = 0.1,
        fields: Sequence[str] | None = None,
    ) -> None:
        if components < 1 or n_times < 1:
            raise ValueError(
                "`components` and `n_times` must be at least 1, got "
                f"components={components}, n_times={n_times}."
            )
        names = tuple(map(str, range(components))) if fields is None else tuple(fields)
        if len(names) != components:
            raise ValueError(
                f"`fields` must name all {components} fields, got {', '.join(names) or 'none'}."
            )
        self.components, self.n_times, self.grid = components, n_times, grid
        self.context = Context(names, n_times, grid)
        in_band = grid.boundary_band(band).flatten()
        self.points = len(in_band)
        self.regions = (in_band.nonzero()[:, 0], (~in_band).nonzero()[:, 0])
        self._squares: list[tuple[Tensor, Tensor, Tensor]] = []
        metrics = map(as_metric, METRICS)
        self._rows: dict[Gather, list[Tensor]] = {m.gather: [] for m in metrics if m.gather}

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
            # Apple's GPUs have no float64.
            device = torch.device("cpu") if p.device.type == "mps" else p.device
            self._add(p.to(device, torch.float64), y.to(device, torch.float64))

    def _add(self, prediction: Field, truth: Field) -> None:
        """Reduce some samples in float64 to what is kept of them."""
        y = truth.flatten(2)
        difference = prediction.flatten(2) - y
        peak = difference.abs().amax(dim=2)
        shape = (len(y), self.components, self.n_times)
        error, target = (self._sum(f.square()).reshape(*shape, 2) for f in (difference, y))
        self._squares.append((error, target, peak.cpu().reshape(shape)))
        p, u = (f.reshape(*shape, *self.grid.shape) for f in (prediction, truth))
        for gather, rows in self._rows.items():
            row = torch.as_tensor(gather(p, u, self.context))
            if row.ndim < 1 or len(row) != len(y):
                raise ValueError(
                    f"The metric {gather.__name__} must give one row per sample, for {len(y)} "
                    f"samples got the shape {tuple(row.shape)}."
                )
            rows.append(row.to("cpu", torch.float64))

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
        if not any(len(row[0]) for row in self._squares):
            raise ValueError("No errors without samples: call `update` first.")
        return torch.cat([row[column] for row in self._squares])

    def rows(self, gather: Gather) -> Float[Tensor, "sample ..."]:
        """What a registered metric has gathered, one row per sample."""
        return torch.cat(self._rows[gather])

    def errors(self) -> "Errors":
        """Every registered metric of the samples so far."""
        return Errors(**{name: as_metric(name).value(self) for name in METRICS.in_order()})


class Errors(Mapping[str, Any]):
    """All metrics of a model on a set of samples, by name; `dict(errors)` is plain JSON.

    Each is also an attribute. What the names mean is in `sfo.evaluation.metrics`. Errors that
    were measured before a metric was registered do not have it: `errors.get(name)` is then None.

    Example:
        >>> errors = Errors(relative_l2=0.02, mine=3.0)
        >>> errors.percent, errors.mine, errors.get("boundary_l2")
        (2.0, 3.0, None)
    """

    def __init__(self, **values: Value) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        # While it is unpickled it has no values yet.
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        raise AttributeError(f"These errors have no metric {name!r}.")

    def __repr__(self) -> str:
        return f"Errors({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"

    @property
    def percent(self) -> float:
        """The paper's metric as it prints it, L₂(%) = 100 · `relative_l2`."""
        return 100 * self["relative_l2"]


def evaluate(model: nn.Module, pairs: Pairs, *, batch_size: int = 10) -> Errors:
    """All errors of a model on some pairs: what runs, commands and analyses report.

    Args:
        model: It is put in evaluation mode, and back into what it was in.
        pairs: Inputs and true solutions, anywhere.
        batch_size: It bounds the memory and does not change the result.

    Example:
        >>> u = torch.rand(5, 1, 8)
        >>> grid = Grid((8,), (0.0,), (1.0,))
        >>> pairs = Pairs(u, u, grid, tuple(range(5)), (0.0,), ("u",), ("u",))
        >>> evaluate(nn.Identity(), pairs).relative_l2
        0.0
    """
    return evaluate_fields(
        model,
        pairs.a,
        pairs.u,
        components=len(pairs.names),
        n_times=pairs.n_times,
        grid=pairs.grid,
        fields=pairs.names,
        batch_size=batch_size,
    )


def evaluate_fields(
    model: nn.Module,
    a: Field,
    u: Field,
    *,
    components: int = 1,
    n_times: int,
    grid: Grid,
    fields: Sequence[str] | None = None,
    batch_size: int = 16,
) -> Errors:
    """The same of plain tensors, on the model's own device and in its own precision.

    Args:
        model: It is put in evaluation mode, and back into what it was in.
        a: Input fields, anywhere; only `batch_size` of them are moved to the model at a time.
        u: True solutions.
        components, n_times, grid, fields: See `ErrorSums`.
        batch_size: It bounds the memory and does not change the result.

    Example:
        >>> u = torch.rand(5, 3, 8)
        >>> grid = Grid((8,), (0.0,), (1.0,))
        >>> evaluate_fields(nn.Identity(), u, u, n_times=3, grid=grid).relative_l2
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
        return compute_errors(
            predictions(), components=components, n_times=n_times, grid=grid, fields=fields
        )


def compute_errors(
    batches: Iterable[tuple[Field, Field]],
    *,
    components: int = 1,
    n_times: int,
    grid: Grid,
    fields: Sequence[str] | None = None,
) -> Errors:
    """All errors of (prediction, truth) batches; the arguments are those of `ErrorSums`.

    Example:
        >>> u = torch.rand(4, 1, 8)
        >>> grid = Grid((8,), (0.0,), (1.0,))
        >>> round(compute_errors([(1.1 * u, u)], n_times=1, grid=grid).percent, 4)
        10.0
    """
    sums = ErrorSums(components=components, n_times=n_times, grid=grid, fields=fields)
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
