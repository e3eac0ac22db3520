"""Modules around a model: normalisers, and the rollout of a one-step model to a trajectory."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from sfo.models.operator import Operator
from sfo.models.standardise import OutputSkip, Standardise
from sfo.models.units import Units
from sfo.shapes import Field

Moments = tuple[float, float]
"""The mean and the deviation of a field."""


class Normalised(Units):
    """A model that sees inputs and solutions of mean 0 and deviation 1.

    Args:
        model: From `in_channels` to `out_channels` on `n_dim` axes.
        in_channels, out_channels, n_dim: As the model has them.
    """

    def __init__(self, model: nn.Module, in_channels: int, out_channels: int, n_dim: int) -> None:
        super().__init__(in_channels, out_channels, n_dim)
        self.model = model

    def set_moments(
        self,
        a: Sequence[tuple[Tensor | Moments, int]],
        u: Sequence[tuple[Tensor | Moments, int]],
    ) -> "Normalised":
        """Set m and s: each field's own, over all samples, times and points.

        Args:
            a: The values of each input field, or their moments, and the channels that it takes.
            u: The same of the solution.
        """
        for mean, deviation, fields in (
            (self.a_mean, self.a_deviation, a),
            (self.u_mean, self.u_deviation, u),
        ):
            first = 0
            for values, channels in fields:
                m, s = values if isinstance(values, tuple) else _statistics(values)
                mean[:, first : first + channels] = m
                deviation[:, first : first + channels] = s
                first += channels
        return self

    def forward(self, a: Field) -> Field:
        return self.from_model(self.model(self.to_model(a)))

    def absorbed(self) -> nn.Module:
        """The model with these units as its own, if it can have any: the same map."""
        if not isinstance(self.model, Operator):
            return self
        units = Units(self.a_mean.shape[1], self.u_mean.shape[1], self.a_mean.ndim - 2)
        units.load_state_dict(
            {k: v for k, v in self.state_dict().items() if not k.startswith("model.")}, assign=True
        )
        self.model.units = units
        return self.model


class FromFirstGuess(nn.Module):
    """A model that learns what a first guess at the solution leaves, as the recommended SFO does.

        u = offset + S a + s · model((a − m) / d)

    S is trained with the model; the other constants are given.

    Args:
        model: From `in_channels` to `out_channels`.
        in_channels, out_channels: As the model has them.
        fields: Fields of the solution, each with a size s of its own.
    """

    components = 1

    def __init__(self, model: nn.Module, in_channels: int, out_channels: int, fields: int) -> None:
        super().__init__()
        self.model = model
        self.standardise = Standardise(in_channels, fields)
        self.skip = OutputSkip(in_channels, out_channels)

    def standardise_by(
        self,
        mean: Tensor,
        deviation: Tensor,
        scale: Tensor,
        weight: Tensor,
        offset: Tensor,
        unit: Tensor | None,
    ) -> None:
        """Take the constants and the start of S, see `SFO.standardise_by`."""
        self.skip.set(weight, unit)
        self.standardise.set(mean, deviation, scale, offset)

    def forward(self, a: Field) -> Field:
        return self.standardise.scaled(self.model(self.standardise(a))) + self.skip(a)


def _statistics(values: Tensor) -> Moments:
    """Mean and deviation; the deviation of what is constant, but for rounding, is taken as 1."""
    deviation, mean = torch.std_mean(values, correction=0)
    return usable_moments(float(mean), float(deviation))


def usable_moments(mean: float, deviation: float) -> Moments:
    """Mean and deviation, which is 1 for what is constant but for rounding.

    Example:
        >>> usable_moments(5.0, 1e-9), usable_moments(5.0, 2.0)
        ((5.0, 1.0), (5.0, 2.0))
    """
    constant = deviation <= torch.finfo(torch.float32).eps * abs(mean)
    return mean, 1.0 if constant else deviation


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
