"""Measured projection errors, and the bound that they may not break."""

import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfo.bases import hilbert_eigenvalues, usb_modes
from sfo.models.kernel_modes import KernelModes, KernelOptions
from sfo.registry import BASES
from sfo.theory.approximation import (
    FLOOR,
    christoffel,
    christoffel_bound,
    coefficients,
    decay_rate,
    eigenvalue_bound,
    error_bound,
    modes_guaranteed,
    modes_needed,
    powers,
    projection_errors,
    sharp_error_bounds,
)

TOLERANCES = [10.0**-k for k in range(2, 13)]


def extend(phi):
    """Row 2l is φₗ[|t|], row 2l + 1 is sign(t) φₗ[|t|], at the offsets t = −(n−1)..n−1."""
    t = torch.arange(1 - phi.shape[-1], phi.shape[-1])
    even = phi[:, t.abs()]
    return torch.stack([even, t.sign() * even], dim=1).flatten(0, 1)


def test_modes_are_orthogonal_polynomials_in_the_root():
    """∫₀¹ ⟨φₗ, μ_r⟩⟨φₘ, μ_r⟩ dr = λₗ δₗₘ, by a Gauss rule that is exact here."""
    n = 12
    node, weight = np.polynomial.legendre.leggauss(n)
    p = powers(torch.from_numpy((node + 1) / 2), n) @ usb_modes(n, n).T
    gram = p.T @ (torch.from_numpy(weight / 2)[:, None] * p)
    expected = torch.diag(hilbert_eigenvalues(n, n))
    torch.testing.assert_close(gram, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("r", [0.0, 0.3, 0.97, 1.0])
def test_christoffel_function_is_the_sum_over_all_modes(r):
    """Σₗ ⟨φₗ, μ_r⟩²/λₗ = K_n(r): any orthonormal basis gives the same. n stays small, for
    the last λ is 1e-9 and divides a square."""
    n = 7
    p = powers(r, n) @ usb_modes(n, n).T
    total = (p**2 / hilbert_eigenvalues(n, n)).sum().item()
    assert total == pytest.approx(christoffel(r, n), rel=1e-5)


@settings(max_examples=200, deadline=None)
@given(r=st.floats(0, 1), n=st.integers(2, 600))
def test_christoffel_function_stays_below_its_bound(r, n):
    assert christoffel(r, n) <= christoffel_bound(r, n) * (1 + 1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 16, 100, 1000, 16384])
def test_eigenvalues_stay_below_their_bound(n):
    bound = torch.tensor([eigenvalue_bound(n, k) for k in range(min(n, 60))])
    assert (hilbert_eigenvalues(n, min(n, 60)) <= bound).all()


@settings(max_examples=200, deadline=None)
@given(r=st.floats(0, 1), n=st.integers(2, 400))
def test_measured_error_is_below_the_bound(r, n):
    g = powers(r, n)
    most = min(n, 60)
    measured = projection_errors(g, most)
    sharp = sharp_error_bounds(r, n, most)
    explicit = torch.tensor([error_bound(r, n, k) for k in range(most + 1)], dtype=torch.float64)
    assert (measured <= sharp + FLOOR * g.norm()).all()
    assert (sharp <= explicit * (1 + 1e-12)).all()


@settings(max_examples=100, deadline=None)
@given(
    roots=st.lists(st.floats(0, 1), min_size=1, max_size=5),
    weights=st.lists(st.floats(-1, 1), min_size=5, max_size=5),
    n=st.integers(2, 300),
)
def test_sums_of_exponentials_are_bounded_by_the_sum_of_bounds(roots, weights, n):
    c = torch.tensor(weights[: len(roots)], dtype=torch.float64)
    g = c @ powers(torch.tensor(roots, dtype=torch.float64), n)
    most = min(n, 40)
    bounds = torch.stack([sharp_error_bounds(r, n, most) for r in roots])
    allowed = c.abs() @ bounds + FLOOR * math.sqrt(n) * c.abs().sum()
    assert (projection_errors(g, most) <= allowed).all()


def test_the_bound_holds_below_round_off():
    """In 60 digits, where no floor hides a violation: n = 14, errors down to 1e-17."""
    n = 14
    with mpmath.workdps(60):
        hilbert = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                hilbert[i, j] = mpmath.mpf(1) / (i + j + 1)
        values, modes = mpmath.eigsy(hilbert)
        for r in ("0", "0.5", "0.9", "0.9999", "1"):
            p = [
                mpmath.fsum(modes[i, n - 1 - m] * mpmath.mpf(r) ** i for i in range(n))
                for m in range(n)
            ]
            for m in range(n):
                error = mpmath.sqrt(mpmath.fsum(x**2 for x in p[m:]))
                sharp = mpmath.sqrt(values[n - 1 - m] * christoffel(float(r), n))
                assert error <= sharp * (1 + 1e-12)
                assert sharp <= error_bound(float(r), n, m)
        assert values[0] < 1e-17


@pytest.mark.parametrize("n", [256, 4096])
@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99, 0.999, 0.9999])
def test_error_falls_exponentially_at_least_as_fast_as_proven(n, rho):
    """log error is a straight line in L, steeper than π²/(2 log(8n − 4)), also as ρ → 1."""
    errors = projection_errors(powers(rho, n), 70)
    relative = (errors / errors[0]).numpy()
    use = np.flatnonzero((relative < 0.1) & (relative > 1e-12))
    straight = np.corrcoef(use, np.log(relative[use]))[0, 1]
    assert straight < -0.99
    assert decay_rate(errors) > math.pi**2 / (2 * math.log(8 * n - 4))


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99, 0.999, 0.9999])
def test_modes_grow_linearly_in_the_digits(rho):
    """L against log 1/ε from 1e-2 to 1e-12: within two modes of a straight line."""
    g = powers(rho, 1024)
    needed = [modes_needed(g, eps * g.norm().item()) for eps in TOLERANCES]
    x = -np.log10(TOLERANCES)
    line = np.polyval(np.polyfit(x, needed, 1), x)
    assert np.abs(needed - line).max() <= 2
    assert needed == sorted(needed)


@settings(max_examples=50, deadline=None)
@given(r=st.floats(0, 1), n=st.integers(2, 400), digits=st.integers(0, 11))
def test_guaranteed_modes_reach_the_tolerance(r, n, digits):
    eps = 10.0**-digits
    wanted = modes_guaranteed(r, n, eps)
    error = projection_errors(powers(r, n), max(wanted, 1))[wanted]
    assert error <= eps + FLOOR * math.sqrt(n)


@pytest.mark.parametrize("power", [0.25, 1.0, 3.0])
def test_polynomial_decay_is_covered_too(power):
    """(1 + t)^{−s} = ∫ rᵗ dν(r) with ν ≥ 0 of mass 1: the bound at K_n = n² applies."""
    n = 1024
    g = (1 + torch.arange(n, dtype=torch.float64)) ** -power
    measured = projection_errors(g, 60)
    assert (measured <= sharp_error_bounds(1.0, n, 60) + FLOOR * g.norm()).all()
    assert measured[40] < 1e-8


def test_a_negative_root_needs_alternating_modes():
    """(−1)ᵗ φₗ[t] does for −r what φₗ does for r; the plain modes do not."""
    n, r = 256, 0.9
    sign = (-1.0) ** torch.arange(n)
    plain = projection_errors(powers(-r, n), 40)
    phi = usb_modes(n, 40)
    rest = powers(-r, n) - (powers(-r, n) @ (sign * phi).T) @ (sign * phi)
    assert rest.norm() < 1e-13
    assert plain[40] > 0.1 * plain[0]
    with pytest.raises(ValueError, match=r"roots r in \[0, 1\], got r=-0.9.*alternate"):
        error_bound(-r, n, 10)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_usb_needs_fewest_modes_for_kernels_much_shorter_than_the_window(rho):
    g = powers(rho, 1024)
    for eps in (1e-2, 1e-4, 1e-8):
        usb = modes_needed(g, eps * g.norm().item())
        assert usb * 1.5 < modes_needed(g, eps * g.norm().item(), "chebyshev")
        assert usb * 30 < modes_needed(g, eps * g.norm().item(), "fourier")
        assert usb * 30 < modes_needed(g, eps * g.norm().item(), "random")


def test_chebyshev_needs_fewer_modes_for_kernels_as_long_as_the_window():
    """There ρᵗ is one smooth arc, and polynomials win: the page says so."""
    g = powers(0.999, 1024)
    assert modes_needed(g, 1e-4, "chebyshev") * 2 < modes_needed(g, 1e-4)


@pytest.mark.parametrize("name", [name for name in BASES.names() if name != "usb_dense"])
def test_errors_are_those_of_the_dense_projection(name):
    n, n_modes = 40, 10
    g = torch.stack([powers(0.8, n), torch.cos(torch.arange(n).double())])
    phi = BASES[name](n, n_modes)
    errors = projection_errors(g, n_modes, name)
    for k in range(n_modes + 1):
        rest = g - (g @ phi[:k].T) @ phi[:k]
        torch.testing.assert_close(errors[:, k], rest.norm(dim=-1))
    torch.testing.assert_close(coefficients(g, n_modes, name), g @ phi.T)


@pytest.mark.parametrize("name", ["usb", "chebyshev"])
def test_two_sided_errors_are_least_squares_on_the_extended_rows(name):
    """And those rows span what a `SpectralKernel` with zero boundary uses, in the same order."""
    n, rows = 30, 9
    rng = np.random.default_rng(0)
    g = torch.from_numpy(rng.standard_normal(2 * n - 1))
    phi = extend(BASES[name](n, 5))
    errors = projection_errors(g, rows, name, "two_sided")
    for k in range(1, rows + 1):
        solution = torch.linalg.lstsq(phi[:k].T, g[:, None], driver="gelsd").solution
        assert errors[k].item() == pytest.approx((phi[:k].T @ solution - g[:, None]).norm().item())
    options = KernelOptions(rows, basis=name, boundary="zero", support="two_sided")
    modes = KernelModes(options).modes((n,))
    layer = torch.cat([modes[:, -(n - 1) :], modes[:, :n]], dim=1)
    torch.testing.assert_close(layer * math.sqrt(2), phi[:rows])


def test_a_symmetric_kernel_needs_the_even_rows_alone():
    g = 0.9 ** torch.arange(-99, 100).abs().double()
    errors = projection_errors(g, 21, support="two_sided")
    torch.testing.assert_close(errors[1::2][:-1], errors[2::2][: len(errors[1::2]) - 1])
    one_sided = projection_errors(powers(0.9, 100), 11)
    assert (errors[1::2] <= math.sqrt(2) * one_sided[1:12] * (1 + 1e-12)).all()


def test_the_longest_kernels_work():
    """N = 65,536 up to ρ = 1 − 1e-4: 9 digits with 60 modes, at one tenth of a percent of N."""
    n = 65536
    g = powers(torch.tensor([0.5, 0.99, 0.9999], dtype=torch.float64), n)
    errors = projection_errors(g, 60) / g.norm(dim=-1, keepdim=True)
    assert (errors[:, 60] < 1e-9).all()
    for row, rho in zip(errors, (0.5, 0.99, 0.9999), strict=True):
        bound = torch.tensor([error_bound(rho, n, k) for k in range(61)])
        assert (row * powers(rho, n).norm() <= bound + 1e-9).all()


@pytest.mark.parametrize("eps", [0.0, -1e-3, float("nan")])
def test_a_tolerance_must_be_positive(eps):
    for call in (
        lambda: modes_needed(powers(0.5, 8), eps),
        lambda: modes_guaranteed(0.5, 8, eps),
    ):
        with pytest.raises(ValueError, match="`eps` must be positive, got eps="):
            call()


def test_a_kernel_has_at_least_two_points():
    for call in (
        lambda: powers(0.5, 1),
        lambda: projection_errors(torch.ones(1), 1),
        lambda: error_bound(0.5, 1, 1),
        lambda: modes_guaranteed(0.5, 0, 1e-2),
    ):
        with pytest.raises(ValueError, match="needs n >= 2 points, got n="):
            call()


def test_other_bad_input_says_what_is_wrong():
    with pytest.raises(ValueError, match="an odd number, got 10 points"):
        projection_errors(torch.ones(10), 2, support="two_sided")
    with pytest.raises(ValueError, match="one_sided or two_sided, got 'left'"):
        projection_errors(torch.ones(10), 2, support="left")
    with pytest.raises(ValueError, match="Did you mean 'usb'"):
        projection_errors(torch.ones(10), 2, "ubs")
    with pytest.raises(ValueError, match=r"`n_modes` must be in 1\.\.n"):
        projection_errors(torch.ones(10), 11)
