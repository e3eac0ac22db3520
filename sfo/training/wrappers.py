"""Modules around a model: a normaliser, and the rollout of a one-step model to a trajectory."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfo.shapes import Field


class Normalised(nn.Module):
    """A model that sees inputs and solutions of mean 0 and deviation 1.

        u = m_u + s_u · model((a − m_a) / s_a)

    Args:
        model: From `in_channels` to `out_channels` on `n_dim` axes.
        in_channels, out_channels, n_dim: Of the model.
    """

    a_mean: Tensor
    a_deviation: Tensor
    u_mean: Tensor
    u_deviation: Tensor

    def __init__(self, model: nn.Module, in_channels: int, out_channels: int, n_dim: int) -> None:
        super().__init__()
        self.model = model
        for name, channels in (("a", in_channels), ("u", out_channels)):
            shape = (1, channels, *[1] * n_dim)
            self.register_buffer(f"{name}_mean", torch.zeros(shape))
            self.register_buffer(f"{name}_deviation", torch.ones(shape))

    def measure(
        self, a: Sequence[tuple[Tensor, int]], u: Sequence[tuple[Tensor, int]]
    ) -> "Normalised":
        """Set m and s: each field's own, over all samples, times and points.

        Args:
            a: The values of each input field, and the channels that it takes.
            u: The same of the solution.
        """
        for mean, deviation, fields in (
            (self.a_mean, self.a_deviation, a),
            (self.u_mean, self.u_deviation, u),
        ):
            first = 0
            for values, channels in fields:
                m, s = _statistics(values)
                mean[:, first : first + channels] = m
                deviation[:, first : first + channels] = s
                first += channels
        return self

    def forward(self, a: Field) -> Field:
        u = self.model((a - self.a_mean) / self.a_deviation)
        return u * self.u_deviation + self.u_mean


def _statistics(values: Tensor) -> tuple[float, float]:
    """Mean and deviation; the deviation of what is constant, but for rounding, is taken as 1."""
    deviation, mean = torch.std_mean(values, correction=0)
    constant = deviation <= torch.finfo(torch.float32).eps * mean.abs()
    return float(mean), 1.0 if constant else float(deviation)


class Rollout(nn.Module):
    """A trajectory by repeated steps: the model maps the last n frames to the next one.

    Args:
        model: From n frames of each field, and static fields, to one frame of each field.
        n_input: Frames n that the model sees.
        n_times: Frames of the trajectory, the first n of which are the input's.
        fields: Fields that change in time; further input channels are static.
    """

    def __init__(self, model: nn.Module, n_input: int, n_times: int, fields: int) -> None:
        super().__init__()
        self.model = model
        self.n_input, self.n_times, self.fields = n_input, n_times, fields

    def forward(self, a: Field) -> Field:
        moving = self.fields * self.n_input
        window, static = a[:, :moving], a[:, moving:]
        frames = list(window.unflatten(1, (self.fields, self.n_input)).unbind(2))
        for _ in range(self.n_times - self.n_input):
            seen = torch.stack(frames[-self.n_input :], dim=2).flatten(1, 2)
            frames.append(self.model(torch.cat([seen, static], dim=1)))
        return torch.stack(frames, dim=2).flatten(1, 2)
