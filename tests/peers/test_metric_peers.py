"""Our metrics against neuraloperator's and scipy's own."""

import numpy as np
import pytest
import torch
from scipy import stats

from sfo.evaluation import ErrorSums, compare, count_flops
from sfo.evaluation.metrics import neuralop_l2
from sfo.grid import Grid

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
neuralop = pytest.importorskip("neuralop")


def sums_of(prediction, truth, components=2):
    shape = tuple(truth.shape[2:])
    grid = Grid(shape, (0.0,) * len(shape), (1.0,) * len(shape))
    sums = ErrorSums(components=components, n_times=truth.shape[1] // components, grid=grid)
    for p, y in zip(prediction.split(2), truth.split(2), strict=True):
        sums.update(p, y)
    return sums


@pytest.mark.parametrize("shape", [(20,), (11, 20), (5, 6, 7)])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_lp_loss(shape, reduction):
    """Channel by channel, summed or averaged; a zero channel included."""
    truth = torch.randn(5, 6, *shape, dtype=torch.float64)
    truth[0, 0] = 0
    prediction = truth + 0.1 * torch.randn_like(truth)
    loss = neuralop.LpLoss(d=len(shape), p=2, reduction=reduction)
    ours = neuralop_l2(sums_of(prediction, truth), reduction)
    assert ours == pytest.approx(float(loss(prediction, truth)), rel=1e-12)


def test_lp_loss_over_channels_is_the_papers_metric():
    """With the channels in the norm, d = n_dim + 1, up to the 10⁻⁸ in its denominator."""
    truth = torch.randn(5, 6, 11, 20, dtype=torch.float64)
    prediction = truth + 0.1 * torch.randn_like(truth)
    loss = neuralop.LpLoss(d=3, p=2, reduction="mean")
    errors = sums_of(prediction, truth).errors()
    assert errors.relative_l2 == pytest.approx(float(loss(prediction, truth)), rel=1e-8)


def test_flops_of_an_fno_layer():
    """Two real transforms of d channels, and d² complex products at each kept frequency."""
    d, n, modes, batch = 4, 32, 12, 3
    layer = neuralop.layers.spectral_convolution.SpectralConv(d, d, n_modes=(modes,), bias=False)
    v = torch.randn(batch, d, n)
    with torch.no_grad():
        flops = count_flops(lambda: layer(v))
    kept = modes // 2 + 1
    assert flops == 2 * batch * d * (5 * n * 5) // 2 + 8 * batch * d * d * kept


def test_bootstrap_against_scipy():
    """The same quantiles from other draws, to a few hundredths of the interval."""
    generator = np.random.default_rng(0)
    x, y = generator.lognormal(size=(2, 200))
    ours = compare(x, y, resamples=20_000)
    theirs = stats.bootstrap(
        (x - y,), np.mean, n_resamples=20_000, method="percentile", rng=generator
    ).confidence_interval
    width = theirs.high - theirs.low
    assert (ours.lower, ours.upper) == pytest.approx(tuple(theirs), abs=0.05 * width)
