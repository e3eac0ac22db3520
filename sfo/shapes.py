"""Shape annotations shared by the whole package; the tests check them at run time."""

from jaxtyping import Float
from torch import Tensor

Field = Float[Tensor, "batch _ *grid"]
"""A sampled function `(batch, channel, *grid)`: one value per channel and grid point."""

Modes = Float[Tensor, "modes *grid"]
"""One basis function a row, on a grid."""

Theta = Float[Tensor, "modes out in"]
"""The mixing matrices Θₗ of a kernel."""
