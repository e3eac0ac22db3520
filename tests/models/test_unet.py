import numpy as np
import pytest
import torch

from sfo.models import UNet
from sfo.models.build import build_model


def test_one_level_by_hand():
    """A U-Net of one level and one channel, computed with numpy."""
    model = UNet(1, 1, hidden_channels=1, n_levels=1, norm=None).double()
    weights = {name: p.detach().numpy() for name, p in model.named_parameters()}
    a = np.random.default_rng(0).standard_normal(8)

    def convolve(v, weight):
        """Sum over input channels of correlations with zeros outside, then tanh."""
        around = np.pad(v, ((0, 0), (1, 1)))
        windows = np.stack([around[:, i : i + v.shape[1]] for i in range(3)])
        return np.tanh(np.einsum("oik,kin->on", weight, windows))

    v = a[None]
    v = convolve(convolve(v, weights["down.0.0.weight"]), weights["down.0.3.weight"])
    coarse = v.reshape(1, 4, 2).max(axis=2)
    coarse = convolve(convolve(coarse, weights["down.1.0.weight"]), weights["down.1.3.weight"])
    fine = np.einsum("cn,cok->onk", coarse, weights["widen.0.weight"]).reshape(1, 8)
    fine = np.concatenate([fine + weights["widen.0.bias"], v])
    fine = convolve(convolve(fine, weights["up.0.0.weight"]), weights["up.0.3.weight"])
    truth = weights["project.weight"][0, 0, 0] * fine[0] + weights["project.bias"]
    u = model(torch.from_numpy(a)[None, None]).detach().numpy()[0, 0]
    np.testing.assert_allclose(u, truth, atol=1e-12)


@pytest.mark.parametrize("shape", [(32,), (16, 32), (16, 16, 16)])
def test_commutes_with_shifts_of_a_whole_coarse_cell(shape):
    """On a periodic domain by 16 points, but not by one."""
    settings = dict(hidden_channels=2, boundary="circular", norm="group")
    model = UNet(1, 1, len(shape), **settings).double()
    a = torch.randn(2, 1, *shape, dtype=torch.float64)
    shifted = model(a.roll(16, -1))
    torch.testing.assert_close(shifted, model(a).roll(16, -1))
    assert (model(a.roll(1, -1)) - model(a).roll(1, -1)).abs().max() > 1e-3


@pytest.mark.parametrize("shape", [(20,), (17, 16)])
def test_other_grids_are_continued_by_their_last_value(shape):
    model = UNet(1, 2, len(shape), hidden_channels=2, norm="group").double()
    a = torch.randn(2, 1, *shape, dtype=torch.float64)
    whole = a
    for axis, n in enumerate(shape):
        last = whole.narrow(2 + axis, n - 1, 1)
        whole = torch.cat([whole, *[last] * (-n % 16)], dim=2 + axis)
    inside = (..., *map(slice, shape))
    torch.testing.assert_close(model(a), model(whole)[inside])


def test_coordinates_are_two_more_channels():
    model = UNet(1, 1, 2, hidden_channels=2, n_levels=1, norm=None, coordinates=True)
    plain = UNet(3, 1, 2, hidden_channels=2, n_levels=1, norm=None)
    plain.load_state_dict(model.state_dict())
    a = torch.randn(1, 1, 4, 6)
    x, y = torch.meshgrid(torch.linspace(0, 1, 4), torch.linspace(0, 1, 6), indexing="ij")
    full = torch.cat([a, x[None, None], y[None, None]], dim=1)
    torch.testing.assert_close(model(a), plain(full))


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_only_batch_norm_in_training_looks_at_the_whole_batch(norm):
    model = UNet(1, 1, hidden_channels=2, n_levels=1, norm=norm).double()
    a = torch.randn(4, 1, 8, dtype=torch.float64)
    alone = torch.allclose(model(a[:1]), model(a)[:1])
    assert alone == (norm == "group")
    model.eval()
    torch.testing.assert_close(model(a[:1]), model(a)[:1])


@pytest.mark.parametrize(("points", "levels"), [(8, 2), (9, 3), (16, 3), (17, 4), (64, 4), (2, 1)])
def test_presets_leave_two_points_on_the_coarsest_grid(points, levels):
    """A batch norm cannot train on one number: 2^levels < points, up to the default of 4."""
    assert UNet.on_grid({}, (points, 2)) == {"n_levels": levels}
    facts = dict(in_channels=1, out_channels=1, n_dim=1, train_shape=(points,), hidden_channels=2)
    model = build_model("unet", preset="recommended", **facts)
    if points > 2:
        assert model.train()(torch.randn(1, 1, points)).isfinite().all()
