"""The local operators of nonlinear equations, their Green's kernels and how compact these are.

A backward Euler step of ∂u/∂t = F(u) about a state u is, to first order, the inverse of
I − dt J with J = ∂F/∂u: a linear operator like the theory's A, but one that varies with the
place. Its column at a source point, read as a function of the offset, is what an SFO layer
would have to represent, at that place. Two things can then be measured: how many modes such
a column needs, and how much it differs from one place to the next, which no convolution can
follow.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.theory.approximation import decay_rate, projection_errors


def local_operator(rhs: Callable[[Tensor], Tensor], u: Tensor) -> Float[Tensor, "n n"]:
    """J = ∂rhs/∂u at the state u, differentiated by `torch.func`.

    Example:
        >>> local_operator(lambda u: u**2, torch.tensor([1.0, 3.0, 0.0, 0.0]).double())[:2, :2]
        tensor([[2., 0.],
                [0., 6.]], dtype=torch.float64)
    """
    return torch.func.jacrev(rhs)(_state(u))


def implicit_green(
    rhs: Callable[[Tensor], Tensor], u: Tensor, dt: float
) -> Float[Tensor, "sources offsets"]:
    """The columns of (I − dt J)⁻¹, shifted so that each source lies in the middle.

    Row j holds G(j + t, j) at t = −(h−1)..h−1, h = ⌊n/2⌋, on the periodic axis. If u is
    constant, all rows are equal: the operator is a convolution.

    Example:
        >>> green = implicit_green(lambda u: -u, torch.zeros(8).double(), dt=1.0)
        >>> green[0].tolist()  # (1 + dt)⁻¹ at the source, nothing elsewhere
        [0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0]
    """
    if not dt > 0:
        raise ValueError(f"`dt` must be positive, got dt={dt}.")
    jacobian = local_operator(rhs, u)
    n = len(jacobian)
    inverse = torch.linalg.inv(torch.eye(n, dtype=torch.float64) - dt * jacobian)
    t = torch.arange(1 - n // 2, n // 2)
    source = torch.arange(n)[:, None]
    return inverse[(source + t) % n, source]


@dataclass(frozen=True)
class Compressibility:
    """How compactly USB modes hold the kernels of `implicit_green`.

    Attributes:
        errors: Relative error against the number of rows (even and odd), `(sources, rows + 1)`.
        variation: ‖G_j − mean G‖ / ‖mean G‖ over all sources: what no convolution represents.
        rate: Fitted s in error ≈ C exp(−s L), the median over sources.
    """

    errors: Tensor
    variation: float
    rate: float

    def modes_for(self, eps: float) -> int | None:
        """The rows that bring every source below relative error `eps`, if enough were tried."""
        worst = self.errors.amax(0)
        return int((worst <= eps).nonzero()[0]) if bool((worst <= eps).any()) else None


def compressibility(
    green: Float[Tensor, "sources offsets"], n_modes: int, basis: str = "usb"
) -> Compressibility:
    """Project every row of `green` on two-sided modes and fit the rate.

    Example:
        >>> t = torch.arange(-31, 32).double()
        >>> found = compressibility(0.5 ** t.abs()[None], n_modes=40)
        >>> found.variation, found.modes_for(1e-4) <= 40
        (0.0, True)
    """
    errors = projection_errors(green, n_modes, basis, "two_sided")
    errors = errors / errors[:, :1]
    mean = green.mean(0)
    spread = (green - mean).norm() / (mean.norm() * len(green) ** 0.5)
    rates = torch.tensor([decay_rate(row) for row in errors], dtype=torch.float64)
    return Compressibility(errors, float(spread), float(rates.nanmedian()))


def _state(u: Tensor) -> Tensor:
    u = torch.as_tensor(u)
    if u.ndim != 1 or len(u) < 4 or u.dtype != torch.float64:
        raise ValueError(
            "`u` must be one state on at least 4 points in float64, got shape "
            f"{tuple(u.shape)} and {u.dtype}. Linearise one sample at a time."
        )
    return u
