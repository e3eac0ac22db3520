from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from sfo.models import SVDNO
from sfo.models.blocks import coordinates
from sfo.models.svd_no import SingularFunctions, excess, trapezoid_weights

SMALL = dict(n_modes=3, hidden_channels=6, n_layers=2, network_channels=5, network_layers=2)
CASES = [((9,), "sine"), ((9,), "lstm"), ((5, 4), "sine"), ((4, 3, 5), "sine")]


class Sines(nn.Module):
    """√2 sin(lπx), l = 1 … L, of the last channel: orthonormal on the unit interval."""

    def __init__(self, n_functions):
        super().__init__()
        self.wave_number = torch.pi * torch.arange(1, n_functions + 1, dtype=torch.float64)

    def forward(self, z):
        return 2**0.5 * torch.sin(self.wave_number[:, None] * z[:, -1:])


def exact_functions(n_functions):
    """The sines themselves: one component, and a readout that changes nothing."""
    functions = SingularFunctions(Sines(n_functions), n_functions, 1, n_functions).double()
    with torch.no_grad():
        functions.readout.weight.copy_(torch.eye(n_functions))
        functions.readout.bias.zero_()
    return functions


def exact_model(n_functions):
    model = SVDNO(1, 1, n_modes=n_functions, hidden_channels=1, n_layers=1).double()
    model.phi, model.psi = exact_functions(n_functions), exact_functions(n_functions)
    return model


def test_kernel_can_solve_an_equation():
    """With the Green's function Σ 2 sin(lπx) sin(lπy) / (lπ)² of −u″ = f, u(0) = u(1) = 0."""
    n_functions = 6
    model = exact_model(n_functions)
    wave_number = torch.pi * torch.arange(1, n_functions + 1, dtype=torch.float64)
    with torch.no_grad():
        model.sigma.copy_(wave_number**-2)
    a = torch.zeros(2, 1, 33, dtype=torch.float64)
    x = coordinates(a)
    phi = model.phi.features(x)
    coefficients = torch.randn(2, 1, n_functions, dtype=torch.float64)
    waves = torch.sin(wave_number[:, None] * x)
    f, truth = coefficients @ waves, (coefficients * wave_number**-2) @ waves
    u = model.kernel(f, phi, model.psi.features(x) * trapezoid_weights(a))
    torch.testing.assert_close(u, truth)


def test_penalty_vanishes_for_orthonormal_functions():
    model = exact_model(5)
    model(torch.randn(2, 1, 33, dtype=torch.float64))
    assert model.regularisation() < 1e-24
    with torch.no_grad():
        model.phi.readout.weight.mul_(2)
    model(torch.randn(2, 1, 33, dtype=torch.float64))
    # The Gram matrix is 4 instead of 1 on the diagonal.
    torch.testing.assert_close(model.regularisation().item(), 5 * 3.0**2)


@pytest.mark.parametrize(("shape", "network"), CASES)
def test_model_is_the_formula_with_functions_at_every_point(shape, network):
    """Φ and Ψ as d × L numbers a point, integrals as weighted sums over them."""
    model = SVDNO(2, 3, len(shape), network=network, penalty=0.7, **SMALL).double()
    nn.init.normal_(model.sigma)
    a = torch.randn(2, 2, *shape, dtype=torch.float64)
    z = torch.cat([a, coordinates(a)], dim=1).flatten(2)
    phi, psi = model.phi(z), model.psi(z)
    ends = [torch.linspace(0, 1, n, dtype=torch.float64) for n in shape]
    lines = [torch.trapezoid(torch.eye(len(x), dtype=x.dtype), x) for x in ends]
    weights = torch.stack(torch.meshgrid(*lines, indexing="ij")).prod(0).flatten()

    def linear(part, v):
        return torch.einsum("oi,bin->bon", part.weight, v) + part.bias[:, None]

    v = linear(model.lift, z)
    for layer in model.layers:
        q = torch.einsum("n,bdln,bdn->bl", weights, psi, v)
        v = F.gelu(linear(layer, v) + torch.einsum("bdln,l,bl->bdn", phi, model.sigma, q))
    torch.testing.assert_close(model(a), linear(model.project, v).unflatten(2, shape))
    grams = [torch.einsum("n,bdln,bdmn->blm", weights, f, f) for f in (phi, psi)]
    truth = sum((g - torch.eye(3)).square().sum((1, 2)).mean() for g in grams)
    torch.testing.assert_close(model.regularisation(), 0.7 * truth)


def test_penalty_makes_functions_orthonormal():
    """Its gradient alone takes random functions to a Gram matrix of 1."""
    model = SVDNO(1, 1, **SMALL)
    a = torch.randn(1, 1, 32)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        model(a)
        model.regularisation().backward()
        optimizer.step()
    z = torch.cat([a, coordinates(a)], dim=1)
    gram = torch.einsum("n,bdln,bdmn->lm", trapezoid_weights(a), model.phi(z), model.phi(z))
    torch.testing.assert_close(gram, torch.eye(3), atol=0.01, rtol=0)


def test_error_of_the_grid_falls_with_the_square_of_its_spacing():
    """The trapezoidal rule is of second order, and all else is pointwise."""
    model = SVDNO(1, 1, **SMALL).double()

    @torch.no_grad()
    def solve(n):
        x = torch.linspace(0, 1, n, dtype=torch.float64)
        return model(torch.exp(x)[None, None])

    reference = solve(4097)
    errors = [(solve(n) - reference[..., :: 4096 // (n - 1)]).abs().max() for n in (9, 17, 33)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 3, 1)])
def test_weights_integrate_linear_functions_exactly(shape):
    """On every axis, one of a single point included: ∫ x dx = 1/2, ∫ 1 dx = 1."""
    a = torch.zeros(1, 1, *shape, dtype=torch.float64)
    weights = trapezoid_weights(a)
    torch.testing.assert_close(weights.sum().item(), 1.0)
    moments = (coordinates(a)[0].flatten(1) * weights).sum(1)
    truth = [0.5 if n > 1 else 0.0 for n in shape]
    torch.testing.assert_close(moments.tolist(), truth)


def test_a_copy_has_no_forward_pass_behind_it():
    """Weight averages copy the model in the middle of training."""
    model = SVDNO(1, 1, **SMALL)
    a = torch.randn(1, 1, 8)
    u = model(a)
    copy = deepcopy(model)
    with pytest.raises(ValueError, match="about the last forward pass: there was none"):
        copy.regularisation()
    assert torch.equal(copy(a), u)
    assert torch.equal(copy.regularisation(), model.regularisation())


def test_lstm_works_in_mixed_precision():
    model = SVDNO(1, 1, network="lstm", **SMALL)
    a = torch.randn(1, 1, 8)
    with torch.autocast("cpu", torch.bfloat16):
        u = model(a)
        (u.float().square().sum() + model.regularisation()).backward()
    torch.testing.assert_close(u.float(), model(a), atol=0.02, rtol=0)


def test_excess_is_the_mean_over_samples():
    """Not the excess of the mean, in which 1 + e and 1 − e would cancel."""
    gram = torch.eye(2) * torch.tensor([0.5, 1.5])[:, None, None]
    assert excess(gram) == 2 * 0.25
