"""Compact expansions of decaying kernels: measured errors, and a bound to hold them to (Lemma 2).

Write μ_r = (1, r, r², …, r^{N−1}). The Hilbert matrix is their mean square, and that is all
one needs:

    H = ∫₀¹ μ_r μ_rᵀ dr,    because ∫₀¹ r^{i+j} dr = 1/(i + j + 1).

**The error as a sum over eigenvalues.** The function pₗ(r) = ⟨φₗ, μ_r⟩ is a polynomial of
degree < N, and ∫ pₗ pₘ dr = φₗᵀ H φₘ = λₗ δₗₘ. Hence {pₗ/√λₗ} is an orthonormal basis of the
polynomials of degree < N on [0, 1], and Σₗ pₗ(r)²/λₗ is the same for every such basis: the
Christoffel function K_N(r) = Σ_{k<N} (2k + 1) P_k(2r − 1)², P_k Legendre's polynomials. So the
projection error of μ_r on the first L modes satisfies, for every r in [0, 1],

    E_L(r)² = Σ_{l>L} pₗ(r)² = Σ_{l>L} λₗ · pₗ(r)²/λₗ  ≤  λ_{L+1} K_N(r).                (1)

**The size of K_N.** |P_k| ≤ 1 gives K_N ≤ N², attained at r = 0 and r = 1. Inside, Bernstein's
inequality P_k(cos θ)² sin θ ≤ 2 / (π (k + ½)) and sin θ = 2√(r(1 − r)) give

    K_N(r) ≤ κ_N(r) := min(N², 2N / (π √(r(1 − r)))).                                     (2)

**The decay of λ.** With x_i = i + ½, H_ij = 1/(x_i + x_j). For any p₁, …, p_L > 0 put
B(x) = Π (x − p_j)/(x + p_j). The matrix (1 − B(x_i) B(x_j))/(x_i + x_j) has rank ≤ L, so
λ_{L+1} is at most the norm of B(x_i) H_ij B(x_j), at most λ₁ max B² over [½, N − ½]. The best
p_j are Zolotarev's, and for them max B² ≤ 4 exp(−π² L / log(4 x_max/x_min)) (Beckermann and
Townsend, "Bounds on the singular values of matrices with displacement structure", SIAM
Review 61, 2019). With λ₁ < π (Hilbert's inequality) and x_max/x_min = 2N − 1,

    λ_{L+1} ≤ 4π exp(−π² L / log(8N − 4)).                                                (3)

**The theorem's bound**, from (1), (2) and (3), for 0 ≤ r ≤ 1, N ≥ 2, L ≥ 0:

    ‖μ_r − P_L μ_r‖₂ ≤ 2 √(π κ_N(r)) exp(−π² L / (2 log(8N − 4))),                        (4)

    hence ε is reached by L = ⌈(2/π²) log(8N − 4) log(2 √(π κ_N(r)) / ε)⌉ modes.          (5)

r = 1 is included: marginal stability costs nothing but the N in κ. By the triangle inequality
(4) also holds, times Σ|cₖ|, for Σ cₖ rₖᵗ, and times ν([0, 1]) for every completely monotone
kernel ∫ rᵗ dν(r), such as (1 + t)^{−s}, s > 0.

**What does not follow.** For r < 0, and for complex roots, K_N grows like a power N of a number
above 1 off [0, 1], and (1) says nothing; nor is there anything to say, because the leading modes do
not alternate. A negative root is reached by alternating the modes, (−1)ᵗ φₗ[t]: then all of the
above holds for |r|. Nor does an ℓ² bound on a kernel bound the operator, as the paper's proof
reads: the norm of a convolution is at most the kernel's ℓ¹ norm, which costs a factor √N (2√N
for the two-sided kernel), and with it another (1/π²) log(8N − 4) log N modes.

Measured errors stop at the round-off that the modes themselves carry, below 1e-14 ‖g‖.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.bases import hilbert_eigenvalues
from sfo.registry import BASES

FLOOR = 1e-14
"""Relative size below which an error measured on up to 1,024 points is round-off."""


def powers(r: float | int | Tensor, n: int) -> Float[Tensor, "*roots n"]:
    """μ_r = (1, r, …, r^{n−1}), one row a root.

    Example:
        >>> powers(0.5, 3)
        tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64)
    """
    return torch.as_tensor(r, dtype=torch.float64)[..., None] ** torch.arange(_length(n))


def coefficients(
    g: Float[Tensor, "*kernels n"], n_modes: int, basis: str = "usb"
) -> Float[Tensor, "*kernels modes"]:
    """cₗ = ⟨φₗ, g⟩: the best approximation of g by L modes is Σₗ cₗ φₗ.

    Example:
        >>> phi = BASES["usb"](64, 3)
        >>> coefficients(phi[1], 3).round(decimals=6).abs().tolist()
        [0.0, 1.0, 0.0]
    """
    g = _kernel(g)
    return g @ BASES[basis](g.shape[-1], n_modes).T


def projection_errors(
    g: Float[Tensor, "*kernels n"],
    n_modes: int,
    basis: str = "usb",
    support: str = "one_sided",
) -> Float[Tensor, "*kernels modes_and_none"]:
    """‖g − P_l g‖₂ for l = 0, 1, …, n_modes.

    Args:
        g: One or more kernels. One-sided: their values at t = 0..n−1. Two-sided: at
            t = −(n−1)..n−1, an odd number of points.
        n_modes: The largest number of modes. Two-sided, the rows are even, odd, even, …
            extensions of half as many modes, and each error is the least-squares one.
        basis: A name in `BASES`.
        support: `"one_sided"` or `"two_sided"`.

    Example:
        >>> projection_errors(powers(0.9, 256), 30)[[0, 10, 20, 30]].log10().round()
        tensor([  0.,  -3.,  -7., -11.], dtype=torch.float64)
    """
    g = _kernel(g)
    if support == "one_sided":
        return _tails(g, BASES[basis](g.shape[-1], n_modes))
    if support != "two_sided":
        raise ValueError(f"`support` must be one_sided or two_sided, got {support!r}.")
    if g.shape[-1] % 2 == 0:
        raise ValueError(
            "A two-sided kernel has values at -(n-1)..n-1, an odd number, "
            f"got {g.shape[-1]} points."
        )
    half = g.shape[-1] // 2 + 1
    right, left = g[..., half - 1 :], g[..., :half].flip(-1)
    phi = BASES[basis](half, (n_modes + 1) // 2)
    # Over both sides each offset but 0 counts twice. QR makes the modes orthonormal for that
    # weight without changing what the first l of them span.
    weight = torch.full((half,), math.sqrt(2.0), dtype=torch.float64)
    weight[0] = 1.0
    even = _tails(weight * (right + left) / 2, torch.linalg.qr((weight * phi).T)[0].T)
    odd = _tails(math.sqrt(2.0) * (right - left)[..., 1:] / 2, torch.linalg.qr(phi[:, 1:].T)[0].T)
    rows = torch.arange(n_modes + 1)
    return torch.hypot(even[..., (rows + 1) // 2], odd[..., rows // 2])


def modes_needed(
    g: Float[Tensor, "n"],
    eps: float,
    basis: str = "usb",
    support: str = "one_sided",
    n_modes: int | None = None,
) -> int | None:
    """The smallest L whose measured error ‖g − P_L g‖₂ is at most `eps`.

    Tries L up to `n_modes`, by default all up to 2,048, in doublings; None if that is not
    enough.

    Example:
        >>> modes_needed(powers(0.9, 256), 1e-6), modes_needed(powers(0.9, 256), 1e-6, "fourier")
        (20, 256)
    """
    _tolerance(eps)
    most = min(_kernel(g).shape[-1], 2048) if n_modes is None else n_modes
    tried = min(32, most)
    while True:
        errors = projection_errors(g, tried, basis, support)
        if bool(errors[-1] <= eps):
            return int((errors <= eps).nonzero()[0])
        if tried == most:
            return None
        tried = min(2 * tried, most)


def christoffel(r: float, n: int) -> float:
    """K_n(r) = Σ_{k<n} (2k + 1) P_k(2r − 1)², by Legendre's recurrence in O(n).

    Example:
        >>> round(christoffel(1.0, 12)), round(christoffel(0.0, 12))
        (144, 144)
    """
    x = 2 * _root(r) - 1
    before, now, total = 0.0, 1.0, 0.0
    for k in range(_length(n)):
        total += (2 * k + 1) * now**2
        before, now = now, ((2 * k + 1) * x * now - k * before) / (k + 1)
    return total


def christoffel_bound(r: float, n: int) -> float:
    """κ_n(r) = min(n², 2n / (π √(r(1 − r)))), inequality (2)."""
    inside = _root(r) * (1 - r)
    return float(n**2 if inside == 0 else min(n**2, 2 * n / (math.pi * math.sqrt(inside))))


def eigenvalue_bound(n: int, n_modes: int) -> float:
    """4π exp(−π² L / log(8n − 4)) ≥ λ_{L+1}, inequality (3)."""
    return 4 * math.pi * math.exp(-(math.pi**2) * n_modes / math.log(8 * _length(n) - 4))


def error_bound(r: float, n: int, n_modes: int) -> float:
    """The explicit bound (4) on the error of L modes for μ_r, 0 ≤ r ≤ 1.

    Example:
        >>> f"{error_bound(0.9, 256, 30):.1e}"
        '3.0e-07'
    """
    return math.sqrt(christoffel_bound(r, n) * eigenvalue_bound(n, n_modes))


def sharp_error_bounds(r: float, n: int, n_modes: int) -> Float[Tensor, "modes_and_none"]:
    """The bound (1), √(λ_{l+1} K_n(r)) with the true eigenvalues, for l = 0..n_modes.

    A few modes above the measured error, where (4) is off by the factor between the true
    eigenvalues and (3). At l = n the error is zero.

    Example:
        >>> errors = projection_errors(powers(0.9, 64), 8)
        >>> bool((errors <= sharp_error_bounds(0.9, 64, 8)).all())
        True
    """
    known = min(n_modes + 1, _length(n))
    squared = hilbert_eigenvalues(n, known) * christoffel(r, n)
    zero = torch.zeros(n_modes + 1 - known, dtype=torch.float64)
    return torch.cat([squared.sqrt(), zero])


def modes_guaranteed(r: float, n: int, eps: float) -> int:
    """The L of (5), at most n: the bound proves that these modes reach `eps`.

    Example:
        >>> [modes_guaranteed(0.9, 65536, 10.0**-k) for k in (2, 4, 6, 8)]
        [32, 44, 57, 69]
    """
    start = 2 * math.sqrt(math.pi * christoffel_bound(r, n)) / _tolerance(eps)
    wanted = math.ceil(2 / math.pi**2 * math.log(8 * _length(n) - 4) * math.log(start))
    return min(max(wanted, 0), n)


def decay_rate(errors: Float[Tensor, "modes_and_none"], below: float = 1e-1) -> float:
    """s in error ≈ C exp(−s L), fitted by least squares between `below` and 1e-12, relative.

    Where round-off stops the fall earlier, the fit stops at thirty times that level. NaN if
    fewer than three errors remain.
    """
    relative = (errors / errors[0]).numpy()
    floor = max(1e-12, 30 * relative[-1]) if relative[-1] < 1e-8 else 1e-12
    use = np.flatnonzero((relative <= below) & (relative >= floor))
    if len(use) < 3:
        return math.nan
    return float(-np.polyfit(use, np.log(relative[use]), 1)[0])


def _tails(g: Tensor, phi: Float[Tensor, "modes n"]) -> Tensor:
    """Errors after 0, 1, …, L orthonormal rows, summed from the small end: no cancellation."""
    c = g @ phi.T
    rest = g - c @ phi
    # What round-off left in the span goes out in a second pass.
    rest = rest - (rest @ phi.T) @ phi
    squares = torch.cat([c**2, (rest**2).sum(-1, keepdim=True)], dim=-1)
    return squares.flip(-1).cumsum(-1).flip(-1).sqrt()


def _kernel(g: Tensor) -> Tensor:
    g = torch.as_tensor(g, dtype=torch.float64)
    if g.ndim == 0:
        raise ValueError(f"`g` must be a sequence of kernel values, got the number {g.item()}.")
    _length(g.shape[-1])
    return g


def _length(n: int) -> int:
    if n < 2:
        raise ValueError(f"A kernel needs n >= 2 points, got n={n}.")
    return int(n)


def _root(r: float) -> float:
    if not 0 <= r <= 1:
        raise ValueError(
            f"The bound holds for roots r in [0, 1], got r={r}. For a negative root, alternate "
            "the modes, (-1)^t phi[t], and pass |r|."
        )
    return float(r)


def _tolerance(eps: float) -> float:
    if not eps > 0:
        raise ValueError(f"`eps` must be positive, got eps={eps}.")
    return float(eps)
