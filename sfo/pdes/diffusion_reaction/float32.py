"""The diffusion–reaction equation as the published data were made: in float32, where it stalls."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sfo.pdes.diffusion_reaction import DiffusionReaction
from sfo.pdes.problem import Array, check_positive, check_problem


@dataclass(frozen=True)
class Float32DiffusionReaction(DiffusionReaction):
    """`DiffusionReaction` with the solver, and the defect, of the published data.

        u ← g(u, h) + h ν δ²(g(u, h/2) + h/2 ν δ²u),    g(u, h) = 1 / (1 + e^(−ρh) (1 − u) / u)

    with δ² the three-point difference and g the exact logistic growth. At 1,024 points the
    step h = 2⁻²² is so short that growth changes u by about one unit in the last place of
    float32, and rounding decides whether it does so at all: a field of mean 0.5 freezes near
    0.5625, where it should reach 0.731 at t = 1. With fewer points, and so longer steps, the
    same lines solve the equation. Use it for figures to set beside published ones, and
    `DiffusionReaction` for all else.

    Example:
        >>> import torch
        >>> start, times = 0.5 * torch.ones(1, 1, 32), torch.tensor([0.0, 1.0])
        >>> u = Float32DiffusionReaction().solve(start, times)
        >>> round(float(u[0, -1].mean()), 3)
        0.731
    """

    max_step: float = math.inf

    def solve(
        self,
        initial: Float[Array, "sample 1 n"],
        times: Float[Array, " time"] | Sequence[float],
        max_step: float | None = None,
    ) -> Float[Tensor, "sample time 1 n"]:
        """The solution at the steps nearest to `times`; the first frame is `initial` in float32.

        The step is dx²/(8ν), a quarter of what is stable, or `max_step` if that is shorter.
        """
        # Numba takes a second to load.
        from sfo.pdes.diffusion_reaction.float32_loops import advance

        initial, times = check_problem(initial, times, channels=1)
        if (initial < 0).any():
            raise ValueError(
                f"`initial` must not be negative, got {initial.min():g}: from below 0 logistic "
                "growth leads to −∞."
            )
        spacing = self.length / initial.shape[-1]
        max_step = self.max_step if max_step is None else max_step
        step = min(check_positive("max_step", max_step), spacing**2 / (8 * self.nu))
        # A power of two at the benchmark's constants: its products are exact in any order.
        weight = self.nu * step / spacing**2
        factors = [math.exp(-self.rho * step), math.exp(-self.rho * step / 2), weight, weight / 2]
        constants = [np.float32(factor) for factor in factors]
        step_counts = ((times - times[0]) / step).round().long().diff().tolist()
        values = initial.float().cpu().numpy()
        frames = np.empty((len(values), len(times), *values.shape[1:]), dtype=np.float32)
        for sample, field in enumerate(values[:, 0]):
            u = np.pad(field, 1, mode="wrap")
            frames[sample, 0] = field
            moving = True
            for frame, n_steps in enumerate(step_counts, start=1):
                # A step that changes no bit is the last that could.
                moving = moving and advance(u, n_steps, *constants) == n_steps
                frames[sample, frame] = u[1:-1]
        return torch.from_numpy(frames).double().to(initial.device)
