"""The paper's two examples: steady and unsteady diffusion–reaction with Dirichlet ends."""

from dataclasses import dataclass

import torch
from torch import Tensor

from sfo.theory.stencil import Numbers, Stencil


@dataclass(frozen=True)
class DirichletProblem:
    """A u = f on n interior points, with u given at both ends.

        a uᵢ + b (uᵢ₋₁ + uᵢ₊₁) = fᵢ,   i = 1..n,    u₀ = u_left,    uₙ₊₁ = u_right

    Fields are `(n,)` for a scalar stencil and `(n, d)` for a block one.

    Example:
        >>> ends = torch.tensor(1.0).double(), torch.tensor(1.0).double()
        >>> problem = DirichletProblem(Stencil(3.0, -1.0), torch.ones(5).double(), *ends)
        >>> bool(torch.dist(problem.solve(), torch.ones(5)) < 1e-12)  # 3 − 1 − 1 = 1
        True
    """

    stencil: Stencil
    f: Tensor
    u_left: Tensor
    u_right: Tensor

    @property
    def rhs(self) -> Tensor:
        """F = (f₁ − b u_left, f₂, …, fₙ₋₁, fₙ − b u_right), so that matrix(n) u = F."""
        b = self.stencil.b
        out = self.f.clone()
        out[0] = out[0] - (b * self.u_left if self.stencil.is_scalar else b @ self.u_left)
        out[-1] = out[-1] - (b * self.u_right if self.stencil.is_scalar else b @ self.u_right)
        return out

    def solve(self) -> Tensor:
        """The direct solution, by banded Cholesky."""
        return self.stencil.solve(self.rhs)


@dataclass(frozen=True)
class UnsteadyProblem:
    """C′ = −G C + S, the method of lines with given ends and initial state `c0`.

    S = (s₁ − b u_left, s₂, …, s_N − b u_right). A backward Euler step solves
    (I + dt G) C⁺ = C + dt S, which is a `DirichletProblem` once more.

    Example:
        >>> zero, start = torch.tensor(0.0).double(), torch.ones(5).double()
        >>> problem = UnsteadyProblem(Stencil(3.0, -1.0), 0 * start, zero, zero, start)
        >>> bool((problem.step(problem.c0, dt=0.1).solve() < 1).all())  # it decays
        True
    """

    stencil: Stencil
    s: Tensor
    u_left: Tensor
    u_right: Tensor
    c0: Tensor

    @property
    def source(self) -> Tensor:
        """S, the source with the boundary terms."""
        return DirichletProblem(self.stencil, self.s, self.u_left, self.u_right).rhs

    def step(self, c: Tensor, dt: float) -> DirichletProblem:
        """The linear problem whose solution is the state one backward Euler step after `c`."""
        implicit = self.stencil.implicit_step(dt)
        return DirichletProblem(implicit, c + dt * self.s, self.u_left, self.u_right)


def diffusion_reaction_stencil(diffusion: Numbers, reaction: Numbers, h: float) -> Stencil:
    """A₀ = R + 2D/h², A₁ = −D/h²: central differences of −D u″ + R u with spacing h.

    Stable if and only if R is positive wherever D acts: αₖ − 2|βₖ| is R's eigenvalue for
    D ≥ 0. Without reaction the kernel on ℤ does not exist (it would grow like |t|).

    Example:
        >>> stencil = diffusion_reaction_stencil(1.0, 2.0, h=0.5)
        >>> float(stencil.a), float(stencil.b)
        (10.0, -4.0)
    """
    if not h > 0:
        raise ValueError(f"`h` must be positive, got h={h}.")
    diffusion = torch.as_tensor(diffusion, dtype=torch.float64)
    reaction = torch.as_tensor(reaction, dtype=torch.float64)
    return Stencil(reaction + 2 * diffusion / h**2, -diffusion / h**2)


def steady_diffusion_reaction(
    diffusion: Numbers,
    reaction: Numbers,
    f: Numbers,
    u_left: Numbers,
    u_right: Numbers,
) -> DirichletProblem:
    """−D u″ + R u = f on (0, 1), u(0) = u_left, u(1) = u_right: the paper's first example.

    Args:
        diffusion: D, a number or a symmetric matrix that commutes with R.
        reaction: R, likewise.
        f: The source at the n interior points i h, h = 1/(n + 1): `(n,)` or `(n, d)`.
        u_left: u(0), a number or `(d,)`.
        u_right: u(1), likewise.

    Example:
        >>> x = torch.arange(1, 4) / 4
        >>> problem = steady_diffusion_reaction(1.0, 1e-9, 2 * torch.ones(3), 0.0, 1.0)
        >>> torch.dist(problem.solve(), x * (2 - x)) < 1e-8      # u = 2x − x², u″ = −2
        tensor(True)
    """
    f = torch.as_tensor(f, dtype=torch.float64)
    stencil = diffusion_reaction_stencil(diffusion, reaction, 1 / (len(f) + 1))
    left, right = _boundary(stencil, u_left=u_left, u_right=u_right)
    return DirichletProblem(stencil, _field("f", f, stencil), left, right)


def unsteady_diffusion_reaction(
    diffusion: Numbers,
    reaction: Numbers,
    s: Numbers,
    u_left: Numbers,
    u_right: Numbers,
    c0: Numbers,
) -> UnsteadyProblem:
    """∂c/∂t = D c″ − R c + s on (0, 1) with fixed ends: the paper's second example.

    Arguments as for `steady_diffusion_reaction`; `c0` is the initial state at the interior
    points. The steady state is the solution of the first example with f = s.

    Example:
        >>> problem = unsteady_diffusion_reaction(1.0, 1.0, torch.zeros(7), 0.0, 0.0, torch.ones(7))
        >>> bool((problem.step(problem.c0, dt=0.1).solve() < 1).all())
        True
    """
    s = torch.as_tensor(s, dtype=torch.float64)
    stencil = diffusion_reaction_stencil(diffusion, reaction, 1 / (len(s) + 1))
    left, right = _boundary(stencil, u_left=u_left, u_right=u_right)
    c0 = torch.as_tensor(c0, dtype=torch.float64)
    if c0.shape != s.shape:
        raise ValueError(
            f"`c0` must have the shape of `s`, {tuple(s.shape)}, got {tuple(c0.shape)}."
        )
    return UnsteadyProblem(stencil, _field("s", s, stencil), left, right, c0)


def _field(name: str, value: Tensor, stencil: Stencil) -> Tensor:
    wanted = (len(value),) if stencil.is_scalar else (len(value), len(stencil.r))
    if tuple(value.shape) != wanted:
        raise ValueError(
            f"`{name}` must have shape {'(n,)' if stencil.is_scalar else '(n, d)'}, one value a "
            f"point and channel, got {tuple(value.shape)} for {len(stencil.r)} channel(s)."
        )
    return value


def _boundary(stencil: Stencil, **ends: Numbers) -> list[Tensor]:
    wanted = () if stencil.is_scalar else (len(stencil.r),)
    out = []
    for name, value in ends.items():
        tensor = torch.as_tensor(value, dtype=torch.float64)
        if tuple(tensor.shape) != wanted:
            raise ValueError(f"`{name}` must have shape {wanted}, got {tuple(tensor.shape)}.")
        out.append(tensor)
    return out
