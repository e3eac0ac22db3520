"""Pointwise work in tiles gives what it gives at once."""

import pytest
import torch

from sfo import SFO
from sfo.models import tiles


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """Tiles of 48 points, also for small fields: one of 144 points and more has several."""
    monkeypatch.setattr(tiles, "POINTS", 48)
    monkeypatch.setattr(tiles, "LARGE", 1)


@pytest.mark.parametrize(("n_dim", "shape"), [(1, (200,)), (2, (12, 15)), (3, (6, 5, 8))])
@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("threads", [1, 2])
def test_prediction_in_tiles_is_the_same(n_dim, shape, gate, threads, monkeypatch):
    monkeypatch.setattr(tiles.torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(tiles, "PER_THREAD", 2)
    torch.manual_seed(0)
    model = SFO.recommended(1, 4, n_dim, n_modes=4, train_shape=shape, gate=gate).double().eval()
    a = torch.randn(3, 1, *shape, dtype=torch.float64)
    whole = model(a)  # with gradients, so not in tiles
    with torch.no_grad():
        torch.testing.assert_close(model(a), whole, rtol=1e-13, atol=1e-13)


def test_hooks_see_whole_fields():
    model = SFO.recommended(1, 4, n_modes=4, train_shape=(200,)).eval()
    seen = []
    model.layers[0].update.outer.register_forward_hook(lambda *call: seen.append(call[2].shape))
    with torch.no_grad():
        model(torch.randn(3, 1, 200))
    assert seen == [(3, 32, 200)]


@pytest.mark.parametrize(("threads", "sizes"), [(1, [48, 48, 48, 48, 11]), (3, [192, 11])])
def test_each_point_is_done_once(threads, sizes, monkeypatch):
    """In tiles of 48 of the 203 points; several threads share up to twelve at a time."""
    monkeypatch.setattr(tiles.torch, "get_num_threads", lambda: threads)
    v = torch.randn(2, 3, 7, 29)
    done = []

    def double(v):
        done.append(v.numel() // 3)
        return 2 * v[:, :1]

    with torch.no_grad():
        out = tiles.in_tiles(double, v, modules=())
    assert torch.equal(out, 2 * v[:, :1])
    assert done == sizes * 2
