"""A first guess at the solution by least squares, from which a model starts its training."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sfo.data.pairs import Pairs
from sfo.data.rows import Rows, array_rows

MAX_REMAINING_SHARE = 0.5
"""An offset of its own at every point is taken where it leaves less than this share of what the
same offset at all points leaves."""

MIN_SCALE_SHARE = 1e-6
"""What a guess leaves counts as at least this share of the field's deviation: beyond it lies
rounding."""


@dataclass(frozen=True)
class FirstGuess:
    """The guess u ≈ offset + weight · a at each point, and the sizes of inputs and of what is left.

    Args:
        mean: The mean of each input channel.
        deviation: The standard deviation of each input channel.
        weight: What each solution channel takes of each input channel, `(out, in)`.
        offset: What is added to each solution channel, `(out, *grid)`, or `(out, 1, ...)` if it is
            the same at all points.
        scale: The size of what the guess leaves of each solution field.
        spread: The standard deviation of each solution field.
    """

    mean: Tensor
    deviation: Tensor
    weight: Tensor
    offset: Tensor
    scale: Tensor
    spread: Tensor


def first_guess(
    train: Pairs, *, components: int = 1, from_input: bool = True, places_differ: bool = False
) -> FirstGuess:
    """The least squares fit of training data, read once and in portions.

    Each solution channel, which is a field at one time, is fitted by the input channels at the
    same point and a constant. Where places differ the constant may be another one at every point:
    a front that starts at the same wall in every sample, say, differs little between samples.

    Args:
        train: The training samples.
        components: Equal shares of the channels that are taken as samples of one map.
        from_input: Whether to fit the input channels too, not the constant alone.
        places_differ: Whether the problem has places, such as walls. Where it has none, the mean
            over samples differs from place to place by chance alone.
    """
    sums = _sums(train, components)
    fields = len(train.names) // components
    weight, left = _fit(*sums.covariances(by_place=False), from_input)
    offset = sums.offset(weight, by_place=False)
    spread = _per_field(sums.covariances(by_place=False)[2], fields)
    scale = _per_field(left, fields)
    if places_differ:
        placed, left = _fit(*sums.covariances(by_place=True), from_input)
        nearer = _per_field(left, fields) < MAX_REMAINING_SHARE * scale
        if nearer.any():
            chosen = nearer.repeat_interleave(len(weight) // fields)[:, None]
            offset = torch.where(chosen, sums.offset(placed, by_place=True), offset)
            weight = torch.where(chosen, placed, weight)
            scale = torch.where(nearer, _per_field(left, fields), scale)
    variance = sums.covariances(by_place=False)[0].diagonal()
    grid = train.u.shape[2:] if offset.shape[1] > 1 else [1] * (train.u.ndim - 2)
    return FirstGuess(
        mean=sums.mean(sums.a, by_place=False)[:, 0] + sums.a_shift,
        deviation=variance.clamp(min=0).sqrt(),
        weight=weight,
        offset=offset.view(-1, *grid),
        scale=scale.clamp(min=MIN_SCALE_SHARE * spread),
        spread=spread,
    )


@dataclass(frozen=True)
class _Sums:
    """Sums over samples: of the values at each point, and of products over all points too."""

    samples: int
    a_shift: Tensor
    u_shift: Tensor
    a: Tensor
    u: Tensor
    aa: Tensor
    ua: Tensor
    uu: Tensor

    def mean(self, total: Tensor, *, by_place: bool) -> Tensor:
        """The mean of each channel, `(channel, point)`; one point if places do not differ."""
        mean = total / self.samples
        return mean if by_place else mean.mean(1, keepdim=True)

    def covariances(self, *, by_place: bool) -> tuple[Tensor, Tensor, Tensor]:
        """Of inputs with inputs, of solutions with inputs, and each solution channel's variance."""
        a, u = (self.mean(total, by_place=by_place) for total in (self.a, self.u))
        count, points = self.samples * self.a.shape[1], a.shape[1]
        return (
            self.aa / count - a @ a.T / points,
            self.ua / count - u @ a.T / points,
            self.uu / count - u.square().mean(1),
        )

    def offset(self, weight: Tensor, *, by_place: bool) -> Tensor:
        """The mean solution less what the weight makes of the mean input."""
        a, u = (self.mean(total, by_place=by_place) for total in (self.a, self.u))
        return u + self.u_shift[:, None] - weight @ (a + self.a_shift[:, None])


def _sums(train: Pairs, components: int) -> _Sums:
    """The sums of training data, shifted by a constant per channel, so that no digits are lost."""
    a_rows, u_rows = (r if isinstance(r, Rows) else array_rows(r) for r in (train.a, train.u))
    at_once = max(1, next(iter(u_rows.chunks())).shape[0])
    total: _Sums | None = None
    for a, u in zip(a_rows.split(at_once), u_rows.split(at_once), strict=True):
        # (channel, sample, point), where the components are samples.
        a, u = (
            values.double().flatten(2).unflatten(1, (components, -1)).flatten(0, 1).transpose(0, 1)
            for values in (a, u)
        )
        if total is None:
            a_shift, u_shift = a.mean((1, 2)), u.mean((1, 2))
        a, u = a - a_shift[:, None, None], u - u_shift[:, None, None]
        flat_a, flat_u = a.flatten(1), u.flatten(1)
        totals = [
            a.sum(1),
            u.sum(1),
            flat_a @ flat_a.T,
            flat_u @ flat_a.T,
            flat_u.square().sum(1),
        ]
        samples = a.shape[1]
        if total is not None:
            before = total.a, total.u, total.aa, total.ua, total.uu
            totals = [one + other for one, other in zip(before, totals, strict=True)]
            samples += total.samples
        total = _Sums(samples, a_shift, u_shift, *totals)
    assert total is not None, "Training data have at least one sample."
    return total


def _fit(aa: Tensor, ua: Tensor, uu: Tensor, from_input: bool) -> tuple[Tensor, Tensor]:
    """Weights of least squares, and the mean square of what they leave of each channel."""
    if not from_input:
        return torch.zeros_like(ua), uu
    weight = ua @ torch.linalg.pinv(aa, rtol=1e-10, hermitian=True)
    return weight, uu - (weight * ua).sum(1)


def _per_field(squares: Tensor, fields: int) -> Tensor:
    """The root of the mean square of each field, from those of its channels."""
    return squares.view(fields, -1).mean(1).clamp(min=0).sqrt()
