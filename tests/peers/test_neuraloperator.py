"""SFO inside neuraloperator's own training loop, unmodified."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from sfo import SFO

pytestmark = pytest.mark.peers


class Pairs(Dataset):
    """Smooth random fields and their derivatives, in neuraloperator's format."""

    def __init__(self, samples, seed):
        generator = torch.Generator().manual_seed(seed)
        k = torch.arange(1, 4)
        c = torch.randn(samples, 2, 3, generator=generator)
        x = 2 * torch.pi * k[:, None] * torch.arange(32) / 32
        self.x = (c[:, 0] @ x.sin() + c[:, 1] @ x.cos())[:, None]
        self.y = ((c[:, 0] * k) @ x.cos() - (c[:, 1] * k) @ x.sin())[:, None]

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


@pytest.mark.filterwarnings("ignore")
def test_trains_under_neuraloperators_trainer(tmp_path):
    neuralop = pytest.importorskip("neuralop")
    model = SFO(1, 1, n_modes=8, hidden_channels=16, n_layers=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss = neuralop.LpLoss(d=1)
    trainer = neuralop.Trainer(model=model, n_epochs=15, device="cpu", verbose=False)
    train = DataLoader(Pairs(64, 0), batch_size=16, shuffle=True)
    test = {"test": DataLoader(Pairs(16, 1), batch_size=16)}

    def error():
        batch = next(iter(test["test"]))
        with torch.no_grad():
            return float((model(batch["x"]) - batch["y"]).norm() / batch["y"].norm())

    before = error()
    trainer.train(
        train_loader=train,
        test_loaders=test,
        optimizer=optimizer,
        scheduler=torch.optim.lr_scheduler.StepLR(optimizer, 100),
        regularizer=None,
        training_loss=loss,
        eval_losses={"l2": loss},
        save_every=5,
        save_dir=tmp_path,
    )
    assert error() < 0.3 * before
    resumed = SFO(1, 1, n_modes=8, hidden_channels=16, n_layers=2)
    neuralop.training.load_training_state(tmp_path, save_name="model", model=resumed)
    assert resumed.modes.train_shape == (32,)
