import torch

from sfo.models import FNO, PINO


def test_shallow_water_with_velocities_has_the_parameters_it_says():
    with torch.device("meta"):
        model = PINO.from_paper("shallow_water", in_channels=2, out_channels=303)
    assert sum(p.numel() for p in model.parameters()) == 504_355


def test_is_an_fno_with_the_same_weights(tmp_path):
    """Before training they are one model, and come back from disk as what they were."""
    a, outputs = torch.randn(2, 1, 32), []
    for kind in (FNO, PINO):
        torch.manual_seed(3)
        model = kind(1, 4, n_modes=4, hidden_channels=6)
        loaded = kind.from_pretrained(model.save_pretrained(tmp_path / kind.__name__))
        assert type(loaded) is kind
        outputs.append(loaded(a))
    assert torch.equal(*outputs)
