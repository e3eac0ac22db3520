"""Settings for all tests: shape annotations are checked, one thread a process, fixed seeds."""

import pytest
import torch
from jaxtyping import install_import_hook

# Not the modules whose own checks are tested with bad arguments: those must answer first.
CHECKED = ["sfo.bases", "sfo.fft", "sfo.spectral_mix", "sfo.models.blocks"]
with install_import_hook(CHECKED, "beartype.beartype"):
    import sfo  # noqa: F401

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
