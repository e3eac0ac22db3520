"""Darcy flow: closed forms, the matrix's properties, and what flows in flows out."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from sfo.pdes import Darcy
from sfo.pdes.darcy import layered_pressure
from sfo.registry import BENCHMARKS

PDE = Darcy()


def ground(n, index=0):
    """A coefficient of the benchmark."""
    return BENCHMARKS["darcy"].coefficient(0, index, PDE.grid((n, n)))[None]


def relative(u, exact):
    return ((u - exact).norm() / exact.norm()).item()


def test_uniform_ground_has_the_pressure_of_a_series():
    """p = Σ 16 sin(iπx) sin(jπy) / (π⁴ i j (i² + j²)) over odd i and j; second order."""
    errors = []
    for n in (16, 32, 64):
        (x, _) = PDE.grid((n, n)).coordinates()
        odd = torch.arange(1, 400, 2).double()
        weight = 16 / (math.pi**4 * odd[:, None] * odd * (odd[:, None] ** 2 + odd**2))
        sines = torch.sin(math.pi * odd[:, None] * x)
        exact = sines.T @ weight @ sines
        errors.append(relative(PDE.solve(torch.ones(1, 1, n, n))[0, 0], exact))
    assert errors[2] < 1e-3
    assert 3.8 < errors[0] / errors[1] < 4.2
    assert 3.8 < errors[1] / errors[2] < 4.2


def test_a_manufactured_pressure_is_found_to_second_order():
    """p = sin(πx) sin(2πy) in ground a = 2 + sin(πx) cos(πy), with the f that belongs to it."""
    errors = []
    for n in (16, 32, 64):
        x, y = (math.pi * v for v in PDE.grid((n, n)).mesh())
        a = 2 + torch.sin(x) * torch.cos(y)
        p = torch.sin(x) * torch.sin(2 * y)
        pi2 = math.pi**2
        slope_x = pi2 * torch.cos(x) * torch.cos(y) * torch.cos(x) * torch.sin(2 * y)
        slope_y = pi2 * -torch.sin(x) * torch.sin(y) * torch.sin(x) * 2 * torch.cos(2 * y)
        f = 5 * pi2 * a * p - slope_x - slope_y
        errors.append(relative(PDE.solve(a[None, None], f[None, None])[0, 0], p))
    assert errors[2] < 2e-3
    assert 3.7 < errors[0] / errors[1] < 4.3
    assert 3.7 < errors[1] / errors[2] < 4.3


def test_layers_have_their_closed_form():
    """1D, four layers between 0.1 and 12: harmonic means are of second order across the jumps."""
    edges, values = [0.0, 0.25, 0.5, 0.625, 1.0], [3.0, 12.0, 0.1, 3.0]
    errors = []
    for n in (16, 32, 64):
        x = PDE.grid((n,)).coordinates()[0]
        layer = torch.bucketize(x, torch.tensor(edges[1:-1], dtype=torch.float64))
        a = torch.tensor(values, dtype=torch.float64)[layer]
        exact = layered_pressure(x, edges, values)
        errors.append(relative(PDE.solve(a[None, None])[0, 0], exact))
    assert errors[2] < 5e-3
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.05)


def test_layers_in_two_dimensions_are_those_in_one_far_from_the_other_walls():
    """In a box 32 times as wide as high, the middle does not know of its far walls."""
    edges, values = [0.0, 0.25, 1.0], [3.0, 12.0]
    x = PDE.grid((32,)).coordinates()[0]
    a = torch.where(x < 0.25, 3.0, 12.0).double()
    line = PDE.solve(a[None, None])[0, 0]
    # The same equation with y counted in 32nds: a as strong along y as (1/32)².
    wide = PDE.matrix(np.repeat(a.numpy()[:, None], 64, axis=1))
    along = PDE.matrix(a.numpy())
    rhs = np.ones(32 * 64)
    from scipy.sparse import eye, kron
    from scipy.sparse.linalg import spsolve

    across = wide - kron(along, eye(64))
    middle = spsolve((kron(along, eye(64)) + across / 32**2).tocsc(), rhs).reshape(32, 64)[:, 32]
    assert relative(torch.from_numpy(middle), line) < 1e-6
    assert relative(line, layered_pressure(x, edges, values)) < 5e-3


def test_the_matrix_is_symmetric_positive_and_never_cools_by_heating():
    """Off the diagonal nothing is positive, and the inverse is positive everywhere."""
    matrix = PDE.matrix(ground(8)[0, 0].numpy()).toarray()
    assert (matrix == matrix.T).all()
    assert np.linalg.eigvalsh(matrix).min() > 0
    off = matrix - np.diag(np.diag(matrix))
    assert off.max() <= 0
    assert (np.diag(matrix) + off.sum(1) > -1e-9).all()
    assert np.linalg.inv(matrix).min() > 0


@pytest.mark.parametrize("shape", [(12,), (7, 9), (4, 5, 6)])
def test_the_matrix_is_the_balance_of_flows(shape):
    """Two routes, in one to three dimensions: entries of a matrix, and differences of fields."""
    a = 1 + torch.rand(shape, dtype=torch.float64)
    p = torch.randn(shape, dtype=torch.float64)
    by_matrix = torch.from_numpy(PDE.matrix(a.numpy()) @ p.flatten().numpy()).reshape(shape)
    torch.testing.assert_close(PDE.imbalance(p, a, len(shape)), by_matrix - 1)
    solved = PDE.solve(a[None, None])[0, 0]
    assert PDE.imbalance(solved, a, len(shape)).abs().max() < 1e-10


def test_pressures_are_positive_and_highest_inside():
    """The maximum principle, on the benchmark's ground."""
    p = PDE.solve(ground(64))[0, 0]
    assert p.min() > 0
    assert p[1:-1, 1:-1].max() == p.max()
    with_sink = PDE.solve(ground(64), -torch.ones(1, 1, 64, 64))[0, 0]
    torch.testing.assert_close(with_sink, -p)


def test_what_the_source_brings_leaves_through_the_walls():
    """Σ 2 a p / h · h over all walls = ∫ f = 1; and Σ f p = Σ a |∇p|², the energy."""
    n = 32
    a = ground(n)[0, 0]
    p = PDE.solve(a[None, None])[0, 0]
    flux = 2 * a * p
    out = flux[0].sum() + flux[-1].sum() + flux[:, 0].sum() + flux[:, -1].sum()
    assert float(out) == pytest.approx(1, rel=1e-12)
    left = (p * (PDE.imbalance(p, a) + 1)).sum()
    assert float(left) == pytest.approx(float(p.sum()), rel=1e-12)


def test_ground_twice_as_open_halves_the_pressure_and_turns_with_the_box():
    a = ground(32)
    p = PDE.solve(a)
    torch.testing.assert_close(PDE.solve(2 * a), p / 2)
    torch.testing.assert_close(PDE.solve(a.mT.flip(-1)), p.mT.flip(-1))


def test_finer_cells_in_the_same_ground_change_little():
    """First order at walls between the two kinds of ground, 0.4 % from 64 to 128 cells."""
    a = ground(32)
    means = []
    for r in (1, 2, 4, 8):
        fine = a.repeat_interleave(r, -1).repeat_interleave(r, -2)
        means.append(torch.nn.functional.avg_pool2d(PDE.solve(fine), r))
    changes = [relative(x, y) for x, y in pairwise(means)]
    assert changes[0] < 0.02
    assert changes[1] < changes[0] / 2
    assert changes[2] < changes[1] / 2


def test_the_benchmark_has_two_kinds_of_ground_in_equal_shares():
    a = torch.cat([ground(32, i) for i in range(40)])
    assert set(a.unique().tolist()) == {3.0, 12.0}
    assert (a == 12).double().mean().item() == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(coefficient=torch.zeros(1, 1, 4, 4)), r"positive, got 0 in sample 0"),
        (dict(coefficient=torch.full((1, 1, 4, 4), math.nan)), "got nan in sample 0, channel 0"),
        (dict(coefficient=torch.full((1, 1, 4, 4), math.inf)), "got inf in sample 0"),
        (dict(coefficient=torch.ones(0, 1, 4, 4)), "at least one sample"),
        (dict(coefficient=torch.ones(4, 2, 4, 4)), r"\(sample, 1, X, Y\), got \(4, 2, 4, 4\)"),
        (dict(coefficient=torch.ones(4)), r"\(sample, 1, n\), got \(4,\)"),
        (dict(force=torch.ones(1, 1, 4, 5)), r"`force` must be of the shape \(1, 1, 4, 4\)"),
        (dict(force=torch.full((1, 1, 4, 4), math.inf)), "`force` must be finite"),
    ],
)
def test_bad_input_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        PDE.solve(**{**dict(coefficient=torch.ones(1, 1, 4, 4)), **change})
