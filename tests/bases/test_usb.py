import mpmath
import pytest
import torch

from sfo.bases import hilbert_eigenvalues, usb_dense_modes, usb_modes


def reference(n):
    """All modes and eigenvalues of the Hilbert matrix, leading first, to 20 digits and more."""
    with mpmath.workdps(4 * n // 2 + 40):
        h = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                h[i, j] = mpmath.mpf(1) / (i + j + 1)
        values, vectors = mpmath.eigsy(h)
        # The last entry of a mode is never tiny, and its sign follows from l − 1 sign changes.
        signs = [mpmath.sign(vectors[n - 1, n - 1 - k]) * (-1) ** k for k in range(n)]
        rows = [[float(s * vectors[i, n - 1 - k]) for i in range(n)] for k, s in enumerate(signs)]
        return torch.tensor(rows, dtype=torch.float64), [values[n - 1 - k] for k in range(n)]


@pytest.mark.parametrize("n", [8, 16, 32, pytest.param(64, marks=pytest.mark.slow)])
def test_every_mode_and_eigenvalue_against_high_precision(n):
    phi, values = reference(n)
    assert (usb_modes(n, n) - phi).abs().max() < 1e-12
    relative = [
        abs(float(mpmath.mpf(x.item()) / v - 1))
        for x, v in zip(hilbert_eigenvalues(n, n), values, strict=True)
    ]
    assert max(relative) < 1e-13


def test_dense_eigensolver_loses_the_modes():
    """What the exact route is for: `eigh` fails from l = 16 on at n = 32."""
    exact, dense = usb_modes(32, 20), usb_dense_modes(32, 20)
    error = (exact - dense).abs().amax(dim=1)
    assert error[:12].max() < 1e-5
    assert error[16:].max() > 0.1


@pytest.mark.parametrize("n", [64, 65, 257, 1024])
def test_modes_oscillate(n):
    """H is totally positive, so φₗ has l − 1 sign changes (Gantmacher–Krein)."""
    phi = usb_modes(n, 64)
    assert ((phi[:, 1:] * phi[:, :-1] < 0).sum(dim=1)).tolist() == list(range(64))
    assert (phi[:32, 0] > 0).all()


@pytest.mark.parametrize("n", [4096, 65_536])
def test_orthonormal_on_long_grids(n):
    phi = usb_modes(n, 24)
    assert (phi @ phi.T - torch.eye(24)).abs().max() < 1e-12


def test_eigenvectors_of_the_hilbert_matrix():
    i = torch.arange(100, dtype=torch.float64)
    h = 1 / (i[:, None] + i + 1)
    phi, values = usb_modes(100, 30), hilbert_eigenvalues(100, 30)
    assert (h @ phi.T - phi.T * values).abs().max() < 1e-12


def test_eigenvalues_sum_to_the_trace():
    i = torch.arange(50, dtype=torch.float64)
    torch.testing.assert_close(hilbert_eigenvalues(50, 50).sum(), (1 / (2 * i + 1)).sum())


def test_eigenvalues_do_not_depend_on_how_many_are_asked_for():
    few, all_ = hilbert_eigenvalues(200, 12), hilbert_eigenvalues(200, 40)
    torch.testing.assert_close(few, all_[:12], rtol=1e-14, atol=0)


@pytest.mark.slow
def test_a_million_points():
    phi = usb_modes(1_048_576, 20)
    assert (phi @ phi.T - torch.eye(20)).abs().max() < 1e-12


def test_modes_diagonalise_the_hilbert_matrix_on_a_long_grid():
    """The tridiagonal matrix alone is off by 1e-17 n², 1e-10 here; the polished modes are not."""
    n = 4096
    phi, values = usb_modes(n, 20), hilbert_eigenvalues(n, 20)
    i = torch.arange(n, dtype=torch.float64)
    h = phi @ (1 / (i[:, None] + i + 1)) @ phi.T
    assert (h - torch.diag(values)).abs().max() < 1e-13
