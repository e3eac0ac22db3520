"""The published radial dam break: its numbers, its 81 samples, and exact planar dams."""

import numpy as np
import pytest
import torch
from stoker import cell_means

from sfo.pdes.shallow_water.radial_dam_break import RadialDamBreak
from sfo.pdes.shallow_water.roe_sweep import sweep

DAM = RadialDamBreak()
NEARLY_DRY = torch.cat([torch.full((1, 1, 32, 4), depth) for depth in (2.0, 1e-5)], dim=2)


@pytest.fixture(scope="module")
def published():
    """The 1,000 initial states of the published set."""
    return torch.stack([DAM.initial(DAM.published_radius(i), DAM.grid()) for i in range(1000)])


@pytest.fixture(scope="module")
def sample():
    """All frames of the first sample."""
    h = DAM.initial(DAM.published_radius(0), DAM.grid())[None]
    return DAM.solve(h, torch.linspace(0, 1, 101))


def test_radii_are_the_published_ones():
    """As recorded in the published file."""
    assert DAM.published_radius(0) == pytest.approx(0.5195254, abs=5e-8)
    assert DAM.published_radius(1) == pytest.approx(0.4668088, abs=5e-8)


def test_only_81_samples_differ(published):
    """Larger radii hold more cells: equal volumes are equal states. The test set is no news."""
    volumes = published.sum((1, 2, 3))
    assert len(volumes.unique()) == 81
    assert len(volumes[:900].unique()) == 81


def test_early_depths_have_the_recorded_mean_and_deviation(published):
    """Frames 0..9 of all samples: 1.03253 and 0.16530; the real file has 1.0327 and 0.1656."""
    _, which, counts = np.unique(published.sum((1, 2, 3)), return_index=True, return_counts=True)
    # In nine steps nothing comes out of the middle 80 × 80 cells of the same size.
    middle = RadialDamBreak(lower=(-1.5625, -1.5625), upper=(1.5625, 1.5625))
    rise = middle.solve(published[which][..., 24:104, 24:104], torch.linspace(0, 0.09, 10)) - 1
    assert rise[..., 0, :].abs().max() == 0
    weights = torch.from_numpy(counts / 1000 * 80**2 / 128**2)
    mean, square = (float(weights @ x.mean((1, 2, 3, 4))) for x in (rise, rise**2))
    assert 1 + mean == pytest.approx(1.0325347, abs=1e-6)
    assert (square - mean**2) ** 0.5 == pytest.approx(0.1653030, abs=1e-6)


def test_mass_is_conserved(sample):
    """The waves have not reached the boundary, and nothing is lost inside."""
    mass = sample.mean((-2, -1))
    assert (mass - mass[:, :1]).abs().max() < 1e-12
    assert (sample[..., :10, :] - 1).abs().max() < 1e-12


def test_mirror_images_agree(sample):
    """Left and right, front and back are alike."""
    assert (sample - sample.flip(-1)).abs().max() < 1e-13
    assert (sample - sample.flip(-2)).abs().max() < 1e-13


def test_x_goes_first(sample):
    """The splitting shows, as in the published set: x and y differ by 0.025 at most."""
    assert (sample - sample.mT).abs().max() == pytest.approx(0.025, abs=0.001)
    h = sample[0, 0, 0].numpy().copy()
    hu, hv = np.zeros_like(h), np.zeros_like(h)
    sweep(h.T, hu.T, hv.T, 0.01 * 128 / 5, 1.0)
    sweep(h, hv, hu, 0.01 * 128 / 5, 1.0)
    assert torch.equal(DAM.solve(sample[:, 0], [0.0, 0.01])[0, 1, 0], torch.from_numpy(h))


def test_planar_dams_converge_to_stoker():
    """In x and in y alike, at the first order that a bore allows."""
    errors = []
    for n in (64, 128, 256):
        dam = RadialDamBreak(lower=(-2.5, 0.0), upper=(2.5, 20 / n), time_step=1.28 / n)
        x, _ = dam.grid((n, 4)).mesh()
        h = torch.where(x < 0, 2.0, 1.0)[None, None]
        along_x = dam.solve(h, [0.0, 1.28])[0, 1, 0]
        turned = RadialDamBreak(lower=(0.0, -2.5), upper=(20 / n, 2.5), time_step=1.28 / n)
        assert (turned.solve(h.mT, [0.0, 1.28])[0, 1, 0].mT - along_x).abs().max() < 1e-13
        exact = torch.from_numpy(cell_means(n, -2.5, 2.5, 1.28, 2.0, 1.0)[0])
        errors.append(float((along_x[:, 0] - exact).abs().mean()))
    assert errors[0] / errors[2] > 4**0.8
    assert errors[2] < 0.002


def test_bores_stand_and_their_reverse_does_not():
    """Equal fluxes on both sides: water may jump up and stay so, but must not jump down."""
    up = np.repeat([[1.0, 2.0]], 50, axis=1)
    for h, stays in ((up.copy(), True), (up[:, ::-1].copy(), False)):
        start = h.copy()
        # hu² + g h²/2 is the same at depths 1 and 2 with the same hu = √3.
        normal, transverse = np.full_like(h, 3**0.5), np.zeros_like(h)
        for _ in range(40):
            sweep(h, normal, transverse, 0.3, 1.0)
        if stays:
            np.testing.assert_allclose(h, start, atol=1e-12)
        else:
            assert np.abs(np.diff(h)).max() < 0.15


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(initial=torch.zeros(1, 1, 8, 8)), "wet everywhere"),
        (dict(initial=torch.ones(1, 3, 8, 8)), r"\(sample, 1, X, Y\)"),
        (dict(initial=NEARLY_DRY, times=[0.0, 0.5]), "Roe's waves leave a cell dry"),
        (dict(times=[0.0, 0.015]), "whole numbers of time_step=0.01"),
        (dict(times=[0.0, -0.01]), "increasing"),
        (dict(initial=torch.ones(1, 1, 8, 1024)), "Courant number of 2.05. Pass time_step=0.002"),
    ],
)
def test_bad_input_is_refused(change, message):
    """The message names the argument and the rule."""
    arguments = dict(initial=torch.ones(1, 1, 8, 8), times=np.array([0.0, 0.01]))
    with pytest.raises(ValueError, match=message):
        DAM.solve(**{**arguments, **change})
