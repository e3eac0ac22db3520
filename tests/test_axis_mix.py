from functools import reduce

import pytest
import torch
from direct import toeplitz

from sfo import axis_mix as module
from sfo.axis_mix import axis_mix, separable_modes
from sfo.bases import usb_modes


def two_sided_modes(n, n_modes, period):
    """Modes with both signs of the offset, even and odd parts drawn at random."""
    right, left = torch.randn(2, n_modes, n, dtype=torch.float64)
    phi = torch.zeros(n_modes, period, dtype=torch.float64)
    phi[:, :n] = right
    if period > n:
        phi[:, n + 1 :] = left[:, 1:]
    return phi


def reflecting_matrix(kernel, n, lower, upper):
    """The direct sum over a point and its two mirror images."""
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            for source, weight in ((j, 1.0), (-1 - j, lower), (2 * n - 1 - j, upper)):
                if abs(i - source) < n:
                    matrix[i, j] += weight * kernel(i - source)
    return matrix


@pytest.mark.parametrize("longest", [0, 128])
@pytest.mark.parametrize("shape", [(7,), (5, 6), (4, 3, 5)])
def test_against_the_direct_sum_over_points_and_images(shape, longest, monkeypatch):
    """By matrices and by transforms, along every axis, with different weights at all walls."""
    monkeypatch.setattr(module, "MATRIX_POINTS", longest)
    channels, n_modes = 2, 3
    axes = [two_sided_modes(n, n_modes, 2 * n) for n in shape]
    theta = torch.randn(len(shape), channels, n_modes, dtype=torch.float64)
    reflections = torch.randn(len(shape), 2, channels, dtype=torch.float64)
    v = torch.randn(2, channels, *shape, dtype=torch.float64)
    out = axis_mix(v, theta, separable_modes(axes, shape), reflections)
    for r in range(channels):
        matrices = []
        for m, n in enumerate(shape):
            kappa = theta[m, r] @ axes[m]
            lower, upper = reflections[m, :, r]
            matrices.append(reflecting_matrix(lambda t, k=kappa: k[t], n, lower, upper))
        whole = reduce(torch.kron, matrices)
        torch.testing.assert_close(out[:, r].flatten(1), v[:, r].flatten(1) @ whole.T)


@pytest.mark.parametrize("longest", [0, 128])
@pytest.mark.parametrize(("boundary", "weight"), [("zero", 0.0), ("reflect", 1.0)])
def test_zero_and_mirrored_continuation_are_weights_0_and_1(longest, boundary, weight, monkeypatch):
    monkeypatch.setattr(module, "MATRIX_POINTS", longest)
    shape = (6, 5)
    axes = [two_sided_modes(n, 2, 2 * n) for n in shape]
    theta = torch.randn(2, 1, 2, dtype=torch.float64)
    v = torch.randn(3, 1, *shape, dtype=torch.float64)
    out = axis_mix(v, theta, separable_modes(axes, shape), torch.full((2, 2, 1), weight).double())
    kernels = [theta[m, 0] @ axes[m] for m in range(2)]
    matrices = [
        toeplitz(lambda t, k=k: k[t], n, boundary) for k, n in zip(kernels, shape, strict=True)
    ]
    whole = torch.kron(*matrices)
    torch.testing.assert_close(out.flatten(1), v.flatten(1) @ whole.T)


@pytest.mark.parametrize("longest", [0, 128])
def test_a_circle_has_no_images(longest, monkeypatch):
    monkeypatch.setattr(module, "MATRIX_POINTS", longest)
    shape = (6, 5)  # an even axis is applied in halves
    axes = [usb_modes(n, 3) for n in shape]
    theta = torch.randn(2, 2, 3, dtype=torch.float64)
    v = torch.randn(2, 2, *shape, dtype=torch.float64)
    modes = separable_modes(axes, shape)
    out = axis_mix(v, theta, modes, torch.ones(2, 2, 2, dtype=torch.float64))
    kappa = torch.einsum("rx,ry->rxy", theta[0] @ axes[0], theta[1] @ axes[1])
    truth = torch.fft.ifft2(torch.fft.fft2(kappa) * torch.fft.fft2(v)).real
    torch.testing.assert_close(out, truth)


@pytest.mark.parametrize("longest", [0, 128])
@pytest.mark.parametrize("circles", [1, 2])
def test_gradients(longest, circles, monkeypatch):
    """First and second ones, with walls and, by blocks of the matrix, on circles."""
    monkeypatch.setattr(module, "MATRIX_POINTS", longest)
    shape = (4, 6)
    modes = separable_modes([two_sided_modes(n, 2, n * (3 - circles)) for n in shape], shape)
    inputs = [
        torch.randn(size, dtype=torch.float64, requires_grad=True)
        for size in ((2, 2, *shape), (2, 2, 2), (2, 2, 2))
    ]
    if circles == 2:
        inputs[2] = inputs[2].detach()  # no images, no weights of theirs
    checks = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    for check in checks:
        check(lambda v, t, w: axis_mix(v, t, modes, w), inputs, fast_mode=True)


@pytest.mark.parametrize("shape", [(8,), (6, 4), (4, 6, 8)])
def test_halves_are_laid_out_as_whole_columns(shape):
    """Every axis of an even circle, with and without gradients, equals the whole matrix."""
    axes = [usb_modes(n, 3) for n in shape]
    theta = torch.randn(len(shape), 2, 3, dtype=torch.float64)
    modes = separable_modes(axes, shape)
    assert len(shape) == 1 or all(axis.is_halved for axis in modes.axes)
    v = torch.randn(3, 2, *shape, dtype=torch.float64)
    truth = v
    for m, n in enumerate(shape):
        i = torch.arange(n)
        whole = (theta[m] @ axes[m])[:, (i[:, None] - i) % n]
        truth = torch.einsum("rij,brj...->bri...", whole, truth.movedim(m + 2, 2)).movedim(2, m + 2)
    torch.testing.assert_close(axis_mix(v, theta, modes), truth)
    torch.testing.assert_close(axis_mix(v.requires_grad_(), theta, modes), truth)
