"""Diffusion–sorption: the scheme, its balance, and the solutions known in closed form."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import simpson
from scipy.interpolate import CubicSpline
from scipy.special import erfc

from sfo.pdes.sorption.equation import DiffusionSorption, initial_constant, published_constant
from sfo.pdes.sorption.loops import power, rate

OUTFLOWS = ["published", "stated"]
close = torch.testing.assert_close


def constant(n, c, samples=1):
    return torch.full((samples, 1, n), c, dtype=torch.float64)


def random_field(n, low=0.0, high=1.0):
    return low + (high - low) * torch.rand(n, dtype=torch.float64)


@pytest.mark.parametrize("outflow", OUTFLOWS)
def test_rhs_is_the_stated_scheme(outflow):
    """Cell by cell, with numbers in place of names."""
    u = random_field(9).tolist()
    sign = 1 if outflow == "published" else -1
    around = [1.0, *u, sign * 5e-4 * (u[-2] - u[-1]) * 9]
    expected = [
        5e-4
        * (a - 2 * b + c)
        * 81
        / (1 + 0.71 / 0.29 * 2880 * 3.5e-4 * 0.874 * (b + 1e-6) ** -0.126)
        for a, b, c in zip(around, u, around[2:], strict=False)
    ]
    rhs = DiffusionSorption(outflow=outflow).rhs(torch.tensor(u, dtype=torch.float64))
    close(rhs, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("outflow", OUTFLOWS)
def test_kernel_is_rhs(outflow):
    """The compiled rate and `rhs` agree to round-off, on another box and below zero too."""
    soil = DiffusionSorption(outflow=outflow, lower=-1.0, upper=2.0, left=0.7, n_f=1.3)
    for low in (0.0, -0.1):
        u = random_field(37, low)
        out = np.empty(37)
        rate(u.numpy(), soil.loop_constants(37), out)
        close(torch.from_numpy(out), soil.rhs(u), rtol=1e-12, atol=1e-14)


def test_kernel_power_is_the_librarys():
    """Sixteen decades, several exponents; NaN below zero, as numpy has it."""
    x = np.exp(np.linspace(math.log(1e-13), math.log(1e3), 2000))
    for exponent in (0.874 - 1, -1.0, 0.5, 2.0):
        values = np.array([power(value, exponent) for value in x])
        np.testing.assert_allclose(values, x**exponent, rtol=5e-15)
    assert math.isnan(power(-1e-9, -0.126))


@pytest.mark.parametrize("outflow", OUTFLOWS)
def test_straight_line_is_steady(outflow):
    """u falls from 1 beyond the left end to ±D s beyond the right, at the slope s."""
    n, d = 50, 0.03
    soil = DiffusionSorption(diffusivity=d, outflow=outflow)
    slope = 1 / ((n + 1) / n + (d if outflow == "published" else -d))
    line = 1 - slope * torch.arange(1, n + 1, dtype=torch.float64) / n
    assert soil.rhs(line).abs().max() < 1e-11 * d * n**2
    late = soil.solve(constant(n, 0.1), [0, 1e4])[0, -1, 0]
    close(late, line, rtol=0, atol=1e-6)


@pytest.mark.parametrize("outflow", OUTFLOWS)
def test_what_is_stored_came_through_the_ends(outflow):
    """Σ R(uᵢ) ∂uᵢ/∂t = D/h² [(1 − u₀) + (u_n − u_{n−1})], for any field."""
    n, d = 40, 5e-4
    soil = DiffusionSorption(outflow=outflow)
    u = random_field(n, low=-0.1).expand(3, n)
    beyond = (1 if outflow == "published" else -1) * d * n * (u[:, -2] - u[:, -1])
    through = d * n**2 * ((1 - u[:, 0]) + (beyond - u[:, -1]))
    close((soil.retardation(u) * soil.rhs(u)).sum(-1), through)


@pytest.mark.parametrize("outflow", OUTFLOWS)
def test_solution_keeps_the_balance(outflow):
    """∫ S(u) dx grows by the flux through both ends, integrated in time by Simpson's rule."""
    n, d = 64, 5e-4
    soil = DiffusionSorption(outflow=outflow)
    times = 500 * torch.linspace(0, 1, 1001, dtype=torch.float64) ** 3
    u = soil.solve(constant(n, 0.1), times)[0, :, 0]
    beyond = (1 if outflow == "published" else -1) * d * n * (u[:, -2] - u[:, -1])
    flux = d * n * ((1 - u[:, 0]) + (beyond - u[:, -1]))
    stored = soil.stored(u).mean(-1)
    assert stored[-1] - stored[0] > 0.8
    assert abs(stored[-1] - stored[0] - simpson(flux.numpy(), x=times.numpy())) < 1e-7


def test_retardation_is_the_slope_of_stored():
    """dS/du = R, below zero as well."""
    soil = DiffusionSorption()
    u = random_field(100, low=-0.5).requires_grad_()
    (slope,) = torch.autograd.grad(soil.stored(u).sum(), u)
    close(slope, soil.retardation(u))


def test_gradients_of_rhs():
    """Right where u > 0, and finite at and below zero, in both precisions."""
    soil = DiffusionSorption()
    assert torch.autograd.gradcheck(soil.rhs, random_field(12, low=0.1).requires_grad_())
    for dtype in (torch.float32, torch.float64):
        u = torch.tensor([0.3, 0.0, -1e-9, -1e-6, -2e-6, -0.4], dtype=dtype, requires_grad=True)
        rhs = soil.rhs(u)
        rhs.square().sum().backward()
        assert rhs.isfinite().all()
        assert u.grad.isfinite().all()


def test_without_sorption_it_is_erfc():
    """u = erfc((x + h/2) / √(4Dt)): the end lies half a cell out. Second order, 4× a halving."""
    soil = DiffusionSorption(rho_s=0.0)
    errors = []
    for n in (64, 128, 256):
        x = soil.grid(n).coordinates()[0].numpy() + 0.5 / n
        u = soil.solve(constant(n, 0.0), [0, 20.0])[0, -1, 0].numpy()
        errors.append(np.abs(u - erfc(x / math.sqrt(4 * 5e-4 * 20))).max())
    assert errors[-1] < 2.5e-5
    assert 3.9 < errors[0] / errors[1] < 4.1
    assert 3.9 < errors[1] / errors[2] < 4.1


def test_fronts_are_similar():
    """u = f((x + h/2)/√t) until the far end is felt: in four times the time, twice as far."""
    errors = []
    for n in (128, 256):
        u = DiffusionSorption().solve(constant(n, 0.1), [0, 10.0, 40.0])[0, :, 0]
        near = n // 4
        errors.append((u[1, :near] - u[2, 1 : 2 * near : 2]).abs().max())
    assert errors[1] < 2e-4
    assert errors[0] / errors[1] > 3


def test_first_order_in_the_width_of_a_cell():
    """The left value sits half a cell beyond the end: halving cells halves the error."""
    x, soil = np.linspace(0.1, 0.9, 33), DiffusionSorption()
    values = []
    for n in (128, 256, 512):
        u = soil.solve(constant(n, 0.1), [0, 100.0])[0, -1, 0].numpy()
        values.append(CubicSpline(soil.grid(n).coordinates()[0].numpy(), u)(x))
    ratio = np.linalg.norm(values[0] - values[1]) / np.linalg.norm(values[1] - values[2])
    assert 1.95 < ratio < 2.05


@pytest.mark.parametrize("c", [0.0, 0.1097627])
def test_tolerance_is_met_at_full_size(c):
    """1,024 cells, 101 frames: a thousandfold tolerance changes nothing beyond 1e-7."""
    soil, times = DiffusionSorption(), torch.linspace(0, 500, 101)
    u = soil.solve(constant(1024, c), times)
    assert (u - soil.solve(constant(1024, c), times, rtol=1e-10, atol=1e-12)).abs().max() < 1e-7


def test_stays_between_its_ends():
    """The maximum principle; with "stated", u falls below zero once cells are smaller than D."""
    initial, times = constant(1024, 0.1), [0, 1.0, 500.0]
    for outflow in OUTFLOWS:
        u = DiffusionSorption(outflow=outflow).solve(initial, times)
        assert u.min() > 0
        assert u.max() < 1
    fine = DiffusionSorption(outflow="stated").solve(constant(2560, 0.1), [0, 100.0])
    assert -1e-3 < fine[0, -1, 0, -1] < 0


@pytest.mark.parametrize(("ratio", "grows"), [(2.9, False), (3.1, True)])
def test_stated_outflow_grows_on_fine_grids(ratio, grows):
    """A boundary mode q^(n−1−i) grows once D/h > 3; with the published sign nothing does."""
    u = torch.zeros(40, dtype=torch.float64)
    for outflow in OUTFLOWS:
        soil = DiffusionSorption(rho_s=0.0, diffusivity=ratio / 40, outflow=outflow)
        rates = torch.linalg.eigvals(torch.autograd.functional.jacobian(soil.rhs, u)).real
        assert (rates.max() > 0) == (grows and outflow == "stated")


def test_samples_and_frames_are_independent():
    """A sample does not see the others, a frame not the frames between; the first is given."""
    soil = DiffusionSorption()
    initial = torch.rand(3, 1, 32)
    times = [1.0, 1.5, 4.0, 30.0]
    u = soil.solve(initial, times)
    close(u[:, 0], initial.double(), rtol=0, atol=0)
    close(u[1:2], soil.solve(initial[1:2], times), rtol=0, atol=0)
    close(u[:, -1], soil.solve(initial, [0.0, 29.0])[:, -1], rtol=0, atol=1e-6)


def test_published_seeds():
    """The first numbers of the published file; one number fills a field."""
    first = [published_constant(i) for i in range(3)]
    np.testing.assert_allclose(first, [0.1097627, 0.0834044, 0.0871990], atol=5e-8)
    grid = DiffusionSorption().grid(8)
    fields = [initial_constant(np.random.default_rng(i), grid) for i in range(200)]
    values = torch.stack([field[0, 0] for field in fields])
    assert all((field == field[0, 0]).all() for field in fields)
    assert 0 <= values.min() < 0.01
    assert 0.19 < values.max() <= 0.2


def test_errors_say_what_is_wrong():
    soil = DiffusionSorption()
    with pytest.raises(ValueError, match="`outflow` must be one of 'published', 'stated', got 'o"):
        DiffusionSorption(outflow="open")
    with pytest.raises(ValueError, match=r"`shift` must be positive, got 0"):
        DiffusionSorption(shift=0.0)
    with pytest.raises(ValueError, match=r"`porosity` .* got 1.5"):
        DiffusionSorption(porosity=1.5)
    with pytest.raises(ValueError, match=r"`initial` must have the shape \(sample, 1, n\)"):
        soil.solve(torch.rand(3, 16), [0, 1.0])
    with pytest.raises(ValueError, match=r"`rtol` must be at least 1e-13, .* got rtol=1e-14"):
        soil.solve(torch.rand(3, 1, 16), [0, 1.0], rtol=1e-14)
    with pytest.raises(ValueError, match="at least 2 cells, got 1"):
        soil.rhs(torch.rand(1))
    with pytest.raises(ValueError, match="`low` must not be above `high`"):
        initial_constant(np.random.default_rng(0), soil.grid(4), low=1, high=0)


def test_failure_names_the_sample():
    initial = constant(16, 0.1, samples=3)
    initial[1] = 1e308
    with pytest.raises(ArithmeticError, match="Sample 1 of 3: LSODA stopped"):
        DiffusionSorption().solve(initial, [0, 1.0])
