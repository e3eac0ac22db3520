"""Costs against counts by hand."""

import math
import shutil
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sfo import SFO
from sfo.evaluation import count_flops, count_parameters, measure_cost, training_memory
from sfo.models.kernel import SpectralKernel
from sfo.models.kernel_modes import KernelModes, KernelOptions

linux = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="the system does not tell"
)


class Exponentials(nn.Module):
    """exp(w v) again and again: every application keeps its result for the backward pass."""

    def __init__(self, times):
        super().__init__()
        self.times, self.weight = times, nn.Parameter(torch.tensor(0.1))

    def forward(self, v):
        v = v * self.weight
        for _ in range(self.times):
            v = v.exp().neg()
        return v


def test_complex_parameters_count_once_or_twice():
    model = nn.ParameterList([torch.zeros(3, 2), torch.zeros(5, dtype=torch.complex64)])
    assert (count_parameters(model), count_parameters(model, complex_counts=2)) == (11, 16)


def test_shared_parameters_count_once():
    layer = nn.Linear(3, 4)
    assert count_parameters(nn.Sequential(layer, layer)) == 3 * 4 + 4


def test_linear_forward_and_backward():
    """Y = X W: 2 b i o; backward X' = Y' Wᵀ and W' = Xᵀ Y', each as much again."""
    layer, x = nn.Linear(3, 5), torch.ones(7, 3, requires_grad=True)
    assert count_flops(lambda: layer(x)) == 2 * 7 * 3 * 5
    assert count_flops(lambda: layer(x).sum().backward()) == 3 * (2 * 7 * 3 * 5)


def test_convolution():
    layer = nn.Conv2d(3, 4, 5)
    assert count_flops(lambda: layer(torch.ones(2, 3, 9, 8))) == 2 * 2 * (5 * 4) * (3 * 25) * 4


@pytest.mark.parametrize("shape", [(64,), (16, 4), (4, 8, 2)])
def test_transforms(shape):
    """64 points in any arrangement: 5 · 64 · 6 each, and half of it for real ones."""
    v = torch.randn(3, *shape)
    axes = tuple(range(1, v.ndim))
    there = count_flops(lambda: torch.fft.rfftn(v, dim=axes))
    v_hat = torch.fft.rfftn(v, dim=axes)
    back = count_flops(lambda: torch.fft.irfftn(v_hat, s=shape, dim=axes))
    full = torch.complex(v, v)
    assert there == back == 3 * 5 * 64 * 6 // 2
    assert count_flops(lambda: torch.fft.ifftn(full, dim=axes)) == 3 * 5 * 64 * 6


def test_complex_products_are_four_real_ones():
    """An FNO's mixing of channels: a complex multiplication and addition are 8 operations."""
    v_hat, weight = torch.randn(2, 3, 6, dtype=torch.cfloat), torch.randn(3, 4, 6).cfloat()
    flops = count_flops(lambda: torch.einsum("bik,iok->bok", v_hat, weight))
    assert flops == 8 * 6 * (2 * 3 * 4)


def test_attention_is_two_products():
    """Q Kᵀ and its product with V, 2 n² d each, for 2 × 4 heads."""
    q = torch.randn(2, 4, 6, 8)
    flops = count_flops(lambda: F.scaled_dot_product_attention(q, q, q))
    assert flops == 2 * 4 * 2 * (2 * 6 * 6 * 8)


def test_lstm():
    """Four gates of h cells see the i inputs and the h states at each of 7 steps."""
    layer, x = nn.LSTM(3, 5, batch_first=True), torch.randn(2, 7, 3)
    with torch.no_grad():
        assert count_flops(lambda: layer(x)) == 2 * 7 * 2 * (4 * 5) * (3 + 5)


def test_spectral_kernel():
    """Two transforms of d channels; K̂ = Σ Θₗ φ̂ₗ at n/2 + 1 frequencies; K̂ v̂ as real products.

    The backward pass builds K̂ again, transforms twice, and forms dv̂, dK̂ and dΘ.
    """
    batch, d, modes, n = 3, 4, 5, 32
    frequencies = n // 2 + 1
    kernel = SpectralKernel(d, KernelModes(KernelOptions(modes)))
    v = torch.randn(batch, d, n, requires_grad=True)
    kernel(v)
    transforms = 2 * batch * d * (5 * n * int(math.log2(n))) // 2
    build = frequencies * 2 * (2 * modes * d * d)
    mix = frequencies * 8 * batch * d * d
    assert count_flops(lambda: kernel(v)) == transforms + build + mix
    both = count_flops(lambda: kernel(v).sum().backward())
    assert both == 2 * transforms + 3 * build + 3 * mix


def test_orbits_save_matrices():
    """In 3D the frequencies share their K̂: the counter sees what is executed, far fewer."""
    kernel = SpectralKernel(4, KernelModes(KernelOptions(5, 3)))
    v = torch.randn(1, 4, 16, 16, 16)
    spectrum = kernel.modes.spectrum((16, 16, 16), v.dtype, v.device)
    with torch.no_grad():
        flops = count_flops(lambda: kernel(v))
    transforms = 2 * 4 * (5 * 16**3 * 12) // 2
    mix = 16 * 16 * 9 * 8 * 4 * 4
    assert flops == transforms + mix + len(spectrum.phi_hat) * 2 * (2 * 5 * 4 * 4)
    assert len(spectrum.phi_hat) < 16 * 16 * 9 / 4


@linux
@pytest.mark.new_interpreter
def test_training_memory_is_what_the_step_keeps():
    """Ten fields of 16 MB; û − u; and where its gradient begins one more, with its factor."""
    field = torch.zeros(2, 1, 2**21)
    grown = training_memory(Exponentials(10), field, field + 1)
    assert grown == pytest.approx(13 * 2**24, rel=0.03)


def test_the_cost_of_a_model():
    model = SFO(1, 4, n_modes=5, hidden_channels=8, n_layers=2)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    cost = measure_cost(model, torch.randn(6, 1, 32), torch.randn(6, 4, 32), repeats=2)
    assert cost.parameters == cost.real_parameters == sum(p.numel() for p in model.parameters())
    assert 2 * cost.flops < cost.training_flops < 4 * cost.flops
    assert min(cost.training_seconds, cost.samples_per_second) > 0
    assert (cost.batch_size, cost.device) == (6, "cpu")
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert model.training


def test_a_shared_kernel_is_cheaper_by_the_batch():
    """K̂ is built once a batch, so the cost of a sample falls by its share of K̂."""
    d, modes, n = 8, 5, 32
    kernel = SpectralKernel(d, KernelModes(KernelOptions(modes)))

    def flops(batch):
        return count_flops(lambda: kernel(torch.randn(batch, d, n))) / batch

    kernel(torch.randn(1, d, n))
    build = (n // 2 + 1) * 2 * (2 * modes * d * d)
    assert flops(1) - flops(4) == build * (1 - 1 / 4)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="one batch"):
        measure_cost(nn.Linear(2, 2), torch.ones(2, 2), torch.ones(3, 2))


@linux
def test_a_process_that_fails_says_so(monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(RuntimeError, match="could not be repeated in a fresh process"):
        training_memory(Exponentials(1), torch.ones(1, 1, 4), torch.ones(1, 1, 4))
