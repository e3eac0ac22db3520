import numpy as np
import torch

from sfo.bases import (
    chebyshev_modes,
    fourier_modes,
    hankel_modes,
    multi_index,
    tied_index,
    usb_modes,
)


def test_fourier_diagonalises_the_laplacian():
    """Each mode is an eigenvector of the periodic second difference, −4 sin²(πk/n)."""
    n = 16
    phi = fourier_modes(n, n)
    laplacian = phi.roll(1, 1) + phi.roll(-1, 1) - 2 * phi
    k = (torch.arange(n) + 1) // 2
    torch.testing.assert_close(laplacian, -4 * torch.sin(torch.pi * k / n)[:, None] ** 2 * phi)


def test_chebyshev_spans_the_polynomials():
    """x^m is a combination of the first m + 1 modes, for every m, also on a small grid."""
    n = 20
    phi = chebyshev_modes(n, n)
    x = torch.linspace(-1, 1, n, dtype=torch.float64)
    for m in range(n):
        power = x**m
        rest = power - phi[: m + 1].T @ (phi[: m + 1] @ power)
        assert rest.norm() < 1e-12 * power.norm()


def test_chebyshev_three_term_recurrence():
    """x φₖ = βₖ₊₁ φₖ₊₁ + βₖ φₖ₋₁ with Chebyshev's closed form of β; a QR fails from k = 52 on."""
    n = 64
    phi = chebyshev_modes(n, n)
    x = torch.linspace(-1, 1, n, dtype=torch.float64)
    k = torch.arange(1, n, dtype=torch.float64)
    beta = torch.sqrt(k**2 * (n**2 - k**2) / (4 * k**2 - 1)) / (n - 1)
    truth = beta[1:, None] * phi[2:] + beta[:-1, None] * phi[:-2]
    assert (x * phi[1:-1] - truth).abs().max() < 1e-14


def test_hankel_modes_are_eigenvectors_that_oscillate():
    n = 32
    s = np.arange(1, n + 1)[:, None] + np.arange(1, n + 1)
    z = torch.from_numpy(2 / (s**3 - s))
    phi = hankel_modes(n, 20)
    values = torch.einsum("li,ij,lj->l", phi, z, phi)
    assert (phi @ z - values[:, None] * phi).abs().max() < 1e-15
    assert (phi[:, 1:] * phi[:, :-1] < 0).sum(dim=1).tolist() == list(range(20))


def test_products_are_orthonormal_and_ordered():
    axes = [usb_modes(6, 3), usb_modes(5, 3)]
    tied, multi = tied_index(axes), multi_index(axes)
    torch.testing.assert_close(
        torch.einsum("lxy,kxy->lk", multi, multi), torch.eye(9, dtype=torch.float64)
    )
    torch.testing.assert_close(multi[5], torch.outer(axes[0][1], axes[1][2]))
    torch.testing.assert_close(multi[::4], tied)
