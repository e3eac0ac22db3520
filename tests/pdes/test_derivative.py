"""Derivatives of any order and mixture, on grids of one to three axes."""

import math

import pytest
import torch

from sfo.pdes.derivative import Central, OnCoefficients, Spectral

LENGTHS = (2.0, 3.0, 1.5)
TURN = [torch.sin, torch.cos, lambda x: -torch.sin(x), lambda x: -torch.cos(x)]


def product_of_waves(shape, orders, numbers=(2, 1, 3)):
    """∂^orders of Π sin(kᵢ xᵢ), one wave per axis, by hand."""
    field = torch.ones(())
    for axis, (n, order) in enumerate(zip(shape, orders, strict=True)):
        k = 2 * math.pi * numbers[axis] / LENGTHS[axis]
        x = torch.arange(n, dtype=torch.float64) * LENGTHS[axis] / n
        row = k**order * TURN[order % 4](k * x)
        field = field * row.reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return field


@pytest.mark.parametrize(
    ("shape", "orders"),
    [
        ((16,), (1,)),
        ((15,), (3,)),
        ((16,), (6,)),
        ((12, 9), (1, 0)),
        ((12, 8), (2, 1)),
        ((9, 8), (1, 3)),
        ((8, 6, 10), (1, 1, 1)),
        ((8, 7, 9), (0, 4, 2)),
    ],
)
def test_waves_are_differentiated_exactly(shape, orders):
    d = Spectral(shape, LENGTHS[: len(shape)])
    exact = product_of_waves(shape, orders)
    u = product_of_waves(shape, (0,) * len(shape))
    torch.testing.assert_close(d(u, *orders), exact, rtol=0, atol=1e-11 * exact.abs().max())
    batch = torch.stack([u, 2 * u])[:, None]
    torch.testing.assert_close(d(batch, *orders)[1, 0], 2 * d(u, *orders))


@pytest.mark.parametrize("shape", [(16,), (12, 9), (8, 6, 10)])
def test_the_laplacian_is_the_sum_of_second_derivatives_and_has_an_inverse(shape):
    d = Spectral(shape, LENGTHS[: len(shape)])
    u = torch.randn(shape, dtype=torch.float64)
    seconds = [d(u, *[2 * (i == axis) for i in range(len(shape))]) for axis in range(len(shape))]
    torch.testing.assert_close(d.laplacian(u), sum(seconds), rtol=0, atol=1e-9)
    zero = [0] * len(shape)
    back = d(d.laplacian(u), *zero, laplacian=-1)
    torch.testing.assert_close(back, u - u.mean(), rtol=0, atol=1e-12)
    torch.testing.assert_close(d(u, *zero, laplacian=2), d.laplacian(d.laplacian(u)))


def test_symbols_are_what_waves_are_multiplied_by():
    """The transform of a derivative is the symbol times the transform, in both precisions."""
    shape, orders = (6, 10), (1, 2)
    on_waves, on_values = OnCoefficients(shape, (2.0, 3.0)), Spectral(shape, (2.0, 3.0))
    u = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(
        torch.fft.rfft2(on_values(u, *orders)), on_waves(torch.fft.rfft2(u), *orders)
    )
    assert on_values(u.float(), *orders).dtype == torch.float32


def test_odd_derivatives_of_the_shortest_wave_are_zero():
    """cos(πj) is its own mirror image: on the grid it has no slope."""
    shortest = torch.tensor([1.0, -1.0] * 4).double()
    d = Spectral((8,), (1.0,))
    assert not d(shortest, 1).any()
    torch.testing.assert_close(d(shortest, 2), -((8 * math.pi) ** 2) * shortest)


def test_coefficients_that_are_known_are_not_computed_again():
    d = Spectral((8,), (1.0,))
    u = torch.randn(8, dtype=torch.float64)
    d.remember(u, 2 * torch.fft.rfft(u))
    torch.testing.assert_close(d(u, 2), 2 * d(u.clone(), 2))


@pytest.mark.parametrize(
    ("orders", "laplacian"), [((1, 0), 0), ((1, 1), 0), ((0, 3), 0), ((0, 0), 1)]
)
def test_differences_tend_to_derivatives_with_the_square_of_the_spacing(orders, laplacian):
    errors = []
    for n in (32, 64):
        x = torch.arange(n, dtype=torch.float64) * 2 * math.pi / n
        u = torch.exp(torch.sin(x))[:, None] * torch.cos(x + 1)
        central, spectral = (kind((n, n), (2 * math.pi,) * 2) for kind in (Central, Spectral))
        error = central(u, *orders, laplacian=laplacian) - spectral(u, *orders, laplacian=laplacian)
        errors.append(error.abs().max())
    assert 3.8 < errors[0] / errors[1] < 4.2


def test_mistakes_are_named():
    u = torch.zeros(4, 4)
    for kind in (Central, Spectral, OnCoefficients):
        with pytest.raises(
            ValueError, match=r"one order per axis, 2 of .* got \(2,\).*d\(u, 2, 0\)"
        ):
            kind((4, 4), (1.0, 1.0))(u, 2)
    with pytest.raises(ValueError, match=r"got \(-1, 0\)"):
        Spectral((4, 4), (1.0, 1.0))(u, -1, 0)
    with pytest.raises(ValueError, match="at least 0 for differences, got -1"):
        Central((4, 4), (1.0, 1.0))(u, 0, 0, laplacian=-1)
