"""Maxwell's equations in 3D on Yee's staggered grid, with sources on patches of planes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.checks import check_choice
from sfo.grid import Grid
from sfo.pdes.problem import check_constants, check_problem, check_solved
from sfo.pdes.residual import Frames


@dataclass(frozen=True)
class PlaneSource:
    """A flat patch of cells on which E and H are set to a sin(2π q / period + phase) at step q.

    It sets E along `polarization` and H along the other axis of the plane, both with the same
    sign and phase, whatever the waves that arrive there: a hard source.

    Args:
        lower: First cell of the patch along each axis.
        upper: One past its last cell; exactly one axis has upper − lower = 1.
        polarization: Axis of E, "x", "y" or "z", within the plane.
        amplitude: a.
        period: In time steps.
        phase: In radians.

    Example:
        >>> source = PlaneSource((2, 3, 5), (6, 5, 6), polarization="x", period=35)
        >>> source.channels  # Ex and Hy
        (0, 4)
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    polarization: str
    amplitude: float = 1.0
    period: int = 15
    phase: float = 0.0

    def __post_init__(self) -> None:
        edges = self.edges
        if len(edges) != 3 or min(self.lower) < 0 or min(edges) < 1 or edges.count(1) != 1:
            raise ValueError(
                "A plane source must be one cell thick along one axis and at least two along the "
                f"others, at indices from 0 on, got lower={self.lower}, upper={self.upper}."
            )
        plane = [axis for axis, edge in zip("xyz", edges, strict=True) if edge > 1]
        if self.polarization not in plane:
            raise ValueError(
                f"`polarization` must be within the source's plane, {' or '.join(plane)}, "
                f"got {self.polarization!r}."
            )
        if self.period < 1:
            raise ValueError(f"`period` must be at least one time step, got {self.period}.")

    @property
    def edges(self) -> tuple[int, ...]:
        """Number of cells along each axis."""
        return tuple(b - a for a, b in zip(self.lower, self.upper, strict=True))

    @property
    def channels(self) -> tuple[int, int]:
        """The components of E and H that it sets, among the six of a state."""
        electric, normal = "xyz".index(self.polarization), self.edges.index(1)
        return electric, 3 + (3 - electric - normal)

    def signal(self, steps: int) -> np.ndarray:
        """Its values at steps 0, …, steps − 1."""
        angle = 2 * math.pi * np.arange(steps) / self.period + self.phase
        return self.amplitude * np.sin(angle)


@dataclass(frozen=True)
class Maxwell:
    """ε ∂E/∂t = c ∇ × H,    μ ∂H/∂t = −c ∇ × E,    in a uniform medium.

    E and H are scaled to a common unit. Of cell (i, j, k), with lengths in cells,

        Ex at (i + ½, j, k),    Ey at (i, j + ½, k),    Ez at (i, j, k + ½),
        Hx at (i, j + ½, k + ½),    Hy at (i + ½, j, k + ½),    Hz at (i + ½, j + ½, k),

    and H is half a step ahead of E in time: states are E(n dt) and H((n + ½) dt). Central
    differences are then second order, conserve ∇ · E and ∇ · H to round-off, and keep
    ε |E(n dt)|² + μ H((n − ½) dt) · H((n + ½) dt), summed over a periodic box, constant.

    Args:
        permittivity: ε, relative.
        permeability: μ, relative.
        spacing: Edge h of a cell in metres.
        courant: c dt / h, below √(ε μ / 3), where waves become unstable.
        light_speed: c in metres a second.

    Example:
        >>> still = Maxwell().rhs(torch.ones(6, 4, 4, 4, dtype=torch.float64))
        >>> bool((still == 0).all())  # a uniform field has no curl
        True
    """

    permittivity: float = 10.0
    permeability: float = 1.0
    spacing: float = 5e-7
    courant: float = 0.99 * 3**-0.5
    light_speed: float = 299_792_458.0
    names: ClassVar[tuple[str, ...]] = ("Ex", "Ey", "Ez", "Hx", "Hy", "Hz")

    def __post_init__(self) -> None:
        check_constants(self, "permittivity", "permeability", "spacing", "light_speed")
        limit = math.sqrt(self.permittivity * self.permeability / 3)
        if not 0 < self.courant < limit:
            raise ValueError(
                f"`courant` must be in 0..√(ε μ / 3) = {limit:.4f} for permittivity="
                f"{self.permittivity} and permeability={self.permeability}, got {self.courant}. "
                "The default, 0.99/√3, is stable in every medium with ε μ ≥ 1."
            )

    @property
    def time_step(self) -> float:
        """dt in seconds."""
        return self.courant * self.spacing / self.light_speed

    def grid(self, shape: tuple[int, int, int], periodic: bool = True) -> Grid:
        """The centres of the cells of a box, at the origin; components sit within half a cell."""
        upper = tuple(n * self.spacing for n in shape)
        return Grid(shape, (0.0, 0.0, 0.0), upper, offset=0.5, periodic=periodic)

    def rhs(
        self,
        state: Float[Tensor, "*batch 6 x y z"],
        boundary: Literal["periodic", "open"] = "periodic",
    ) -> Float[Tensor, "*batch 6 _ _ _"]:
        """∂/∂t of (E, H) by Yee's differences.

        Args:
            state: Ex, Ey, Ez, Hx, Hy, Hz.
            boundary: `"periodic"`: the box repeats. `"open"`: it is cut from a larger one;
                the result has the cells 1, …, n − 2 along each axis, whose neighbours are all
                inside.
        """
        check_choice("boundary", boundary, ("periodic", "open"))
        e, h = state[..., :3, :, :, :], state[..., 3:, :, :, :]
        speed = self.light_speed / self.spacing
        rates = torch.cat(
            [speed / self.permittivity * _curl(h, 1), -speed / self.permeability * _curl(e, -1)],
            dim=-4,
        )
        return rates if boundary == "periodic" else rates[..., 1:-1, 1:-1, 1:-1]

    def solve(
        self,
        initial: Float[Tensor, "sample 6 x y z"] | np.ndarray,
        times: Sequence[float] | np.ndarray | Tensor,
        sources: Sequence[PlaneSource] = (),
        boundary: Literal["periodic", "copy"] = "periodic",
        crop: int = 0,
    ) -> Float[Tensor, "sample time 6 _ _ _"]:
        """States at `times`, in float64, by Yee's leapfrog with the step `time_step`.

        The frame at time t holds E(t) and H(t + dt/2), and so does `initial` at t = 0.

        Args:
            initial: Ex, Ey, Ez, Hx, Hy, Hz.
            times: Increasing, from 0 on, each a whole number of time steps.
            sources: Set at every step; a later one wins where they overlap.
            boundary: `"periodic"`: the box repeats. `"copy"`: its last plane of cells along
                each axis stands for the first, so that n cells have a period of n − 1; this is
                what the package fdtd calls periodic, and how the published set was made.
            crop: Cells to leave out of the result at each end of each axis.

        Example:
            >>> equation = Maxwell()
            >>> source = PlaneSource((2, 2, 4), (6, 6, 5), polarization="y")
            >>> times = equation.time_step * torch.arange(0, 30, 10)
            >>> u = equation.solve(torch.zeros(1, 6, 8, 8, 8), times, [source])
            >>> u.shape
            torch.Size([1, 3, 6, 8, 8, 8])
        """
        fields, instants = check_problem(initial, times, channels=6, n_dim=3)
        steps = self._steps(instants)
        start = fields.contiguous().numpy(force=True)
        shape = start.shape[2:]
        is_list = isinstance(sources, Sequence)
        if not is_list or not all(isinstance(source, PlaneSource) for source in sources):
            raise ValueError(f"`sources` must be a list of PlaneSource, got {sources!r:.80}.")
        for source in sources:
            if any(b > n for b, n in zip(source.upper, shape, strict=True)):
                raise ValueError(f"Every source must be inside the box {shape}, got {source}.")
        if not isinstance(crop, int) or not 0 <= 2 * crop < min(shape):
            raise ValueError(
                f"`crop` must be a whole number and leave some of the {shape} cells, got {crop!r}."
            )
        check_choice("boundary", boundary, ("periodic", "copy"))
        wrap = boundary == "periodic"
        # n cells that repeat are n + 1 cells whose last plane stands for the first.
        ends = ((0, 0), *[(0, int(wrap))] * 3)
        inside = (slice(None), *[slice(crop, n - crop) for n in shape])
        out = np.empty((len(start), len(steps), 6, *[n - 2 * crop for n in shape]))
        for frames, fields in zip(out, start, strict=True):
            state = np.pad(fields, ends, mode="wrap")
            for frame, now in zip(frames, self._march(state, steps, sources, wrap), strict=True):
                frame[:] = now[inside]
        return check_solved(torch.from_numpy(out))

    def residual(
        self, u: Frames, *, given: Mapping[str, Tensor], grid: Grid, times: Float[Tensor, " time"]
    ) -> tuple[Tensor, Tensor]:
        """∇ · E and ∇ · H at all frames, by the differences that Yee's scheme keeps at 0.

        They are compared with ∂Ex/∂x and the like, of which they are sums. The curl equations
        are left out: waves travel 2 to 4.5 cells from one frame to the next, so that the
        difference of two frames is no derivative. Of exact fields the residual would be twice
        ∂u/∂t.

        Args:
            u: Solutions, or predictions.
            given: Fields of the input by name, which are not needed.
            grid: Grid of u, of which only the order of the cells counts.
            times: Times of the frames, which are not needed.
        """
        e, h = u.split(3, dim=2)
        terms = torch.stack(
            [_divergence_terms(e, slice(1, None)), _divergence_terms(h, slice(None, -1))], dim=1
        )
        return terms.sum(-1), terms.norm(dim=-1)

    def _steps(self, times: Tensor) -> list[int]:
        """Time steps to each of the times."""
        if times[0] < 0:
            raise ValueError(f"`times` must increase from 0 or later, got {times.tolist()}.")
        ratio = times / self.time_step
        steps = ratio.round()
        if (ratio - steps).abs().max() > 1e-3:
            first = float(times[times > 0][0])
            n = math.ceil(first / self.time_step)
            courant = first / n * self.light_speed / self.spacing
            raise ValueError(
                f"`times` must be whole multiples of time_step={self.time_step:.6e}, got "
                f"{times.tolist()}. With courant={courant!r} the first is {n} steps."
            )
        return [int(n) for n in steps]

    def _march(
        self, state: np.ndarray, steps: list[int], sources: Sequence[PlaneSource], wrap: bool
    ) -> Iterator[np.ndarray]:
        """The state after each number of steps: the array itself, changed in place."""
        from sfo.pdes.maxwell.yee import advance

        ends = [[source.lower, source.upper] for source in sources]
        boxes = np.array(ends, dtype=np.int64).reshape(-1, 2, 3)
        channels = np.array([s.channels for s in sources], dtype=np.int64).reshape(-1, 2)
        signals = np.empty((steps[-1], len(sources)))
        for column, source in zip(signals.T, sources, strict=True):
            column[:] = source.signal(steps[-1])
        electric, magnetic = self.courant / self.permittivity, self.courant / self.permeability
        for start, stop in zip([0, *steps], steps, strict=False):
            advance(state, electric, magnetic, signals[start:stop], boxes, channels, wrap)
            yield state


def _divergence_terms(
    v: Float[Tensor, "sample time 3 x y z"], cells: slice
) -> Float[Tensor, "sample time _ _ _ 3"]:
    """∂v₁/∂x, ∂v₂/∂y and ∂v₃/∂z per cell, at the cells that have a neighbour to subtract."""
    every, terms = slice(None), []
    for axis, component in enumerate(v.unbind(2)):
        kept = [cells] * 3
        kept[axis] = every
        terms.append(component[(every, every, *kept)].diff(dim=axis - 3))
    return torch.stack(terms, dim=-1)


def _curl(v: Float[Tensor, "*batch 3 x y z"], shift: int) -> Float[Tensor, "*batch 3 x y z"]:
    """∇ × v on cells of edge 1, differences to the previous (shift 1) or the next cell (−1)."""

    def d(component: Tensor, axis: int) -> Tensor:
        return shift * (component - component.roll(shift, axis))

    x, y, z = v.unbind(-4)
    rows = [d(z, -2) - d(y, -1), d(x, -1) - d(z, -3), d(y, -3) - d(x, -2)]
    return torch.stack(rows, dim=-4)
