import pytest
import torch

from sfo.models import FNO, PINO


@pytest.mark.parametrize(
    ("benchmark", "count"),
    [
        ("allen_cahn", 300_325),
        ("diffusion_sorption", 300_325),
        ("diffusion_reaction", 300_325),
        ("cahn_hilliard", 300_325),
        ("shallow_water", 478_277),
        ("maxwell", 3_287_780),
    ],
)
def test_presets_have_the_papers_parameters(benchmark, count):
    with torch.device("meta"):
        model = PINO.from_paper(benchmark)
    assert sum(p.numel() for p in model.parameters()) == count


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
