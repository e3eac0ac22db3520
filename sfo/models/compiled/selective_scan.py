"""The selective scan: a linear recurrence whose decay and input change from point to point."""

from collections.abc import Callable, Iterator
from functools import partial
from math import ceil, e, log2
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.models.compiled.threads import on_all_threads
from sfo.spectral_mix import no_autocast
from sfo.transforms import needs_plain_operators

Signal = Float[Tensor, "time batch channel"]
Coefficients = Float[Tensor, "time batch state"]
States = Float[Tensor, "time batch state channel"]


def selective_scan(
    u: Signal,
    delta: Signal,
    a: Float[Tensor, "state channel"],
    b: Coefficients,
    c: Coefficients,
    *,
    backwards: bool = False,
) -> Signal:
    """The output of a state space whose coefficients follow the signal, in O(time) work.

        hₜ = exp(Δₜ a) hₜ₋₁ + Δₜ bₜ uₜ,    yₜ = Σₛ cₜₛ hₜₛ,    h₋₁ = 0

    Every channel has states h of its own, indexed by s (Gu and Dao, "Mamba: Linear-Time
    Sequence Modeling with Selective State Spaces", 2023). They are in memory for a few points
    at a time: the backward pass computes them again from one in 32 or fewer, or one in 16 on a
    CPU in float64. No decay is ever divided by, so that nothing overflows however large Δ |a| is.
    On a CPU in float32 compiled loops do the work.

    Args:
        u: The signal, time first.
        delta: Step sizes Δ ≥ 0.
        a: Rates, at most 0.
        b: How the signal enters the states.
        c: How the states enter the output.
        backwards: Start at the last point: hₜ follows from hₜ₊₁.

    Example:
        >>> one = torch.ones(3, 1, 1)
        >>> half = torch.full((1, 1), 0.5).log()
        >>> selective_scan(one, one, half, one, one).flatten()
        tensor([1.0000, 1.5000, 1.7500])
    """
    # The recurrence adds up many small terms: under autocast it keeps the precision of a.
    u, delta, b, c = (part.to(a.dtype) for part in (u, delta, b, c))
    with no_autocast(u.device.type):
        plain = needs_plain_operators(u, a)
        if u.device.type == "cpu" and a.dtype == torch.float32 and not plain:
            return _CompiledScan.apply(u, delta, a, b, c, backwards)
        scan = scan_by_doubling if plain else _Scan.apply
        return _in_order(scan, backwards, u, delta, a, b, c)


def scan_by_doubling(
    u: Signal, delta: Signal, a: Float[Tensor, "state channel"], b: Coefficients, c: Coefficients
) -> Signal:
    """The same in plain torch, with all states in memory.

    A state has taken in one point at first, then 2, 4, 8, …: O(log time) operations, but
    O(time log time) work. For compilers and second derivatives.
    """
    decay = torch.exp(delta[:, :, None] * a)
    h = (delta * u)[:, :, None] * b[..., None]
    reach = 1
    while reach < len(h):
        h = torch.cat([h[:reach], h[reach:] + decay[reach:] * h[:-reach]])
        decay = torch.cat([decay[:reach], decay[reach:] * decay[:-reach]])
        reach *= 2
    return (c[:, :, None] @ h)[:, :, 0]


class _CompiledScan(torch.autograd.Function):
    """The scan on a CPU in float32, by compiled loops that keep the states in cache."""

    @staticmethod
    def forward(
        ctx: Any, u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, backwards: bool
    ) -> Tensor:
        from sfo.models.compiled.selective_scan_loops import CHECKPOINT_STEPS, scan

        u, delta = u.contiguous(), delta.contiguous()
        y = torch.empty_like(u)
        starts = u.new_empty(ceil(len(u) / CHECKPOINT_STEPS), u.shape[1], *a.shape)
        arrays = _arrays(u, delta, a * log2(e), b, c, starts, y)

        def work(_: int, start: int, stop: int) -> None:
            scan((start, stop), backwards, *arrays)

        on_all_threads(work, u.shape[1])
        ctx.save_for_backward(u, delta, a, b, c, starts)
        ctx.backwards = backwards
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, starts = ctx.saved_tensors
        if torch.is_grad_enabled():
            scan = partial(_in_order, scan_by_doubling, ctx.backwards)
            return *torch.func.vjp(scan, *inputs)[1](dy), None
        from sfo.models.compiled.selective_scan_loops import scan_gradients

        u, delta, a, b, c = inputs
        du, ddelta = torch.empty_like(u), torch.empty_like(delta)
        db, dc = b.new_zeros(b.shape), c.new_zeros(c.shape)
        da = a.new_zeros(torch.get_num_threads(), *a.shape)
        arrays = _arrays(u, delta, a * log2(e), b, c, starts, dy, du, ddelta, db, dc)

        def work(share: int, start: int, stop: int) -> None:
            scan_gradients((start, stop), ctx.backwards, *arrays, *_arrays(da[share]))

        on_all_threads(work, u.shape[1])
        return du, ddelta, da.sum(0), db, dc, None


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    # All contiguous: loops are compiled once for each combination of layouts.
    return [v.detach().contiguous().numpy() for v in tensors]


def _in_order(
    scan: Callable[..., Signal],
    backwards: bool,
    u: Signal,
    delta: Signal,
    a: Tensor,
    b: Coefficients,
    c: Coefficients,
) -> Signal:
    """A scan from the last point to the first if `backwards`."""
    if not backwards:
        return scan(u, delta, a, b, c)
    u, delta, b, c = (part.flip(0) for part in (u, delta, b, c))
    return scan(u, delta, a, b, c).flip(0)


class Block(NamedTuple):
    """How much of a scan is worked on at once.

    Args:
        rows: Samples of the batch.
        lanes: Stretches of the sequence that advance together.
        steps: Points of a lane: so many operations must wait for one another.
    """

    rows: int
    lanes: int
    steps: int

    @classmethod
    def fitting(cls, batch: int, a: Tensor) -> "Block":
        """Steps wide enough to be worth an operation, and on a CPU small enough for its cache."""
        width, steps = (2**15, 16) if a.device.type == "cpu" else (2**20, 32)
        wanted = max(1, width // a.numel())
        rows = min(batch, wanted)
        lanes = wanted // rows
        # Lanes do a quarter more work: two or three are not worth it.
        return cls(rows, lanes if lanes > 3 else 1, steps)

    def pieces(self, n: int) -> Iterator[tuple[slice, int]]:
        """The times of each piece of a sequence of n points, and its number of lanes."""
        start = 0
        while start < n:
            lanes = max(1, min(self.lanes, (n - start) // self.steps))
            stop = min(n, start + lanes * self.steps)
            yield slice(start, stop), lanes
            start = stop


class _Scan(torch.autograd.Function):
    """The scan, block by block of the batch and piece by piece of the sequence."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        ctx.block = block = Block.fitting(u.shape[1], a)
        pieces = list(block.pieces(len(u)))
        y = torch.empty_like(u)
        starts = u.new_zeros(len(pieces), u.shape[1], *a.shape)
        for rows in _rows(u, block):
            state = starts[0, rows]
            for piece, (times, lanes) in enumerate(pieces):
                starts[piece, rows] = state
                part = (times, rows)
                _, states = _states(u[part], delta[part], a, b[part], state, lanes)
                y[part] = (c[part][:, :, None] @ states[1:])[:, :, 0]
                state = states[-1]
        ctx.save_for_backward(u, delta, a, b, c, starts)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, ...]:
        *inputs, starts = ctx.saved_tensors
        if torch.is_grad_enabled():
            return torch.func.vjp(scan_by_doubling, *inputs)[1](dy)
        u, delta, a, b, c = inputs
        du, ddelta, db, dc = map(torch.empty_like, (u, delta, b, c))
        da = torch.zeros_like(a)
        pieces = list(enumerate(ctx.block.pieces(len(u))))
        for rows in _rows(u, ctx.block):
            arriving = torch.zeros_like(starts[0, rows])
            for piece, (times, lanes) in reversed(pieces):
                part = (times, rows)
                start = starts[piece, rows]
                decay, states = _states(u[part], delta[part], a, b[part], start, lanes)
                dc[part] = (dy[part][:, :, None] @ states[1:].mT)[:, :, 0]
                dh = c[part][..., None] * dy[part][:, :, None]
                _sweep(dh, decay, arriving, lanes, backwards=True)
                dx = (b[part][:, :, None] @ dh)[:, :, 0]
                db[part] = ((delta[part] * u[part])[:, :, None] @ dh.mT)[:, :, 0]
                before = dh.mul_(decay)
                arriving = before[0].clone()
                exponent = before.mul_(states[:-1])
                du[part] = dx * delta[part]
                ddelta[part] = (exponent * a).sum(-2).addcmul_(dx, u[part])
                da += (exponent * delta[part][:, :, None]).sum((0, 1))
        return du, ddelta, da, db, dc


def _rows(u: Tensor, block: Block) -> list[slice]:
    return [slice(start, start + block.rows) for start in range(0, u.shape[1], block.rows)]


def _states(
    u: Tensor, delta: Tensor, a: Tensor, b: Tensor, start: Tensor, lanes: int
) -> tuple[States, States]:
    """The decay at each point of a piece, and the states from the one before it on."""
    # On a CPU exp2 takes half the time of exp.
    decay = (delta[:, :, None] * (a * log2(e))).exp2_()
    states = u.new_empty(len(u) + 1, *start.shape)
    states[0] = start
    torch.mul((delta * u)[:, :, None], b[..., None], out=states[1:])
    _sweep(states[1:], decay, decay[0] * start, lanes)
    return decay, states


def _sweep(h: States, decay: States, arriving: Tensor, lanes: int, backwards: bool = False) -> None:
    """hₜ ← hₜ + decayₜ hₜ₋₁ in place; backwards, hₜ ← hₜ + decayₜ₊₁ hₜ₊₁.

    Lanes are swept twice: from rest, which tells what each hands on to the next, and then with
    what it is handed.

    Args:
        arriving: Added to the first state that is swept.
    """
    by_lane = decay.unflatten(0, (lanes, -1))
    border, *inner = by_lane.unbind(1)
    values = h.unflatten(0, (lanes, -1)).unbind(1)
    order = range(lanes)
    if backwards:
        inner, values, order = inner[::-1], values[::-1], order[::-1]
    if lanes > 1:
        last = values[0]
        for value, factor in zip(values[1:], inner, strict=True):
            last = torch.addcmul(value, factor, last)
        through = by_lane[:, 1:].prod(1)
        arrivals = torch.empty_like(border)
        for lane in order:
            arrivals[lane] = arriving
            leaving = torch.addcmul(last[lane], through[lane], arriving)
            # The border to the next lane is the one before the later of the two.
            later = lane if backwards else (lane + 1) % lanes
            arriving = border[later] * leaving
        arriving = arrivals
    values[0].add_(arriving)
    for before, value, factor in zip(values, values[1:], inner, strict=False):
        torch.addcmul(value, factor, before, out=value)
