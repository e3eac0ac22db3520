"""Units of a model's inputs and solutions: means and deviations that it is blind to."""

import torch
from torch import Tensor, nn

from sfo.shapes import Field


class Units(nn.Module):
    """Fields in units of their own, of mean 0 and deviation 1, and back.

        u = m_u + s_u · model((a − m_a) / s_a)

    Args:
        in_channels, out_channels, n_dim: As the model has them.
    """

    a_mean: Tensor
    a_deviation: Tensor
    u_mean: Tensor
    u_deviation: Tensor

    def __init__(self, in_channels: int, out_channels: int, n_dim: int) -> None:
        super().__init__()
        for name, channels in (("a", in_channels), ("u", out_channels)):
            shape = (1, channels, *[1] * n_dim)
            self.register_buffer(f"{name}_mean", torch.zeros(shape))
            self.register_buffer(f"{name}_deviation", torch.ones(shape))

    def to_model(self, a: Field) -> Field:
        """An input as the model sees it."""
        return (a - self.a_mean) / self.a_deviation

    def from_model(self, u: Field) -> Field:
        """What the model answers, in the units of the data."""
        return u * self.u_deviation + self.u_mean
