"""Local operators of the nonlinear equations, against closed forms and the linear theory."""

import math
from functools import partial

import pytest
import torch

from sfo.pdes import AllenCahn, CahnHilliard, DiffusionReaction
from sfo.pdes.derivative import Central, Spectral
from sfo.theory import Stencil, WideStencil, compressibility, implicit_green, local_operator

PDES = [AllenCahn(), DiffusionReaction(), CahnHilliard()]


def axis(pde, n: int) -> torch.Tensor:
    return torch.linspace(pde.lower, pde.upper, n + 1, dtype=torch.float64)[:-1]


def bumpy(pde, n: int) -> torch.Tensor:
    return 0.4 + 0.3 * torch.sin(2 * math.pi * axis(pde, n) / (pde.upper - pde.lower))


def test_constant_states_react_as_written():
    u = torch.full((16,), 0.3, dtype=torch.float64)
    torch.testing.assert_close(AllenCahn().rhs(u), 5 * (u - u**3))
    torch.testing.assert_close(DiffusionReaction().rhs(u), u * (1 - u))
    torch.testing.assert_close(CahnHilliard().rhs(u), 0 * u, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("pde", "width"), [(AllenCahn(), 2e-4 / 5), (CahnHilliard(), 2e-4)])
def test_walls_are_steady(pde, width):
    """u = tanh(x/w) with w² = 2ε/s, or 2γ/m: two walls far apart on the circle."""
    x = axis(pde, 2048)
    w = math.sqrt(width)
    u = torch.tanh((0.5 - x.abs()) / w)
    scale = pde.rhs(0.9 * u).abs().max()
    assert pde.rhs(u).abs().max() < 1e-4 * scale


def test_cahn_hilliard_grows_at_the_linear_rate():
    """About u = 0 a wave of number k grows at 0.01 k² − 1e-6 k⁴."""
    pde, k = CahnHilliard(), 20 * math.pi
    wave = torch.cos(k * axis(pde, 256))
    jacobian = local_operator(pde.rhs, torch.zeros(256, dtype=torch.float64))
    torch.testing.assert_close(jacobian @ wave, (1e-2 * k**2 - 1e-6 * k**4) * wave)


@pytest.mark.parametrize("pde", PDES, ids=lambda pde: type(pde).__name__)
def test_the_local_operator_is_the_derivative(pde):
    """Against a central difference of rhs in a random direction."""
    u = bumpy(pde, 64)
    v = torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    step = 1e-4
    difference = (pde.rhs(u + step * v) - pde.rhs(u - step * v)) / (2 * step)
    product = local_operator(pde.rhs, u) @ v
    assert (product - difference).norm() < 1e-7 * product.norm()


def test_cahn_hilliard_keeps_its_mass_locally():
    pde = CahnHilliard()
    jacobian = local_operator(pde.rhs, bumpy(pde, 64))
    assert jacobian.sum(0).abs().max() < 1e-9 * jacobian.abs().max()


@pytest.mark.parametrize("dt", [0.001, 0.02])
@pytest.mark.parametrize(
    ("pde", "diffusion", "growth"),
    [(AllenCahn(), 1e-4, 5 * (1 - 3 * 0.25)), (DiffusionReaction(), 0.5, 0.0)],
)
def test_constant_states_are_three_point_stencils(pde, diffusion, growth, dt):
    """With central differences: a = 1 − dt f′(u) + 2 dt ν/h², b = −dt ν/h², images round."""
    n, u = 64, 0.5
    h = (pde.upper - pde.lower) / n
    stencil = Stencil(1 - dt * growth + 2 * dt * diffusion / h**2, -dt * diffusion / h**2)
    rhs = partial(pde.rhs, derivatives=Central)
    green = implicit_green(rhs, torch.full((n,), u, dtype=torch.float64), dt)
    t = torch.arange(1 - n // 2, n // 2)
    round_ = sum(stencil.green(t + m * n) for m in range(-300, 301))
    torch.testing.assert_close(green, round_.expand(n, -1), rtol=1e-10, atol=1e-14)


def test_cahn_hilliard_is_a_five_point_stencil_with_complex_roots():
    pde, n, dt, u = CahnHilliard(), 128, 0.01, 0.5
    h2 = ((pde.upper - pde.lower) / n) ** 2
    m, gamma = dt * pde.mobility * (3 * u**2 - 1) / h2, dt * pde.gamma / h2**2
    stencil = WideStencil([1 + 2 * m + 6 * gamma, -m - 4 * gamma, gamma])
    rhs = partial(pde.rhs, derivatives=Central)
    green = implicit_green(rhs, torch.full((n,), u, dtype=torch.float64), dt)
    t = torch.arange(1 - n // 2, n // 2)
    round_ = sum(stencil.green(t + k * n) for k in range(-3, 4))
    torch.testing.assert_close(green[5], round_, rtol=0, atol=1e-13)
    assert stencil.exponentials()[0].imag.abs().min() > 0.05


def test_a_constant_state_is_a_convolution_and_a_wave_is_not():
    pde, n = CahnHilliard(), 64
    flat = implicit_green(pde.rhs, torch.full((n,), 0.5, dtype=torch.float64), 0.01)
    assert compressibility(flat, 20).variation < 1e-12
    assert compressibility(implicit_green(pde.rhs, bumpy(pde, n), 0.01), 20).variation > 0.05


def test_the_stencils_kernel_is_compact_and_the_spectral_one_has_a_tail():
    """A truncated spectrum leaves an alternating tail that no smooth mode holds: the paper's
    claim is about stencils."""
    pde, n = AllenCahn(), 128
    u = bumpy(pde, n)
    compact, tailed = (
        compressibility(implicit_green(partial(pde.rhs, derivatives=kind), u, 0.01), 80)
        for kind in (Central, Spectral)
    )
    assert compact.modes_for(1e-6) < 40
    assert tailed.modes_for(1e-6) is None
    assert tailed.modes_for(1e-2) < 25
    assert compact.rate > 5 * tailed.rate


def test_bad_states_say_what_is_wrong():
    pde = AllenCahn()
    with pytest.raises(ValueError, match=r"float64, got shape \(2, 8\)"):
        local_operator(pde.rhs, torch.zeros(2, 8, dtype=torch.float64))
    with pytest.raises(ValueError, match="float32"):
        local_operator(pde.rhs, torch.zeros(8))
    with pytest.raises(ValueError, match="`dt` must be positive, got dt=0"):
        implicit_green(pde.rhs, torch.zeros(8, dtype=torch.float64), 0.0)
