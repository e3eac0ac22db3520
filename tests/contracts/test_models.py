"""What every registered model promises."""

from inspect import signature

import pytest
import torch

from sfo.registry import MODELS

SMALL = {
    "deeponet": dict(harmonics=8, n_functions=32, hidden_channels=32, branch_layers=1),
    "fno": dict(n_modes=8, hidden_channels=16, n_layers=2),
    "mno": dict(hidden_channels=24, n_layers=1, n_states=4),
    "mpnn": dict(hidden_channels=32, n_layers=1, radius=1),
    "pino": dict(n_modes=8, hidden_channels=16, n_layers=2),
    "sfo": dict(n_modes=6, hidden_channels=16, n_layers=2),
    "svd_no": dict(n_modes=4, hidden_channels=64, n_layers=2, network_layers=1),
    "transolver": dict(hidden_channels=32, n_layers=1, n_heads=16, n_slices=32),
    # Batch normalisation mixes the samples of a batch in training.
    "unet": dict(hidden_channels=8, n_levels=2, norm="group"),
    "uno": dict(n_modes=(12, 6, 6, 6, 12), hidden_channels=16),
}
# Models of other libraries are tested where these are installed, in tests/peers.
NAMES = [name for name in MODELS.names() if MODELS[name].extra is None]


def small(name, in_channels, out_channels, shape):
    """A small model; one that must know its grid is told."""
    kind = MODELS[name]
    grid = {"train_shape": shape} if "train_shape" in signature(kind).parameters else {}
    return kind(in_channels, out_channels, len(shape), **grid, **SMALL[name])


@pytest.mark.parametrize("name", NAMES)
def test_learns_two_samples(name):
    """Two samples by heart, to 1 % in relative L2."""
    torch.manual_seed(1)
    model = small(name, 1, 2, (32,))
    a, u = torch.randn(2, 1, 32), torch.randn(2, 2, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 600)
    for _ in range(600):
        optimizer.zero_grad()
        loss = ((model(a) - u).flatten(1).norm(dim=1) / u.flatten(1).norm(dim=1)).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    assert loss < 0.01


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_weights(name):
    weights = []
    for _ in range(2):
        torch.manual_seed(7)
        weights.append(small(name, 1, 1, (32,)).state_dict())
    assert all(torch.equal(weights[0][k], weights[1][k]) for k in weights[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(17,), (8, 11), (6, 8, 7)])
def test_odd_and_unequal_axes(name, shape):
    """The output of a sample does not depend on the others in its batch."""
    model = small(name, 2, 3, shape)
    a = torch.randn(3, 2, *shape)
    u = model(a)
    assert u.shape == (3, 3, *shape)
    torch.testing.assert_close(model(a[1:2]), u[1:2])
