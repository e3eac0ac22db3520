"""What every registered model promises."""

import pytest
import torch

from sfo.registry import MODELS

SMALL = {
    "fno": dict(n_modes=8, hidden_channels=16, n_layers=2),
    "sfo": dict(n_modes=6, hidden_channels=16, n_layers=2),
    # Batch normalisation mixes the samples of a batch in training.
    "unet": dict(hidden_channels=8, n_levels=2, norm="group"),
    "uno": dict(n_modes=(12, 6, 6, 6, 12), hidden_channels=16),
}
# Models of other libraries are tested where these are installed, in tests/peers.
NAMES = [name for name in MODELS.names() if MODELS[name].extra is None]


@pytest.mark.parametrize("name", NAMES)
def test_learns_two_samples(name):
    """Two samples by heart, to 1 % in relative L2."""
    torch.manual_seed(1)
    model = MODELS[name](1, 2, **SMALL[name])
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
        weights.append(MODELS[name](1, 1, **SMALL[name]).state_dict())
    assert all(torch.equal(weights[0][k], weights[1][k]) for k in weights[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(17,), (8, 11), (6, 8, 7)])
def test_odd_and_unequal_axes(name, shape):
    """The output of a sample does not depend on the others in its batch."""
    model = MODELS[name](2, 3, len(shape), **SMALL[name])
    a = torch.randn(3, 2, *shape)
    u = model(a)
    assert u.shape == (3, 3, *shape)
    torch.testing.assert_close(model(a[1:2]), u[1:2])
