"""The Universal Spectral Basis (USB): the eigenvectors of the Hilbert matrix."""

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import eigh, eigh_tridiagonal, solve_banded
from scipy.linalg.lapack import dgejsv
from torch import Tensor

from sfo.bases.checks import check_size
from sfo.registry import BASES


@BASES.register("usb")
def usb_modes(n: int, n_modes: int) -> Float[Tensor, "modes n"]:
    """The leading modes φ₁, …, φ_L of the n × n Hilbert matrix, exact at any n and L.

        H φₗ = λₗ φₗ,    Hᵢⱼ = 1 / (i + j + 1),    λ₁ > … > λ_L > 0

    The rows are orthonormal, φₗ changes sign l − 1 times, and φₗ[0] > 0, so that no
    mode flips from one grid or one machine to the next. Time and memory are O(n L).

    Args:
        n: Number of grid points along the axis.
        n_modes: Number of modes L, at most n.

    Returns:
        One mode a row, in float64.

    Example:
        >>> phi = usb_modes(n=256, n_modes=20)
        >>> bool(torch.dist(phi @ phi.T, torch.eye(20)) < 1e-12)
        True
    """
    n, n_modes = check_size(n, n_modes)
    # A dense eigensolver loses φₗ to round-off from l = 16 on at n = 32. This
    # tridiagonal matrix has the same eigenvectors and keeps them all (Grünbaum,
    # "A remark on Hilbert's matrix", 1982). Divided by n⁴ its entries are O(1).
    i = np.arange(n, dtype=np.float64) / n
    p = i * (i + 1 / n)
    diagonal = 2 * p * (p - 1 + 1 / n**2)
    off_diagonal = i[1:] ** 2 * (1 - i[1:] ** 2)
    top = (n - n_modes, n - 1)
    _, phi = eigh_tridiagonal(diagonal, off_diagonal, select="i", select_range=top)
    phi = _polish(phi.T[::-1]) if n > 2 else phi.T[::-1]
    # Far modes all but vanish at x = 0 (3e-16 for l = 32, n = 64), not at the end.
    sign = np.sign(phi[:, -1]) * (-1.0) ** np.arange(n_modes)
    return torch.from_numpy(sign[:, None] * phi)


def _polish(phi: np.ndarray) -> np.ndarray:
    """Take the modes from n² round-offs to a few, by Newton steps on the eigenvalue equation.

    The entries of T reach n⁴/4, its leading eigenvalues differ by n²: rounding the entries
    alone moves the modes by 1e-17 n², 5e-8 at n = 65,536. Written as differences,

        (n² − 1) − T = Dᵀ diag(e) D + 2 diag(p),    (Dx)ᵢ = xᵢ₊₁ − xᵢ,    eᵢ = i²(n² − i²),

    nothing cancels: every term is positive, and small on smooth modes. So the residual in
    this form is accurate, and a solve with the rounded T is good enough to correct with.
    """
    n = phi.shape[1]
    i = np.arange(n, dtype=np.float64)
    e = i[1:] ** 2 * (1 - (i[1:] / n) ** 2)
    p = 2 * (i / n) * ((i + 1) / n)
    band = np.zeros((3, n))
    band[0, 1:] = band[2, :-1] = -e
    diagonal = p + np.append(e, 0) + np.append(0, e)
    out = np.empty_like(phi)
    for row, x in enumerate(phi):
        for _ in range(4):
            dx = np.diff(x)
            mu = (e * dx) @ dx + (p * x) @ x
            residual = (p - mu) * x + np.append(0, e * dx) - np.append(e * dx, 0)
            # A shift a hair off the eigenvalue: on it, the system would be singular.
            band[1] = diagonal - mu * (1 + 1e-9)
            step = solve_banded((1, 1), band, residual)
            step -= (step @ x) * x
            x = (x - step) / np.linalg.norm(x - step)
            if np.abs(step).max() < 1e-14:
                break
        out[row] = x
    return out


@BASES.register("usb_dense")
def usb_dense_modes(n: int, n_modes: int) -> Float[Tensor, "modes n"]:
    """The modes as a dense `eigh(H)` gives them: the paper's route, kept for comparison.

    H is so ill-conditioned that these are round-off noise from l = 16 on at n = 32 and
    from l = 23 on at n = 256. They are orthonormal, but the noise changes from one LAPACK
    to the next. Use `usb_modes` for everything but like-for-like runs.

    Example:
        >>> exact, dense = usb_modes(32, 20), usb_dense_modes(32, 20)
        >>> [bool(torch.dist(exact[l], dense[l]) < 1e-5) for l in (0, 7, 18)]
        [True, True, False]
    """
    n, n_modes = check_size(n, n_modes)
    i = np.arange(n, dtype=np.float64)
    _, phi = eigh(1 / (i[:, None] + i + 1))
    phi = phi.T[::-1][:n_modes]
    sign = np.where(phi[:, -1] < 0, -1.0, 1.0) * (-1.0) ** np.arange(n_modes)
    return torch.from_numpy(sign[:, None] * phi)


def hilbert_eigenvalues(n: int, n_modes: int) -> Float[Tensor, "modes"]:
    """The leading eigenvalues λ₁ > … > λ_L of the n × n Hilbert matrix.

    Each is accurate to a few units in its own last place, however small: at n = 32 they
    fall to 1e-47, where `eigh` and the Rayleigh quotient of an exact mode in float64 both
    stop at 1e-17.

    Example:
        >>> hilbert_eigenvalues(n=3, n_modes=3)
        tensor([1.4083, 0.1223, 0.0027], dtype=torch.float64)
        >>> f"{hilbert_eigenvalues(n=32, n_modes=32)[-1].item():.10e}"
        '4.2100990324e-47'
    """
    n, n_modes = check_size(n, n_modes)
    # H is a Cauchy matrix: after any pivots the remainder of Gaussian elimination is
    # wᵢ wⱼ / (i + j + 1), a product without cancellation. With complete pivoting this
    # gives H = G Gᵀ with every entry of G accurate, and one-sided Jacobi finds the
    # singular values √λ of such a G to high relative accuracy (Demmel, "Accurate
    # singular value decompositions of structured matrices", 1999).
    i = np.arange(n, dtype=np.float64)
    w = np.ones(n)
    columns: list[np.ndarray] = []
    pivots: list[float] = []
    while len(columns) < n:
        remainder = w**2 / (2 * i + 1)
        if len(columns) >= n_modes and remainder.sum() < 1e-18 * pivots[n_modes - 1]:
            break
        p = int(np.argmax(remainder))
        pivots.append(remainder[p])
        columns.append(w * np.sqrt(2 * p + 1) / (i + p + 1))
        w = w * (i - p) / (i + p + 1)
    # joba=2 keeps tiny columns, jobu = jobv = 3 asks for singular values alone.
    sigma, _, _, work, _, info = dgejsv(np.stack(columns, axis=1), joba=2, jobu=3, jobv=3, jobr=0)
    if info != 0:
        raise ArithmeticError(f"LAPACK's dgejsv did not converge at n={n} (info={info}).")
    sigma = np.sort(sigma * (work[0] / work[1]))[::-1]
    return torch.from_numpy(sigma[:n_modes] ** 2)
