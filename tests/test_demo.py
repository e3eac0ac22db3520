import math

import pytest
import torch

from sfo import demo
from sfo.models import SFO


def test_burgers_solution_satisfies_the_equation():
    """∂ₜu + u ∂ₓu − ν ∂ₓₓu = 0, with spectral derivatives in x and a fine difference in t."""
    equation = demo.Burgers()
    u0 = equation.initial_states(3, 256, seed=1)
    h = 1e-4
    before, u, after = equation.solve(u0, torch.tensor([0.3 - h, 0.3, 0.3 + h])).unbind(1)
    wave = 2j * math.pi * torch.arange(129, dtype=torch.float64)
    u_hat = torch.fft.rfft(u)
    u_x, u_xx = torch.fft.irfft(wave * u_hat, 256), torch.fft.irfft(wave**2 * u_hat, 256)
    residual = (after - before) / (2 * h) + u * u_x - equation.viscosity * u_xx
    assert residual.abs().max() < 1e-5 * (u * u_x).abs().max()


def test_demo_learns_and_writes_what_it_promises(tmp_path, capsys):
    error = demo.run(tmp_path, epochs=6, samples=64)
    assert error < 40
    for name in ("prediction.png", "kernel.png", "coefficients.png"):
        assert (tmp_path / name).stat().st_size > 10_000
    assert isinstance(SFO.from_pretrained(tmp_path / "model"), SFO)
    assert "Test error" in capsys.readouterr().out


@pytest.mark.slow
def test_demo_at_full_length_is_accurate(tmp_path):
    assert demo.run(tmp_path) < 2
