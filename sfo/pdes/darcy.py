"""Darcy flow: the steady pressure of a fluid in ground whose permeability varies."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.grid import Grid
from sfo.pdes.problem import Array, check_constants, check_fields, numbers

if TYPE_CHECKING:
    from scipy.sparse import csc_matrix


@dataclass(frozen=True)
class Darcy:
    """−∇ · (a ∇p) = f in a box, p = 0 on its boundary, for any a > 0 and any number of axes.

    Finite volumes: through a face between two cells flows the difference of their pressures
    times the harmonic mean 2 a₁ a₂ / (a₁ + a₂), which is exact for layers that follow the
    faces; the wall of an outermost cell is half a cell away. The matrix is symmetric and
    positive definite, and no pressure is negative where f ≥ 0. Second order where a is smooth,
    first order where it jumps along a curve.

    Args:
        force: f, the same everywhere.
        lower, upper: Ends of the box along every axis.

    Example:
        >>> p = Darcy().solve(torch.ones(1, 1, 32, 32))
        >>> round(float(p.max()), 3)
        0.074
    """

    force: float = 1.0
    lower: float = 0.0
    upper: float = 1.0
    names: ClassVar[tuple[str, ...]] = ("p",)

    def __post_init__(self) -> None:
        check_constants(self)

    def grid(self, shape: Sequence[int]) -> Grid:
        """The centres of the cells."""
        n_dim = len(shape)
        ends = (self.lower,) * n_dim, (self.upper,) * n_dim
        return Grid(tuple(shape), *ends, offset=0.5, periodic=False)

    def imbalance(
        self,
        p: Float[Tensor, "*batch_and_grid"],
        a: Float[Tensor, "*batch_and_grid"],
        n_dim: int = 2,
    ) -> Float[Tensor, "*batch_and_grid"]:
        """−∇ · (a ∇p) − f per cell, 0 for the solution; differentiable.

        Args:
            p: Pressures.
            a: Permeabilities.
            n_dim: Number of axes, the last ones.
        """
        spacing = self.grid(p.shape[-n_dim:]).spacing
        out = torch.full_like(p, -self.force)
        for axis, h in zip(range(-n_dim, 0), spacing, strict=True):
            left, right = (a.narrow(axis, i, a.shape[axis] - 1) for i in (0, 1))
            ends = [a.narrow(axis, i, 1) * p.narrow(axis, i, 1) for i in (0, p.shape[axis] - 1)]
            inner = -2 * left * right / (left + right) * p.diff(dim=axis)
            flow = torch.cat([-2 * ends[0], inner, 2 * ends[1]], dim=axis)
            out = out + flow.diff(dim=axis) / h**2
        return out

    def matrix(self, a: Float[np.ndarray, "*grid"]) -> "csc_matrix":
        """What maps the pressures of one sample, flattened, to −∇ · (a ∇p)."""
        from scipy.sparse import coo_matrix

        cells = np.arange(a.size).reshape(a.shape)
        rows, columns, entries = [], [], []
        diagonal = np.zeros(a.shape)
        for axis, h in enumerate(self.grid(a.shape).spacing):
            first, last = (np.take(np.arange(a.shape[axis]), [i]) for i in (0, -1))
            for end in (first, last):
                side = tuple(end if i == axis else slice(None) for i in range(a.ndim))
                diagonal[side] += 2 * a[side] / h**2
            here, there = (
                tuple(part if i == axis else slice(None) for i in range(a.ndim))
                for part in (slice(None, -1), slice(1, None))
            )
            face = 2 * a[here] * a[there] / (a[here] + a[there]) / h**2
            diagonal[here] += face
            diagonal[there] += face
            rows += [cells[here].ravel(), cells[there].ravel()]
            columns += [cells[there].ravel(), cells[here].ravel()]
            entries += [-face.ravel()] * 2
        rows, columns = [*rows, cells.ravel()], [*columns, cells.ravel()]
        entries.append(diagonal.ravel())
        places = np.concatenate(rows), np.concatenate(columns)
        return coo_matrix((np.concatenate(entries), places), (a.size, a.size)).tocsc()

    def solve(
        self,
        coefficient: Float[Array, "sample 1 *grid"],
        force: Float[Array, "sample 1 *grid"] | None = None,
    ) -> Float[Tensor, "sample 1 *grid"]:
        """The pressures, in float64, by a sparse direct solver.

        Args:
            coefficient: Permeability a of each cell, positive.
            force: f of each cell; None: the equation's own, the same everywhere.
        """
        from scipy.sparse.linalg import splu

        a = numbers(coefficient, "coefficient")
        a = check_fields(a, "coefficient", n_dim=max(1, a.ndim - 2))
        if (lowest := float(a.min())) <= 0:
            sample = int(a.flatten(1).amin(1).argmin())
            raise ValueError(
                f"`coefficient` must be positive, got {lowest:g} in sample {sample}: nothing "
                "flows through such ground, or uphill."
            )
        if force is None:
            f = torch.full_like(a, self.force)
        else:
            f = check_fields(force, "force", n_dim=a.ndim - 2)
            if f.shape != a.shape:
                raise ValueError(
                    f"`force` must be of the shape {tuple(a.shape)}, as `coefficient` has it, "
                    f"got {tuple(f.shape)}."
                )
        pressures = []
        for field, right in zip(a[:, 0].numpy(force=True), f[:, 0].numpy(force=True), strict=True):
            # For a symmetric matrix with a dominant diagonal this ordering needs least memory,
            # and no pivoting.
            factors = splu(
                self.matrix(field),
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options=dict(SymmetricMode=True),
            )
            solution = factors.solve(right.ravel())
            pressures.append(torch.from_numpy(solution.reshape(field.shape)))
        return torch.stack(pressures)[:, None].to(a.device)


def layered_pressure(
    x: Float[Tensor, " points"], edges: Sequence[float], values: Sequence[float], force: float = 1.0
) -> Float[Tensor, " points"]:
    """The exact p(x) in 1D for layers of constant a: −(a p′)′ = f, p = 0 at both ends.

    a p′ = c − f x without jumps, so that p is a parabola in each layer.

    Args:
        x: Points between the first and the last edge.
        edges: Ends of the layers, increasing.
        values: Permeability of each layer, one fewer than the edges.
        force: f.

    Example:
        >>> float(layered_pressure(torch.tensor([0.5]), [0.0, 1.0], [1.0]))
        0.125
    """
    layers = list(zip(edges, edges[1:], values, strict=False))
    resistance = math.fsum((b - a) / value for a, b, value in layers)
    moment = math.fsum((b**2 - a**2) / (2 * value) for a, b, value in layers)
    c = force * moment / resistance
    p = torch.zeros_like(x)
    for a, b, value in layers:
        end = x.clamp(a, b)
        p = p + (c * (end - a) - force * (end**2 - a**2) / 2) / value
    return p
