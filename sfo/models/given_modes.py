"""Modes that are kept with a model's weights, where no basis can compute them again."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

GIVEN = "given"
"""The name of this basis in the options of a kernel."""


class GivenModes(nn.Module):
    """The modes along each axis of the training grid, part of the model's state.

    They are plain numbers on the CPU in float64, whatever the model is converted to, and are
    empty until they are set or loaded.

    Args:
        n_modes: Modes along each axis, L.
        shape: The training grid.

    Example:
        >>> modes = GivenModes(2, [3])
        >>> modes.set([torch.eye(2, 3)])
        >>> modes.along(0, 3)[1]
        tensor([0., 1., 0.], dtype=torch.float64)
    """

    def __init__(self, n_modes: int, shape: Sequence[int]) -> None:
        super().__init__()
        self.n_modes, self.shape = n_modes, tuple(shape)
        self.axes: list[Tensor] = []
        self.version = 0
        """Raised whenever the modes are set: what was prepared from others is out of date."""

    def set(self, axes: Sequence[Tensor]) -> None:
        """Take these modes, one tensor `(L, n)` per axis."""
        expected = [(self.n_modes, n) for n in self.shape]
        shapes = [tuple(phi.shape) for phi in axes]
        if shapes != expected:
            raise ValueError(f"The given modes must have the shapes {expected}, got {shapes}.")
        self.axes = [phi.detach().to("cpu", torch.float64) for phi in axes]
        self.version += 1

    def along(self, axis: int, n: int) -> Float[Tensor, "modes n"]:
        """The modes along an axis of n points."""
        if not self.axes:
            raise ValueError(
                '`basis="given"` has no modes yet: load the weights that they belong to, or use '
                "sfo.models.import_public, which sets them."
            )
        if self.shape[axis] != n:
            raise ValueError(
                f"The given modes have {self.shape[axis]} points along axis {axis}, the grid has "
                f'{n}: set model.modes.transfer = "restrict" to evaluate on other grids.'
            )
        return self.axes[axis]

    def get_extra_state(self) -> Tensor:
        """All axes side by side, `(L, n₁ + … + n_M)`."""
        return torch.cat(self.axes, 1) if self.axes else torch.empty(0, dtype=torch.float64)

    def set_extra_state(self, state: Tensor) -> None:
        if state.numel():
            self.set(state.split(self.shape, dim=1))
