"""An SFO kernel layer built from a stencil, without training (the Theorem, made of code)."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.bases import usb_modes
from sfo.models.kernel import SpectralKernel
from sfo.models.kernel_modes import KernelModes, KernelOptions
from sfo.shapes import Field
from sfo.theory.approximation import modes_guaranteed, powers
from sfo.theory.problems import DirichletProblem
from sfo.theory.stencil import Stencil, WideStencil


class ConstructedInverse(nn.Module):
    """A⁻¹ on a window of n points of ℤ, as one or two `SpectralKernel` layers.

    On n points a zero-padded convolution needs the kernel at the offsets −(n−1)..n−1 only, so
    nothing is cut off. The kernel is even: row 2l of a two-sided layer is φₗ(|t|)/√2, hence

        Θ_{2l} = √2 Σₜ φₗ[t] G[t],  t = 0..n−1,        Θ_{2l+1} = 0.

    Roots r < 0 give alternating kernels, out of reach of the leading modes; but since
    (−1)^{i−j} = (−1)^i (−1)^j, they are a layer for |r| between two changes of sign of every
    other point. `positive` and `alternating` hold the two parts; each is None if not needed.

    What remains is a convolution with the residual kernel e, and ‖e * v‖₂ ≤ ‖e‖₁ ‖v‖₂. So

        ‖A⁻¹v − layer(v)‖₂ ≤ certified · ‖v‖₂,    certified = maxₖ Σₜ |eₖ[t]| ≤ eps,

    the maximum over the joint eigenvectors, with e summed up at all offsets: no estimate
    enters but round-off. L is the smallest number of modes that achieves it.

    Args:
        stencil: A stable stencil; of width > 3 only for a scalar field.
        n: Points of the window, at least 2.
        eps: The operator-norm error to stay within, absolute (compare `inverse_norm`).

    Attributes:
        n_modes: L, the number of even rows with weight.
        certified: The operator-norm bound above.

    Example:
        >>> layer = ConstructedInverse(Stencil(2.5, -1.0), n=64, eps=1e-6)
        >>> impulse = torch.zeros(1, 1, 64).double()
        >>> impulse[..., 32] = 1.0
        >>> layer(impulse)[0, 0, 31:34].detach()
        tensor([0.3333, 0.6667, 0.3333], dtype=torch.float64)
        >>> layer.n_modes, layer.certified <= 1e-6
        (16, True)
    """

    def __init__(self, stencil: Stencil | WideStencil, n: int, eps: float) -> None:
        super().__init__()
        kernels, alternates, vectors = _half_kernels(stencil, n)
        c, self.n_modes, self.certified = _compress(kernels, eps, _convolution_error)
        self._build(c, alternates, vectors)

    def _build(self, c: Tensor, alternates: Tensor, vectors: Tensor) -> None:
        theta = math.sqrt(2.0) * torch.einsum("kl,ik,jk->klij", c, vectors, vectors)
        self.positive = _layer(theta[~alternates].sum(0)) if bool((~alternates).any()) else None
        self.alternating = _layer(theta[alternates].sum(0)) if bool(alternates.any()) else None

    def forward(self, v: Field) -> Field:
        out = torch.zeros_like(v)
        if self.positive is not None:
            out = out + self.positive(v)
        if self.alternating is not None:
            flip = 1.0 - 2.0 * (torch.arange(v.shape[-1], device=v.device) % 2).to(v)
            out = out + flip * self.alternating(flip * v)
        return out


class ConstructedSolver(ConstructedInverse):
    """The Dirichlet problem on n points, solved by the same layer and two charges at the ends.

    The free kernel knows nothing of the ends. The method of images would mirror f in both,
    again and again; but every image to the left of point 0 acts inside like one charge at
    point 0, since r^{i−j} = rⁱ r^{−j}: one exponential is the same exponential from further
    away. So let the layer work on the points 0..n+1, put charges q on the two ends,

        u = G * (f + q₀ δ₀ + q₁ δₙ₊₁),    with q such that u₀ = u_left, uₙ₊₁ = u_right,

    and A u = f holds inside because the charges are outside. That is a 2d × 2d system with
    the layer's own kernel, set up once. A channel with weight w, root r, ρ = |r|, residual
    e, η₁ = Σ|eₜ|, η₂² = Σ_{t≥0} eₜ², m = |e₀| + |eₙ₊₁| and σ = w(1 − ρ^{n+1}) then obeys

        ‖u − u_direct‖₂ ≤ certified · (‖f‖₂ + ‖(u_left, u_right)‖₂),

        certified = max( η₁ + √2 η₂ Q + C (√2 η₂ + m Q)/σ,  (√2 η₂ + C m/σ)/(σ − m) ),
        Q = √2 (ρ w/√(1 − ρ²) + η₂)/(σ − m),    C = √2 w/√(1 − ρ²):

    the residual acts on f, on the charges through the layer, and on the charges' size through
    the 2 × 2 system, whose smallest singular value is σ, and σ − m at least for the layer's.

    Args:
        stencil: A stable three-point stencil, scalar or block.
        n: Interior points, at least 1.
        eps: What `certified` must not exceed.

    Example:
        >>> from sfo.theory.problems import steady_diffusion_reaction
        >>> x = torch.arange(1, 64).double() / 64
        >>> problem = steady_diffusion_reaction(1.0, 10.0, torch.sin(9 * x), 0.5, -1.0)
        >>> solver = ConstructedSolver(problem.stencil, n=63, eps=1e-6)
        >>> bool((solver.solve(problem) - problem.solve()).abs().max() < 1e-6)
        True
    """

    def __init__(self, stencil: Stencil, n: int, eps: float) -> None:
        nn.Module.__init__(self)
        if n < 1:
            raise ValueError(f"`n` must be at least 1 interior point, got n={n}.")
        self.is_scalar = stencil.is_scalar
        kernels, alternates, vectors = _half_kernels(stencil, n + 2)
        rho = stencil.r.abs()

        def error(e: Tensor) -> Tensor:
            return _dirichlet_error(e, stencil.weight, rho)

        c, self.n_modes, self.certified = _compress(kernels, eps, error)
        self._build(c, alternates, vectors)
        # Row (end, channel) of `charges`: what a unit charge there does at every point.
        d = len(rho)
        impulses = torch.zeros(2, d, d, n + 2, dtype=torch.float64)
        impulses[0, :, :, 0] = impulses[1, :, :, -1] = torch.eye(d, dtype=torch.float64)
        with torch.no_grad():
            charges = self.forward(impulses.flatten(0, 1))
        self.register_buffer("charges", charges)
        # System row (end, channel) read out, column (end, channel) charged.
        self.register_buffer("system", _at_ends(charges).T.contiguous())

    charges: Float[Tensor, "ends_d d points"]
    system: Float[Tensor, "ends_d ends_d"]

    @torch.no_grad()
    def solve(self, problem: DirichletProblem) -> Tensor:
        """u at the interior points, in the shape of `problem.f`."""
        f = problem.f[:, None] if self.is_scalar else problem.f
        if f.shape[0] != self.charges.shape[-1] - 2:
            raise ValueError(
                f"This solver was built for n={self.charges.shape[-1] - 2} interior points, "
                f"got {f.shape[0]}. Build another with ConstructedSolver(stencil, n, eps)."
            )
        source = torch.nn.functional.pad(f.T[None], (1, 1))
        free = self.forward(source)
        ends = torch.stack([problem.u_left, problem.u_right]).flatten()
        q = torch.linalg.solve(self.system, ends - _at_ends(free)[0])
        u = (free[0] + torch.einsum("q,qdx->dx", q, self.charges))[:, 1:-1].T
        return u[:, 0] if self.is_scalar else u


def _half_kernels(
    stencil: Stencil | WideStencil, n: int
) -> tuple[Float[Tensor, "k n"], Tensor, Float[Tensor, "d k"]]:
    """Kernels at t = 0..n−1 in the eigenbasis, signs of negative roots taken out."""
    if n < 2:
        raise ValueError(f"`n` must be at least 2 points, got n={n}.")
    if isinstance(stencil, WideStencil):
        one = torch.ones(1, 1, dtype=torch.float64)
        return stencil.green(torch.arange(n))[None], torch.zeros(1, dtype=torch.bool), one
    kernels = stencil.weight[:, None] * powers(stencil.r.abs(), n)
    return kernels, stencil.r < 0, stencil.vectors


def _compress(
    kernels: Float[Tensor, "k n"], eps: float, error: Callable[[Tensor], Tensor]
) -> tuple[Float[Tensor, "k modes"], int, float]:
    """Coefficients on the fewest modes for which `error(residual)` is at most `eps`."""
    if not eps > 0:
        raise ValueError(f"`eps` must be positive, got eps={eps}.")
    n = kernels.shape[-1]
    # Powers of r in [0, 1] are at round-off by then; other kernels get a last chance.
    most = min(n, max(modes_guaranteed(1.0, n, 1e-16), 512))
    tried, best = 0, math.inf
    while tried < most:
        tried = min(max(32, 2 * tried), most)
        phi = usb_modes(n, tried)
        c = kernels @ phi.T
        residual = kernels.clone()
        for mode in range(tried):
            residual -= c[:, mode, None] * phi[mode]
            now = float(error(residual).max())
            best = min(best, now)
            if now <= eps:
                return c[:, : mode + 1], mode + 1, now
    raise ValueError(
        f"`eps`={eps:g} is below what {most} modes certify for this stencil on {n} points in "
        f"double precision: the best is {best:.1e}. Ask for a larger eps."
    )


def _convolution_error(e: Float[Tensor, "k n"]) -> Float[Tensor, "k"]:
    """Σ|e[t]| over both sides: no convolution with e amplifies more in the ℓ² norm."""
    return 2 * e.abs().sum(-1) - e[:, 0].abs()


def _dirichlet_error(e: Tensor, weight: Tensor, rho: Tensor) -> Float[Tensor, "k"]:
    """The bound of `ConstructedSolver`; infinite while the layer's system may be singular."""
    eta_1, eta_2 = _convolution_error(e), e.norm(dim=-1)
    m = e[:, 0].abs() + e[:, -1].abs()
    sigma = weight * (1 - rho ** (e.shape[-1] - 1))
    least = sigma - m
    norm = weight / torch.sqrt((1 - rho) * (1 + rho))
    root2 = math.sqrt(2.0)
    charge = root2 * (rho * norm + eta_2) / least
    inside = eta_1 + root2 * eta_2 * charge + root2 * norm * (root2 * eta_2 + m * charge) / sigma
    ends = (root2 * eta_2 + root2 * norm * m / sigma) / least
    bound = torch.maximum(inside, ends)
    return torch.where(least > 0, bound, torch.full_like(bound, math.inf))


def _layer(theta: Float[Tensor, "modes d d"]) -> SpectralKernel:
    rows = 2 * len(theta) - 1
    modes = KernelModes(KernelOptions(rows, boundary="zero", support="two_sided"))
    layer = SpectralKernel(theta.shape[-1], modes).double()
    with torch.no_grad():
        layer.theta.zero_()
        layer.theta[::2] = theta
    return layer


def _at_ends(v: Float[Tensor, "batch d points"]) -> Float[Tensor, "batch ends_d"]:
    return torch.cat([v[..., 0], v[..., -1]], dim=-1)
