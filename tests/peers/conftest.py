"""Peers must not change what other tests rely on."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _default_dtype():
    """Importing fdtd sets torch's default dtype, and its gradient mode, for the whole process."""
    dtype, gradients = torch.get_default_dtype(), torch.is_grad_enabled()
    yield
    torch.set_default_dtype(dtype)
    torch.set_grad_enabled(gradients)
