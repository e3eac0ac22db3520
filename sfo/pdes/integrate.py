"""Exponential time stepping: the stiff linear part exactly, the rest by Runge–Kutta of order 4."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor

from sfo.pdes.problem import MOST_STEPS, check_positive


class ETDRK4:
    """One step h of ∂û/∂t = λ û + μ r(û), for every Fourier coefficient and its λ and μ.

        a = E û + Q r(û),    b = E û + Q r(a),    c = E a + Q (2 r(b) − r(û)),
        û ← E² û + hμ [(φ₁ − 3φ₂ + 4φ₃) r(û) + (2φ₂ − 4φ₃) (r(a) + r(b)) + (4φ₃ − φ₂) r(c)]

    with E = exp(hλ/2), Q = hμ φ₁(hλ/2)/2, and the other φ at hλ (Cox & Matthews, "Exponential
    time differencing for stiff systems", 2002). Exact where r = 0, the classical Runge–Kutta
    method where λ = 0.
    """

    def __init__(
        self, linear: Float[Tensor, "*modes"], outer: Float[Tensor, "*modes"], step: float
    ) -> None:
        z = step * linear
        gain = step * outer
        phi1, phi2, phi3 = phi_functions(z)
        self.decay, self.half_decay = torch.exp(z), torch.exp(z / 2)
        self.half_gain = gain / 2 * phi_functions(z / 2)[0]
        self.first = gain * (phi1 - 3 * phi2 + 4 * phi3)
        self.middle = gain * (2 * phi2 - 4 * phi3)
        self.last = gain * (4 * phi3 - phi2)

    def __call__(self, u: Tensor, r: Callable[[Tensor], Tensor]) -> Tensor:
        """The coefficients one step after u."""
        r_u = r(u)
        halfway = self.half_decay * u
        a = halfway + self.half_gain * r_u
        r_a = r(a)
        r_b = r(halfway + self.half_gain * r_a)
        r_c = r(self.half_decay * a + self.half_gain * (2 * r_b - r_u))
        return self.decay * u + self.first * r_u + self.middle * (r_a + r_b) + self.last * r_c


def phi_functions(z: Float[Tensor, "*shape"]) -> tuple[Tensor, Tensor, Tensor]:
    """φ₁, φ₂ and φ₃, where φ₀ = exp and φₖ₊₁(z) = (φₖ(z) − 1/k!) / z, at real or complex z.

    Accurate to a few round-offs at any real z, in float64, and to a few 1e-16 on the
    imaginary axis.

    Example:
        >>> [float(phi) for phi in phi_functions(torch.zeros(()).double())]
        [1.0, 0.5, 0.16666666666666666]
    """
    # Near 0 the recurrence cancels; there φₖ(z) = Σⱼ zʲ / (j + k)!, and 18 terms suffice.
    small = z.abs() <= 1
    near, far = torch.where(small, z, 0.0), torch.where(small, 1.0, z)
    recurrence = torch.expm1(far) / far
    phi = []
    for k in (1, 2, 3):
        series = torch.zeros_like(near)
        for j in reversed(range(18)):
            series = series * near + 1 / math.factorial(j + k)
        phi.append(torch.where(small, series, recurrence))
        recurrence = (recurrence - 1 / math.factorial(k)) / far
    return phi[0], phi[1], phi[2]


@torch.no_grad()
def integrate(
    initial: Float[Tensor, "sample channel *grid"],
    times: Float[Tensor, " time"],
    *,
    linear: Float[Tensor, "*modes"],
    outer: Float[Tensor, "*modes"],
    reaction: Callable[[Tensor], Tensor],
    max_step: float,
    warm_up: int = 0,
    tolerance: float = math.inf,
) -> Float[Tensor, "sample time channel *grid"]:
    """The frames at `times` of ∂û/∂t = linear û + outer reaction(û), u(times[0]) = initial.

    Args:
        initial: Fields at the first of the times.
        times: Times of the frames.
        linear: λ(k), one factor per Fourier coefficient, real or complex.
        outer: μ(k), one factor per Fourier coefficient.
        reaction: From the coefficients of u to those of the reaction.
        max_step: Longest step.
        warm_up: How often `max_step` is halved for the first steps, see `step_plan`.
        tolerance: Relative error of a sample above which `StepTooLong` is raised. It is
            estimated on the sample for which a first step of half the length makes most of a
            difference, from one time to the next here and there.
    """
    shape = tuple(initial.shape[2:])
    axes = tuple(range(-len(shape), 0))
    linear, outer = linear.to(initial.device), outer.to(initial.device)
    frame_times = set(times.tolist())
    frames = [initial]
    u_hat = torch.fft.rfftn(initial, dim=axes)
    steppers: dict[float, ETDRK4] = {}
    plan = list(step_plan(times.tolist(), max_step, warm_up))
    rate = error = 0.0
    for index, (start, end, n_steps) in enumerate(plan):
        # Stretches that are meant to be equal differ in their last digits: twelve will do.
        step = float(f"{(end - start) / n_steps:.12g}")
        watched = tolerance < math.inf and (index < 2 or index % -(-len(plan) // 4) == 0)
        for length in (step, step / 2)[: 1 + watched]:
            if length not in steppers:
                steppers[length] = ETDRK4(linear, outer, length)
        # Fields are roughest at first; after that a few checks will do.
        if watched:
            row, finer = _least_accurate(steppers[step], steppers[step / 2], u_hat, reaction)
        for _ in range(n_steps):
            u_hat = steppers[step](u_hat, reaction)
        if watched:
            for _ in range(2 * n_steps - 2):
                finer = steppers[step / 2](finer, reaction)
            difference, size = (v.abs().norm() for v in (u_hat[row] - finer, finer))
            rate = float(difference / size.clamp(min=1e-300)) / (end - start)
        error += rate * (end - start)
        if not error <= tolerance:
            raise StepTooLong(end, step, error)
        if not u_hat.isfinite().all():
            raise ValueError(
                f"The solution blew up between t={start:g} and t={end:g}, in steps of {step:g}. "
                f"Pass a smaller `max_step`, such as max_step={max_step / 4:.1g}."
            )
        if end in frame_times:
            frames.append(torch.fft.irfftn(u_hat, s=shape, dim=axes))
    return torch.stack(frames, dim=1)


class StepTooLong(ArithmeticError):
    """Steps so long that the solution would be off by more than is allowed."""

    def __init__(self, time: float, step: float, error: float) -> None:
        off = f"are estimated to be off by {error:.0e} of the solution"
        blown = "let the solution blow up"
        super().__init__(
            f"At t={time:g} steps of {step:g} {off if math.isfinite(error) else blown}."
        )
        self.error = error


def _least_accurate(
    full_step: ETDRK4, half_step: ETDRK4, u: Tensor, r: Callable[[Tensor], Tensor]
) -> tuple[slice, Tensor]:
    """The sample of which one step differs most from two of half the length, and these two."""
    twice = half_step(half_step(u, r), r)
    difference, size = (v.abs().flatten(1).norm(dim=1) for v in (full_step(u, r) - twice, twice))
    sample = int(torch.nan_to_num(difference / size.clamp(min=1e-300), nan=math.inf).argmax())
    row = slice(sample, sample + 1)
    return row, twice[row]


def step_plan(
    times: Sequence[float], max_step: float, warm_up: int = 0
) -> Iterator[tuple[float, float, int]]:
    """(start, end, number of equal steps) from one time to the next, steps at most `max_step`.

    Diffusion smooths a rough initial field at first fast, then ever slower. So after a time t
    the steps are at most t/8, or `max_step` halved `warm_up` times if that is more, in powers
    of two of `max_step`: all of them together cost about 8 (warm_up + 1) steps.

    Example:
        >>> list(step_plan([0.0, 1.0, 3.0], max_step=0.5))
        [(0.0, 1.0, 2), (1.0, 3.0, 4)]
        >>> list(step_plan([0.0, 64.0], max_step=4.0, warm_up=2))
        [(0.0, 16.0, 16), (16.0, 32.0, 8), (32.0, 64.0, 8)]
    """
    check_positive("max_step", max_step)
    doublings = [times[0] + 16 * max_step / 2**j for j in range(1, warm_up + 1)]
    stops = {t for t in doublings if t < times[-1]} | set(times)
    for start, end in pairwise(sorted(stops)):
        limit = max_step / 2 ** sum(start < t for t in doublings)
        if not end - start < MOST_STEPS * limit:
            raise ValueError(
                f"From {start:g} to {end:g} there are more than {MOST_STEPS:g} steps of at most "
                f"{limit:g}; pass nearer `times` or a longer `max_step`."
            )
        yield start, end, max(1, math.ceil((end - start) / limit - 1e-9))
