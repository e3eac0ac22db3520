"""Errors by frequency band: which of a field's scales a model gets wrong.

The Fourier transform over the grid of every frame, with a factor that makes it unitary, divides
both sums of squares among the frequencies k,

    E(s, c, t) = Σ_k |û_k − u_k|²,        U(s, c, t) = Σ_k |u_k|²        (Parseval).

With K_j = ⌊n_j / 2⌋, the largest frequency along axis j, the radial wave number of k is

    r(k) = √(Σ_j (k_j / K_j)²),

and the bands are low (r < 1/3), middle (1/3 ≤ r < 2/3) and high (2/3 ≤ r, corners included). Each k
is in exactly one band, so the bands' sums add up to E and U. Fields that are not periodic are
transformed as if they were: the jump at their ends is seen in all bands.

Example:
    >>> from sfo.registry import METRICS
    >>> "band_l2" in METRICS
    True
"""

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.evaluation.errors import ErrorSums
from sfo.evaluation.metric import Context, Fields, Metric
from sfo.evaluation.metrics import relative
from sfo.grid import Grid
from sfo.registry import METRICS

BANDS = {"low": 0.0, "middle": 1 / 3, "high": 2 / 3}
"""Where each band begins."""


def band_weights(grid: Grid) -> Float[Tensor, "band *frequencies"]:
    """How often each frequency of a real transform counts in each band.

    The transform of a real field leaves out k where it has −k along the last axis.
    """
    axes = [torch.fft.fftfreq(n, 1 / n, dtype=torch.float64) for n in grid.shape[:-1]]
    last = torch.arange(grid.shape[-1] // 2 + 1, dtype=torch.float64)
    largest = [max(1, n // 2) for n in grid.shape]
    mesh = torch.meshgrid(*axes, last, indexing="ij")
    r = sum((k / top).square() for k, top in zip(mesh, largest, strict=True))
    r = torch.as_tensor(r).sqrt()
    twice = torch.full_like(last, 2.0)
    twice[0] = 1.0
    if grid.shape[-1] % 2 == 0:
        twice[-1] = 1.0
    begins = torch.tensor([*BANDS.values()], dtype=torch.float64)
    # A rounded r just below 1/3 or 2/3 is at it.
    band = torch.bucketize(r + 1e-12, begins, right=True) - 1
    return torch.stack([(band == b) * twice for b in range(len(BANDS))])


def band_squares(
    prediction: Fields, truth: Fields, context: Context
) -> Float[Tensor, "sample 2 band"]:
    """E and U of each sample in each band."""
    axes = tuple(range(-context.grid.n_dim, 0))
    weights = band_weights(context.grid).to(truth.device)
    sums = []
    for field in (prediction - truth, truth):
        squares = torch.fft.rfftn(field, dim=axes, norm="ortho").abs().square().sum((1, 2))
        sums.append(torch.einsum("s...,b...->sb", squares, weights))
    return torch.stack(sums, dim=1)


def band_l2(sums: ErrorSums) -> dict[str, float]:
    """Mean over s of √(E_b(s) / U_b(s)): the error in band b against the band's own size.

    A band in which the truth has next to nothing, as smooth fields in the high one, may have an
    error far above 1; `band_share` says how much it matters.
    """
    error, target = sums.rows(band_squares).unbind(1)
    return _named(relative(error, target).mean(0))


def band_share(sums: ErrorSums) -> dict[str, float]:
    """Mean over s of √(E_b(s) / U(s)): what band b adds to the relative L2 error.

    For each sample the squares add up to the square of the relative L2 error.
    """
    error, target = sums.rows(band_squares).unbind(1)
    return _named(relative(error, target.sum(1, keepdim=True).expand_as(error)).mean(0))


def _named(values: Tensor) -> dict[str, float]:
    return dict(zip(BANDS, values.tolist(), strict=True))


METRICS.register("band_l2")(
    Metric("error within each frequency band", band_l2, "%", gather=band_squares)
)
METRICS.register("band_share")(
    Metric("share of each frequency band in the error", band_share, "%", gather=band_squares)
)
