from math import prod

import pytest
import torch
from torch.nn import functional as F

from sfo.models import UNO
from sfo.models.blocks import Pointwise, coordinates
from sfo.models.spectral_conv import FourierModes, SpectralConv
from sfo.models.uno import resample
from sfo.models.uno_upstream import OverlappingConv, cut_spectrum


def test_norms_in_every_block_have_the_parameters_they_say():
    with torch.device("meta"):
        model = UNO.from_paper("allen_cahn", norm="all")
    assert sum(p.numel() for p in model.parameters()) == 109_571


def test_the_four_problems_on_one_axis_share_their_settings():
    names = ("allen_cahn", "diffusion_sorption", "diffusion_reaction", "cahn_hilliard")
    assert all(UNO.PAPER[name] == UNO.PAPER["allen_cahn"] for name in names)


@pytest.mark.parametrize(("grid", "shape"), [((12,), (20,)), ((16, 9), (8, 14)), ((9,), (7,))])
def test_convolution_samples_the_same_function_on_another_grid(grid, shape):
    """W(k) = 1 for all kept k: a band-limited field is read on one grid, written on another."""

    def field(shape):
        lines = [2 * torch.pi * torch.arange(n, dtype=torch.float64) / n for n in shape]
        x = torch.stack(torch.meshgrid(*lines, indexing="ij"))
        return (1 + torch.cos(2 * x[0] - x[-1] + 0.3) + torch.sin(x.sum(0)))[None, None]

    conv = SpectralConv(1, 1, FourierModes((3,) * len(grid))).double()
    torch.nn.init.ones_(conv.weight)
    torch.testing.assert_close(conv(field(grid), shape), field(shape))


@pytest.mark.parametrize(
    ("grid", "shape"),
    [((21,), (10,)), ((10, 8), (20, 17)), ((12, 9), (6, 4)), ((9, 8, 7), (4, 4, 3))],
)
def test_interpolation_and_pointwise_maps_commute(grid, shape):
    mix = Pointwise(3, 2).double()
    v = torch.randn(2, 3, *grid, dtype=torch.float64)
    torch.testing.assert_close(mix(resample(v, shape)), resample(mix(v), shape))


@pytest.mark.parametrize("shape", [(5, 4, 6), (9, 12, 8), (4, 5, 4), (16, 18, 16)])
def test_three_axes_are_filtered_before_they_are_interpolated(shape):
    """Frequencies −n/2 ≤ k < n/2 of the new grid pass, along the last axis 0 ≤ k < n/2."""
    grid = (9, 8, 7)
    v = torch.randn(2, 2, *grid, dtype=torch.float64)
    passes = torch.zeros(grid[0], grid[1], grid[2] // 2 + 1)
    a, b, c = (n // 2 for n in shape)
    for rows in (slice(None, a), slice(-a, None)):
        for columns in (slice(None, b), slice(-b, None)):
            passes[rows, columns, :c] = 1
    smooth = torch.fft.irfftn(torch.fft.rfftn(v, dim=(2, 3, 4)) * passes, s=grid, dim=(2, 3, 4))
    truth = F.interpolate(smooth, shape, mode="trilinear", align_corners=True)
    torch.testing.assert_close(resample(v, shape), truth)


def test_end_points_stay_where_they_are():
    """Linear interpolation reproduces a straight line, both ends included."""
    line = torch.linspace(2, 5, 17, dtype=torch.float64)
    short = torch.linspace(2, 5, 9, dtype=torch.float64)
    torch.testing.assert_close(resample(line[None, None], [9])[0, 0], short)


def test_model_is_the_formula_in_plain_torch():
    """Five blocks on n, n/2, n/4, n/4, n/2, n points and their skips, written out."""
    n_modes = (4, 3, 2, 3, 5)
    model = UNO(2, 3, n_modes=n_modes, hidden_channels=4, padding=3, norm="inner").double()
    for block in model.blocks:
        if not isinstance(block.norm, torch.nn.Identity):
            torch.nn.init.normal_(block.norm.weight)
            torch.nn.init.normal_(block.norm.bias)
    a = torch.randn(2, 2, 20, dtype=torch.float64)

    def linear(v, part):
        return F.linear(v.mT, part.weight, part.bias).mT

    def block(i, v, n):
        part, m = model.blocks[i], n_modes[i]
        out_hat = torch.zeros(2, part.skip.out_features, n // 2 + 1, dtype=torch.complex128)
        v_hat = torch.fft.rfft(v, norm="forward")[..., :m]
        out_hat[..., :m] = torch.einsum("bik,kio->bok", v_hat, part.spectral.weight)
        v = torch.fft.irfft(out_hat, n=n, norm="forward") + F.interpolate(
            linear(v, part.skip), n, mode="linear", align_corners=True
        )
        if i in (1, 3):
            v = F.instance_norm(v, weight=part.norm.weight, bias=part.norm.bias)
        return F.gelu(v)

    v0 = F.gelu(linear(torch.cat([a, coordinates(a)], 1), model.lift[0].mix))
    v0 = F.pad(F.gelu(linear(v0, model.lift[2])), (0, 3))
    v1 = block(0, v0, 11)
    v4 = block(3, block(2, block(1, v1, 5), 5), 11)
    v5 = block(4, torch.cat([v4, v1], 1), 23)
    v = torch.cat([v5, v0], 1)[..., :20]
    truth = linear(F.gelu(linear(v, model.project[0])), model.project[2])
    torch.testing.assert_close(model(a), truth)


def test_weights_start_with_the_variance_of_the_reference():
    """E|W|² = 1 / (2 · in_channels): gain 1/2 for a block's spectral part."""
    weight = UNO(1, 1, 2, hidden_channels=16).blocks[0].spectral.weight.detach()
    assert abs(weight.abs().square().mean() * 2 * 16 - 1) < 0.05
    assert weight.numel() == prod((22, 11, 16, 32))


def test_half_precision_input_under_autocast():
    """Spectral and interpolated parts are computed in single precision."""
    model = UNO(1, 2, 2, n_modes=(3, 2, 2, 2, 3), hidden_channels=8, norm=None)
    a = torch.randn(2, 1, 12, 10)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        u = model(a)
    assert (u - model(a)).norm() < 0.02 * model(a).norm()


def test_too_small_a_grid_is_named():
    with pytest.raises(ValueError, match="at least 4 points along each axis"):
        UNO(1, 1, padding=0)(torch.ones(1, 1, 3))


def wave(shape, axis, frequency):
    """cos 2πkx/n along one axis."""
    n = shape[axis]
    line = torch.cos(2 * torch.pi * frequency * torch.arange(n, dtype=torch.float64) / n)
    return line.view(-1, *[1] * (len(shape) - 1 - axis)).expand(shape)[None, None].contiguous()


@pytest.mark.parametrize(("grid", "shape"), [((9,), (12,)), ((8, 9), (12, 6)), ((8, 7, 6),) * 2])
def test_upstream_convolves_alike_where_no_modes_overlap(grid, shape):
    modes = FourierModes((3,) * len(grid))
    ours = SpectralConv(2, 3, modes).double()
    theirs = OverlappingConv(2, 3, modes).double()
    theirs.load_state_dict(ours.state_dict())
    v = torch.randn(2, 2, *grid, dtype=torch.float64)
    torch.testing.assert_close(theirs(v, shape), ours(v, shape))


def test_upstream_takes_one_frequency_for_another_where_modes_overlap():
    """From 8 to 4 points with m = 3, the entry of k = −3 is written where k = 1 belongs."""
    conv = OverlappingConv(1, 1, FourierModes((3, 1, 1))).double()
    torch.nn.init.ones_(conv.weight)
    out = conv(wave((8, 6, 6), 0, 3), (4, 6, 6))
    torch.testing.assert_close(out, 0.5 * wave((4, 6, 6), 0, 1))
    ours = SpectralConv(1, 1, FourierModes((3, 1, 1))).double()
    ours.load_state_dict(conv.state_dict())
    assert ours(wave((8, 6, 6), 0, 3), (4, 6, 6)).abs().max() < 1e-12


def test_upstream_changes_grids_with_a_wrong_factor_and_one_sign_of_frequencies():
    """8³ to 4³ points: N/N' = 8 times the wave, half of it along axes that lose k = −1."""
    for axis, factor in ((0, 4), (1, 4), (2, 8)):
        out = cut_spectrum(wave((8, 8, 8), axis, 1), (4, 4, 4))
        torch.testing.assert_close(out, factor * wave((4, 4, 4), axis, 1))
        # On a larger grid the entry of k = −1, the eighth, is that of k = 7.
        out = cut_spectrum(wave((8, 8, 8), axis, 1), (16, 16, 16)) * 8
        expected = wave((16, 16, 16), axis, 1)
        if axis < 2:
            expected = (expected + wave((16, 16, 16), axis, 7)) / 2
        torch.testing.assert_close(out, expected)


@pytest.mark.parametrize("n_dim", [1, 2, 3])
def test_upstream_differs_on_three_axes_only(n_dim):
    settings = dict(n_modes=(3, 2, 2, 2, 3), hidden_channels=4, padding=0)
    ours, theirs = (UNO(1, 2, n_dim, **settings, upstream=up) for up in (False, True))
    theirs.load_state_dict(ours.state_dict(), check_options=False)
    a = torch.randn(2, 1, *[16] * n_dim)
    difference = ((theirs(a) - ours(a)).norm() / ours(a).norm()).item()
    assert difference > 0.01 if n_dim == 3 else difference < 1e-5


def test_upstream_refuses_modes_that_a_grid_does_not_have():
    model = UNO(1, 1, n_modes=(3, 2, 2, 2, 3), padding=0, upstream=True)
    with pytest.raises(ValueError, match=r"`n_modes` must be at most \[2\] between"):
        model(torch.ones(1, 1, 5))
