"""Green's kernels in closed form, against dense inverses, recurrences and exact roots."""

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfo.theory.stencil import Stencil, WideStencil

SIZES = st.floats(1e-3, 1e3)


def ratios(limit: float):
    """2b/a: below 1 in size for a stable stencil."""
    return st.floats(-limit, limit, allow_subnormal=False)


@st.composite
def block_stencils(draw, limit: float):
    """d × d stencils; few distinct eigenvalues, so that repeated ones are common.

    a's eigenvalues lie within a decade of each other: the dense inverse, the truth here, is
    itself no better than 1e-16 times the condition number of the whole.
    """
    d = draw(st.integers(1, 4))
    size = draw(SIZES)
    values = [size * v for v in draw(st.lists(st.floats(1, 10), min_size=1, max_size=2))]
    ratio = draw(st.lists(ratios(limit), min_size=1, max_size=3))
    alpha = np.array([values[draw(st.integers(0, len(values) - 1))] for _ in range(d)])
    beta = alpha / 2 * [ratio[draw(st.integers(0, len(ratio) - 1))] for _ in range(d)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    a, b = (q * alpha) @ q.T, (q * beta) @ q.T
    return Stencil((a + a.T) / 2, (b + b.T) / 2)


def middle_of_inverse(stencil: Stencil, n: int, reach: int) -> torch.Tensor:
    """The dense inverse's middle column of blocks, offsets −reach..reach."""
    matrix = stencil.matrix(n)
    d = len(matrix) // n
    column = torch.zeros(n, d, d, dtype=torch.float64)
    column[n // 2] = torch.eye(d)
    solution = torch.linalg.solve(matrix, column.reshape(n * d, d)).reshape(n, d, d)
    return solution[n // 2 - reach : n // 2 + reach + 1]


@settings(max_examples=200, deadline=None)
@given(a=SIZES, ratio=ratios(0.95))
def test_scalar_kernel_is_the_dense_inverse_far_from_the_ends(a, ratio):
    """At |2b/a| ≤ 0.95, |r| ≤ 0.73: images from 90 points away are below 1e-13."""
    stencil = Stencil(a, a * ratio / 2)
    dense = middle_of_inverse(stencil, n=121, reach=15)[:, 0, 0]
    kernel = stencil.green(torch.arange(-15, 16))
    assert (kernel - dense).abs().max() <= 1e-12 * kernel[15]


@settings(max_examples=200, deadline=None)
@given(stencil=block_stencils(0.95))
def test_block_kernel_is_the_dense_inverse_far_from_the_ends(stencil):
    dense = middle_of_inverse(stencil, n=121, reach=15)
    kernel = stencil.green(torch.arange(-15, 16))
    kernel = kernel.reshape(dense.shape)
    assert (kernel - dense).abs().max() <= 1e-12 * kernel.abs().max()


@settings(max_examples=200, deadline=None)
@given(a=SIZES, ratio=ratios(0.999), n=st.integers(1, 30))
def test_images_give_the_whole_finite_inverse(a, ratio, n):
    """Marginal stencils too: the closed form of the finite matrix has no far ends to wait for."""
    stencil = Stencil(a, a * ratio / 2)
    dense = torch.linalg.inv(stencil.matrix(n))
    assert (stencil.dirichlet_green(n) - dense).abs().max() <= 1e-12 * dense.abs().max()


@settings(max_examples=50, deadline=None)
@given(stencil=block_stencils(0.999), n=st.integers(1, 12))
def test_images_give_the_whole_finite_block_inverse(stencil, n):
    dense = torch.linalg.inv(stencil.matrix(n))
    assert (stencil.dirichlet_green(n) - dense).abs().max() <= 1e-11 * dense.abs().max()


@settings(max_examples=200, deadline=None)
@given(a=SIZES, ratio=ratios(0.999), n=st.integers(2, 40))
def test_the_ends_change_the_kernel_by_the_predicted_size(a, ratio, n):
    """|G_finite(i, j) − G[i − j]| ≤ (|r|^{i+j} + |r|^{2(n+1)−i−j}) / s, the two first images."""
    stencil = Stencil(a, a * ratio / 2)
    i = torch.arange(1, n + 1)
    dense = torch.linalg.inv(stencil.matrix(n))
    r, both = stencil.r.abs(), i[:, None] + i
    predicted = stencil.weight * (r**both + r ** (2 * (n + 1) - both))
    change = (dense - stencil.green(i[:, None] - i)).abs()
    assert (change <= predicted + 1e-12 * dense.abs().max()).all()


def test_the_predicted_size_is_attained_at_the_ends():
    """Far from the other end the change is one image, −r^{i+j}/s, to all digits."""
    stencil = Stencil(2.1, -1.0)
    change = torch.linalg.inv(stencil.matrix(200))[0, 0] - stencil.green(0)
    assert change.item() == pytest.approx(-(stencil.weight * stencil.r**2).item(), rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1e-9), (3e5, -2.0), (2.000001, -1.0), (1.0, 0.4999)])
def test_roots_lose_no_digits(a, b):
    """The paper's (−a + √(a² − 4b²))/(2b) has no correct digit left at b = 1e-9 a."""
    with mpmath.workdps(60):
        a_, b_ = mpmath.mpf(a), mpmath.mpf(b)
        s = mpmath.sqrt(a_**2 - 4 * b_**2)
        r, weight = (-a_ + s) / (2 * b_), 1 / s
    stencil = Stencil(a, b)
    assert stencil.r.item() == pytest.approx(float(r), rel=1e-14)
    assert stencil.weight.item() == pytest.approx(float(weight), rel=1e-14)


def test_no_coupling_gives_a_point_kernel():
    assert Stencil(4.0, 0.0).green([-1, 0, 1]).tolist() == [0.0, 0.25, 0.0]


def test_theta_and_r_are_the_papers_sum():
    """G[t] = Σₖ Θₖ rₖ^|t|, and A G = δ I entry by entry."""
    a = torch.tensor([[3.0, 1.0], [1.0, 4.0]], dtype=torch.float64)
    b = 0.1 * a @ a - 0.5 * torch.eye(2, dtype=torch.float64) - 0.2 * a
    stencil = Stencil(a, b)
    t = torch.arange(-9, 10)
    green = stencil.green(t)
    total = torch.einsum("kij,tk->tij", stencil.theta, stencil.r ** t.abs()[:, None])
    torch.testing.assert_close(green, total, rtol=0, atol=1e-15)
    applied = a @ green[1:-1] + b @ (green[:-2] + green[2:])
    torch.testing.assert_close(applied[8], torch.eye(2, dtype=torch.float64), atol=1e-14, rtol=0)
    applied[8] = 0
    assert applied.abs().max() < 1e-14
    assert green.shape == (19, 2, 2)


def test_inverse_norm_is_the_kernels_sum():
    """‖A⁻¹‖ = max 1/(a − 2|b|) = Σ|G[t]|: the symbol is smallest at θ = 0 or π."""
    stencil = Stencil(2.5, 1.0)
    total = stencil.green(torch.arange(-200, 201)).abs().sum().item()
    assert total == pytest.approx(stencil.inverse_norm, rel=1e-13)


@pytest.mark.parametrize("d", [None, 3])
def test_direct_solve_inverts_the_matrix(d):
    rng = np.random.default_rng(0)
    if d is None:
        stencil, f = Stencil(2.2, -1.0), torch.from_numpy(rng.standard_normal(40))
    else:
        q = np.linalg.qr(rng.standard_normal((d, d)))[0]
        stencil = Stencil((q * [3, 3, 5]) @ q.T, (q * [1, -1, 2]) @ q.T)
        f = torch.from_numpy(rng.standard_normal((40, d)))
    residual = stencil.matrix(40) @ stencil.solve(f).flatten() - f.flatten()
    assert residual.abs().max() < 1e-13


def test_one_point_is_a_division():
    assert Stencil(4.0, 1.0).solve(torch.tensor([2.0])).tolist() == [0.5]


def test_repeated_eigenvalues_are_told_apart_by_the_other_matrix():
    """a = 4 I says nothing about the eigenvectors, b alone decides; and the other way round."""
    b = np.array([[0.3, 0.7], [0.7, -0.2]])
    stencil = Stencil(4 * np.eye(2), b)
    assert sorted(stencil.beta.tolist()) == pytest.approx(sorted(np.linalg.eigvalsh(b)))
    swapped = Stencil(b + 3 * np.eye(2), 0.1 * np.eye(2))
    assert sorted(swapped.alpha.tolist()) == pytest.approx(sorted(np.linalg.eigvalsh(b) + 3))


@settings(max_examples=200, deadline=None)
@given(tail=st.lists(st.floats(-1, 1), min_size=1, max_size=4), margin=st.floats(0.05, 2))
def test_wide_kernel_inverts_its_stencil(tail, margin):
    """c₀ > 2Σ|cₖ| is stable. A decaying G with A G = δ is the kernel: it is unique."""
    c = np.array([2 * (1 + margin) * np.abs(tail).sum() + 1e-3, *tail])
    stencil = WideStencil(c)
    reach = len(c) - 1
    t = torch.arange(-60, 61)
    applied = c[0] * stencil.green(t)
    for k in range(1, reach + 1):
        applied += c[k] * (stencil.green(t - k) + stencil.green(t + k))
    assert (applied - (t == 0).double()).abs().max() < 1e-11
    assert stencil.decay < 1


def test_a_tiny_far_coefficient_spoils_no_other_root():
    """It sends one zero of the symbol to 1e15, where the others' digits would drown."""
    t = torch.arange(-20, 21)
    wide = WideStencil([4.06, 0.015625, 0.0, 1.0, 2.3e-16]).green(t)
    narrow = WideStencil([4.06, 0.015625, 0.0, 1.0]).green(t)
    assert (wide - narrow).abs().max() < 1e-15


@pytest.mark.parametrize("c", [[3.0, -1.0, 0.3], [5.0, 0.0, 1.0, 1.2], [6.0, -4.0, 1.5]])
def test_wide_kernel_is_the_dense_inverse(c):
    """Real and complex roots."""
    stencil = WideStencil(c)
    dense = torch.linalg.inv(stencil.matrix(401))[200, 190:211]
    assert (stencil.green(torch.arange(-10, 11)) - dense).abs().max() < 1e-12
    z, weight = stencil.exponentials()
    assert len(z) == len(c) - 1
    assert (z.abs() < 1).all()
    total = (weight * z ** torch.arange(8)[:, None]).sum(-1)
    assert total.imag.abs().max() < 1e-14


def test_wide_stencil_of_three_points_is_the_stencil():
    t = torch.arange(-20, 21)
    wide, narrow = WideStencil([2.3, 1.0]).green(t), Stencil(2.3, 1.0).green(t)
    torch.testing.assert_close(wide, narrow, rtol=0, atol=1e-15)


def test_a_double_root_is_refused_as_a_sum_and_integrated_as_a_kernel():
    """A² has the kernel G * G, with terms t rᵗ: no sum of exponentials."""
    squared = WideStencil(np.convolve([-1, 2.5, -1], [-1, 2.5, -1])[2:])
    with pytest.raises(ValueError, match=r"coincide.*green\(t\)"):
        squared.exponentials()
    once = Stencil(2.5, -1.0).green(torch.arange(-200, 201))
    twice = np.convolve(once, once, "same")[190:211]
    assert np.abs(squared.green(torch.arange(-10, 11)).numpy() - twice).max() < 1e-14


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (2.0, 1.0, r"a > 2\|b\|.*a=2, b=1 "),
        (-3.0, 1.0, r"a > 2\|b\|.*a=-3"),
        (0.0, 0.0, r"a > 2\|b\|"),
        (np.diag([3.0, 1.0]), np.diag([1.0, 0.7]), r"got a=1, b=0.7"),
        (np.diag([3.0, 4.0]), [[0.0, 1.0], [1.0, 0.0]], r"must commute, got max \|ab - ba\| = 1\."),
        ([[3.0, 1.0], [0.0, 3.0]], np.eye(2), r"`a` must be symmetric, got .* = 1\."),
        (np.eye(2), [[0.0, 0.1], [0.0, 0.0]], r"`b` must be symmetric"),
        (3.0, np.eye(2), r"two numbers or two matrices"),
        (np.ones((2, 3)), np.ones((2, 3)), r"square matrix, got shape \(2, 3\)"),
        (float("nan"), 1.0, r"`a` must be finite"),
    ],
)
def test_a_bad_stencil_says_what_is_wrong(a, b, message):
    with pytest.raises(ValueError, match=message):
        Stencil(a, b)


@pytest.mark.parametrize("c", [[2.0, -1.0], [1.0, 1.0], [1.0, 0.0, 0.5], [2.0, 0.0, 0.0, 1.0]])
def test_a_wide_symbol_that_vanishes_on_the_circle_is_refused(c):
    with pytest.raises(ValueError, match="without zeros on the unit circle"):
        WideStencil(c)


def test_offsets_are_whole():
    with pytest.raises(ValueError, match="whole grid offsets"):
        Stencil(3.0, 1.0).green([0.5])
    with pytest.raises(ValueError, match="at least 1 point, got n=0"):
        Stencil(3.0, 1.0).matrix(0)
