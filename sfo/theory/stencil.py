"""Stable stencils and their Green's kernels in closed form (Lemma 1)."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.linalg import solveh_banded
from torch import Tensor

Numbers: TypeAlias = float | int | Sequence[Any] | np.ndarray | Tensor
"""What a user may write for a number, a list of offsets or a matrix."""


class Stencil:
    """The three-point operator (Au)[i] = a u[i] + b (u[i−1] + u[i+1]) on ℤ.

    `a` and `b` are two numbers, or two symmetric commuting d × d matrices (the paper's A₀
    and A₁). Commuting symmetric matrices share an orthonormal eigenbasis u₁, …, u_d, in
    which A falls apart into d scalar stencils (αₖ, βₖ). The symbol of one of them,

        αₖ + 2 βₖ cos θ  ≥  αₖ − 2|βₖ|,

    stays positive if and only if αₖ > 2|βₖ|: that is stability. For t ≠ 0 the kernel solves
    β g[t−1] + α g[t] + β g[t+1] = 0, whose decaying solution is rᵗ with r the root of
    β r² + α r + β = 0 inside the unit circle; the equation at t = 0 fixes the factor:

        sₖ = √((αₖ − 2βₖ)(αₖ + 2βₖ)),    rₖ = −2βₖ / (αₖ + sₖ),    Θₖ = uₖ uₖᵀ / sₖ,

        G[t] = Σₖ Θₖ rₖ^|t|,    ‖A⁻¹‖ = maxₖ 1 / (αₖ − 2|βₖ|).

    This form of r is the paper's (−α + s)/(2β) without its cancellation, and it is right at
    β = 0, where r = 0 and G[t] = δ_{t0}/α. r has the sign of −β: diffusion gives 0 < r < 1.

    Attributes:
        alpha, beta: The eigenvalue pairs, `(d,)`.
        vectors: The joint eigenvectors, one per column, `(d, d)`.
        r: The roots rₖ, `(d,)`.
        theta: The matrices Θₖ, `(d, d, d)`, the first axis counting k.

    Example:
        >>> Stencil(2.5, -1.0).green([0, 1, -1])
        tensor([0.6667, 0.3333, 0.3333], dtype=torch.float64)
        >>> Stencil(2.0, -1.0)
        Traceback (most recent call last):
        ValueError: A stable stencil needs a > 2|b| for every pair of eigenvalues, got a=2, b=-1 \
(a - 2|b| = 0). Enlarge `a` (more reaction, a shorter time step) or shrink `b`.
    """

    def __init__(self, a: Numbers, b: Numbers) -> None:
        self.a, self.b = _symmetric("a", a), _symmetric("b", b)
        if self.a.shape != self.b.shape:
            raise ValueError(
                "`a` and `b` must be two numbers or two matrices of one size, got shapes "
                f"{tuple(self.a.shape)} and {tuple(self.b.shape)}. For a scalar times the "
                "identity, pass the matrix."
            )
        self.is_scalar = self.a.ndim == 0
        a_, b_ = np.atleast_2d(self.a.numpy()), np.atleast_2d(self.b.numpy())
        vectors = _joint_eigenvectors(a_, b_)
        self.vectors = torch.from_numpy(vectors)
        self.alpha = torch.from_numpy(np.einsum("ik,ij,jk->k", vectors, a_, vectors))
        self.beta = torch.from_numpy(np.einsum("ik,ij,jk->k", vectors, b_, vectors))
        margin = self.alpha - 2 * self.beta.abs()
        worst = int(margin.argmin())
        # An eigenvalue is known to a few units in the last place of the matrix, no better.
        if not margin[worst] > 4e-16 * len(vectors) * float(np.abs(a_).max()):
            raise ValueError(
                "A stable stencil needs a > 2|b| for every pair of eigenvalues, got "
                f"a={self.alpha[worst]:.6g}, b={self.beta[worst]:.6g} "
                f"(a - 2|b| = {margin[worst]:.3g}). "
                "Enlarge `a` (more reaction, a shorter time step) or shrink `b`."
            )
        scale = torch.sqrt((self.alpha - 2 * self.beta) * (self.alpha + 2 * self.beta))
        self.r = -2 * self.beta / (self.alpha + scale)
        self.weight = 1 / scale
        self.theta = torch.einsum("k,ik,jk->kij", self.weight, self.vectors, self.vectors)

    def __repr__(self) -> str:
        if self.is_scalar:
            return f"Stencil(a={self.a:.6g}, b={self.b:.6g}, r={self.r[0]:.6g})"
        return f"Stencil({len(self.r)} channels, |r| <= {self.r.abs().max():.6g})"

    @property
    def inverse_norm(self) -> float:
        """‖A⁻¹‖ on ℓ²(ℤ): the scale against which an absolute ε is to be read."""
        return float((1 / (self.alpha - 2 * self.beta.abs())).max())

    def green(self, t: Numbers) -> Float[Tensor, "..."]:
        """G[t] at integer offsets: t's shape for a scalar stencil, else (*t.shape, d, d)."""
        kernel = self.weight * self.r ** _offsets(t).abs()[..., None]
        return self._assemble(kernel)

    def matrix(self, n: int) -> Float[Tensor, "nd nd"]:
        """The finite matrix on n interior points with zero Dirichlet ends, point by point."""
        n = _points(n)
        near = torch.diag(torch.ones(n - 1, dtype=torch.float64), 1)
        a, b = torch.atleast_2d(self.a), torch.atleast_2d(self.b)
        return torch.kron(torch.eye(n, dtype=torch.float64), a) + torch.kron(near + near.T, b)

    def dirichlet_green(self, n: int) -> Float[Tensor, "nd nd"]:
        """The inverse of `matrix(n)` in closed form, by the method of images.

        Mirror the source at j in both ends, 0 and n + 1, with a change of sign, again and
        again, and sum the geometric series. With R = r^{2(n+1)} and s = 1/weight,

            s G(i, j) = (r^|i−j| − r^{i+j} − R r^{−i−j} + R r^{−|i−j|}) / (1 − R).

        So the free kernel is off by at most (|r|^{i+j} + |r|^{2(n+1)−i−j}) / s: the first
        image on either side, and nothing once both ends are a few decay lengths away.
        """
        i = torch.arange(1, _points(n) + 1)
        distance, both = (i[:, None] - i).abs(), i[:, None] + i
        period = 2 * (n + 1)
        r = self.r[:, None, None]
        images = r**distance - r**both - r ** (period - both) + r ** (period - distance)
        kernel = self.weight[:, None, None] * images / (1 - r**period)
        blocks = torch.einsum("kij,pk,qk->ipjq", kernel, self.vectors, self.vectors)
        return blocks.flatten(2).flatten(0, 1)

    def solve(self, f: Tensor) -> Tensor:
        """The direct solution of `matrix(n) u = f`, f `(n,)` or `(n, d)`, in O(n d)."""
        f = torch.as_tensor(f, dtype=torch.float64)
        wanted = (len(f),) if self.is_scalar else (len(f), len(self.r))
        if tuple(f.shape) != wanted:
            raise ValueError(f"`f` must have shape (n,) or (n, d), got {tuple(f.shape)}.")
        modal = (f[:, None] if self.is_scalar else f @ self.vectors).numpy()
        out = np.empty_like(modal)
        for k, (alpha, beta) in enumerate(zip(self.alpha, self.beta, strict=True)):
            band = np.full((2, len(f)), float(beta))
            band[1] = float(alpha)
            # SciPy's banded solver refuses a single point.
            out[:, k] = modal[:, k] / band[1] if len(f) == 1 else solveh_banded(band, modal[:, k])
        u = torch.from_numpy(out)
        return u[:, 0] if self.is_scalar else u @ self.vectors.T

    def implicit_step(self, dt: float) -> "Stencil":
        """I + dt A: one backward Euler step of u′ = −A u is its inverse."""
        if not dt > 0:
            raise ValueError(f"`dt` must be positive, got dt={dt}.")
        eye = torch.eye(len(self.r), dtype=torch.float64)
        return Stencil((eye[0, 0] if self.is_scalar else eye) + dt * self.a, dt * self.b)

    def _assemble(self, kernel: Float[Tensor, "*t k"]) -> Tensor:
        if self.is_scalar:
            return kernel[..., 0]
        return torch.einsum("...k,ik,jk->...ij", kernel, self.vectors, self.vectors)


class WideStencil:
    """The symmetric operator (Au)[i] = c₀ u[i] + Σₖ cₖ (u[i−k] + u[i+k]), k = 1..w.

    Its symbol p(z) = c₀ + Σₖ cₖ (zᵏ + z⁻ᵏ) is a polynomial q of degree w in y = (z + 1/z)/2,
    q(y) = c₀ + 2 Σₖ cₖ Tₖ(y), and the unit circle is −1 ≤ y ≤ 1. A is invertible on ℓ²(ℤ)
    if and only if q has no zero there. Each zero yⱼ elsewhere gives one pair zⱼ, 1/zⱼ with
    |zⱼ| < 1, and the residues of z^{t−1}/p(z) inside the circle give, for simple zeros,

        G[t] = Σⱼ wⱼ zⱼ^|t|,    wⱼ = 2 / (q′(yⱼ) (zⱼ − 1/zⱼ)),    j = 1..w.

    The zⱼ are real or come in conjugate pairs. Where two of them meet, terms t zᵗ appear and
    the wⱼ run off to infinity with opposite signs; `exponentials` then refuses, and `green`
    integrates 1/p over the circle instead, which knows nothing of the zeros.

    Example:
        >>> WideStencil([2.5, -1.0]).green([0, 1])      # three points: as Stencil(2.5, -1)
        tensor([0.6667, 0.3333], dtype=torch.float64)
        >>> WideStencil([1.0, -0.5])
        Traceback (most recent call last):
        ValueError: A stable stencil needs a symbol without zeros on the unit circle, but with \
`coefficients`=[1, -0.5] it vanishes or changes sign near angle 0 (value 0). Enlarge c0.
    """

    def __init__(self, coefficients: Numbers) -> None:
        c = np.asarray(coefficients, dtype=np.float64)
        if c.ndim != 1 or len(c) == 0 or not np.isfinite(c).all():
            raise ValueError(
                "`coefficients` must be finite numbers c0, c1, ..., cw (the middle one first), "
                f"got {coefficients!r}."
            )
        # Far coefficients below the last digit of the largest change nothing but the width.
        counts = np.flatnonzero(np.abs(c) > 1e-17 * np.abs(c).max())
        if len(counts) == 0:
            raise ValueError("`coefficients` are all zero: the operator has no inverse.")
        c = c[: counts[-1] + 1]
        self.coefficients = torch.from_numpy(c.copy())
        self._series = np.concatenate([c[:1], 2 * c[1:]])
        self._check_circle()
        y = np.polynomial.chebyshev.chebroots(self._series).astype(complex)
        slope = np.polynomial.chebyshev.chebder(self._series)
        with np.errstate(divide="ignore", invalid="ignore"):
            # The eigenvalue solver is off by round-offs of the largest zero, which a small
            # last coefficient sends far out. Newton's steps take each zero to its own last
            # digit; at a multiple one they may not throw it away.
            for _ in range(4):
                step = _cheb(y, self._series) / _cheb(y, slope)
                y = y - np.where(np.abs(step) < 1e-3 * np.abs(y), step, 0)
            root = np.sqrt(y - 1) * np.sqrt(y + 1)
            self._z = 1 / np.where(np.abs(y + root) >= 1, y + root, y - root)
            self._weights = 2 / (_cheb(y, slope) * (self._z - 1 / self._z))

    @property
    def width(self) -> int:
        """Number of points the stencil touches, 2w + 1."""
        return 2 * len(self.coefficients) - 1

    @property
    def decay(self) -> float:
        """ρ = max |zⱼ|: the kernel falls like ρ^|t|."""
        return float(np.abs(self._z).max(initial=0.0))

    @property
    def cancellation(self) -> float:
        """Σ|wⱼ| / |G[0]|: 1 for positive weights, infinite where two zeros meet."""
        ratio = np.abs(self._weights).sum() / abs(self._quadrature(torch.zeros(1)).item())
        return float(np.nan_to_num(ratio, nan=np.inf))

    def _is_a_sum(self) -> bool:
        """Whether the weights are tame and their sum is the kernel at 0, found independently."""
        if len(self.coefficients) == 1:
            return True
        if not self.cancellation <= 100:
            return False
        middle = self._quadrature(torch.zeros(1)).item()
        return bool(abs(self._weights.sum() - middle) <= 1e-12 * np.abs(self._weights).sum())

    def exponentials(self) -> tuple[Tensor, Tensor]:
        """(zⱼ, wⱼ), complex128, slowest decay first.

        Raises:
            ValueError: If zeros of the symbol (nearly) coincide: the kernel then is no sum
                of pure exponentials that double precision can hold.
        """
        if not self._is_a_sum():
            raise ValueError(
                f"Zeros of the symbol (nearly) coincide: the weights cancel by a factor "
                f"{self.cancellation:.1g}. The kernel has terms t z^t there and is no sum of "
                "exponentials; use green(t), which integrates over the circle in that case."
            )
        order = np.argsort(-np.abs(self._z), kind="stable")
        return torch.from_numpy(self._z[order]), torch.from_numpy(self._weights[order])

    def green(self, t: Numbers) -> Float[Tensor, "..."]:
        """G[t] at integer offsets, absolute error about 1e-15 times Σ|wⱼ| or max 1/|p|."""
        offset = _offsets(t).abs()
        if len(self.coefficients) == 1:
            return (offset == 0).double() / self.coefficients[0]
        if not self._is_a_sum():
            return self._quadrature(offset)
        z, weight = torch.from_numpy(self._z), torch.from_numpy(self._weights)
        return (weight * z ** offset[..., None]).sum(-1).real

    def matrix(self, n: int) -> Float[Tensor, "n n"]:
        """The finite matrix on n points, zero outside."""
        i = torch.arange(_points(n))
        distance = (i[:, None] - i).abs()
        padded = torch.zeros(max(n, len(self.coefficients)), dtype=torch.float64)
        padded[: len(self.coefficients)] = self.coefficients
        return padded[distance]

    def _quadrature(self, t: Tensor) -> Tensor:
        """G[t] = (1/2π) ∫ cos(tθ)/p(e^{iθ}) dθ: the trapezoidal rule errs by ρ^(m − t)."""
        reach = 0 if self.decay == 0 else 40 / -np.log(self.decay)
        m = 1 << int(np.ceil(np.log2(float(t.max()) + reach + 8)))
        if m > 1 << 24:
            raise ValueError(
                f"The kernel decays too slowly to integrate (rho = {self.decay:.9f}, offsets to "
                f"{int(t.max())}: {m} points). Ask for smaller offsets or enlarge c0."
            )
        symbol = _cheb(np.cos(2 * np.pi * np.arange(m // 2 + 1) / m), self._series)
        kernel = torch.from_numpy(np.fft.irfft(1 / symbol, n=m))
        return kernel[t.long()]

    def _check_circle(self) -> None:
        slope = np.polynomial.chebyshev.chebder(self._series)
        turning = np.polynomial.chebyshev.chebroots(slope) if len(slope) > 1 else np.zeros(0)
        # Near-real turning points count too: rounding moves a double one off the axis.
        turning = turning[np.abs(turning.imag) < 1e-6].real
        y = np.concatenate([[1.0, -1.0], turning[np.abs(turning) < 1]])
        value = _cheb(y, self._series)
        worst = int(np.argmin(np.abs(value)))
        tiny = 1e-14 * np.abs(self._series).sum()
        if value.min() < 0 < value.max() or abs(value[worst]) <= tiny:
            shown = ", ".join(f"{c:.6g}" for c in self.coefficients.tolist())
            raise ValueError(
                "A stable stencil needs a symbol without zeros on the unit circle, but with "
                f"`coefficients`=[{shown}] it vanishes or changes sign near angle "
                f"{np.arccos(y[worst]):.3g} (value {value[worst]:.3g}). Enlarge c0."
            )


def _cheb(y: np.ndarray, series: np.ndarray) -> np.ndarray:
    return np.polynomial.chebyshev.chebval(y, series)


def _symmetric(name: str, value: Numbers) -> Tensor:
    out = torch.as_tensor(value, dtype=torch.float64).detach().cpu()
    if not torch.isfinite(out).all():
        raise ValueError(f"`{name}` must be finite, got {value!r}.")
    if out.ndim == 0:
        return out
    if out.ndim != 2 or out.shape[0] != out.shape[1] or len(out) == 0:
        raise ValueError(
            f"`{name}` must be a number or a square matrix, got shape {tuple(out.shape)}."
        )
    skew = float((out - out.T).abs().max())
    if skew > 1e-12 * float(out.abs().max()):
        raise ValueError(
            f"`{name}` must be symmetric, got max |{name} - {name}ᵀ| = {skew:.3g}. "
            f"If that is round-off, pass ({name} + {name}.T) / 2."
        )
    return (out + out.T) / 2


def _joint_eigenvectors(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """An orthogonal U with UᵀaU and UᵀbU diagonal, eigenvalues repeated or not."""
    scale_a, scale_b = np.abs(a).max() or 1.0, np.abs(b).max() or 1.0
    commutator = float(np.abs(a @ b - b @ a).max())
    if commutator > 1e-12 * len(a) * scale_a * scale_b:
        raise ValueError(
            f"`a` and `b` must commute, got max |ab - ba| = {commutator:.3g}. "
            "Without a common eigenbasis the kernel is no sum of exponentials times fixed "
            "matrices of this form."
        )
    # An eigenvalue that a repeats is told apart by b, and in a combination a + c b by nearly
    # every c. Eight unrelated c, the cleanest result kept: no c is bad for all pencils.
    best, residual = np.eye(len(a)), np.inf
    for c in 0.5 + np.arange(8) * (np.sqrt(5) - 1) / 2:
        u = np.linalg.eigh(a / scale_a + c * b / scale_b)[1]
        off = max(
            float(np.abs(m - np.diag(np.diag(m))).max())
            for m in (u.T @ a @ u / scale_a, u.T @ b @ u / scale_b)
        )
        if off < residual:
            best, residual = u, off
    if residual > 1e-11 * len(a):
        raise ValueError(
            f"`a` and `b` have no common eigenbasis to working accuracy (off-diagonal "
            f"{residual:.3g} of the largest entry). Build both from one set of eigenvectors."
        )
    return best


def _offsets(t: Numbers) -> Int[Tensor, "..."]:
    out = torch.as_tensor(t)
    if out.is_floating_point() and bool((out != out.round()).any()):
        raise ValueError(f"`t` must hold whole grid offsets, got {t!r}.")
    return out.long()


def _points(n: int) -> int:
    if n < 1:
        raise ValueError(f"`n` must be at least 1 point, got n={n}.")
    return int(n)
