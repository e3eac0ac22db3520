"""What every operator here has in common: its interface, its input checks, and its frame."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from sfo.checks import check_whole
from sfo.models.option_state import check_options as refuse_other_options
from sfo.models.option_state import pack, unpack
from sfo.models.presets import PAPER_SHAPES, paper_settings
from sfo.models.pretrained import Pretrained
from sfo.models.units import Units
from sfo.shapes import Field

if TYPE_CHECKING:
    from typing_extensions import Self


class Operator(Pretrained, nn.Module):
    """A map from fields to fields on the same grid; a model defines `operate`.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u.
        n_dim: Number of axes of the grid.
        components: Treat the channels as this many components of a vector field that share
            one network and do not mix: `in_channels` and `out_channels` are then split
            evenly, a component's channels side by side.
    """

    PAPER: ClassVar[dict[str, dict[str, Any]] | None] = None
    """The paper's settings for its benchmarks where they differ from the constructor's, besides
    the channels and axes of `PAPER_SHAPES`; None: the paper does not have the model."""

    RECOMMENDED: ClassVar[dict[str, dict[str, Any]]] = {}
    """What the model's own `recommended` settings change for a benchmark, if it has such."""

    extra: ClassVar[str | None] = None
    """The optional dependencies that the model needs, as in `pip install '.[peers]'`."""

    must_say_options: ClassVar[bool] = False
    """Whether weights that do not say their options are refused: those of all versions do."""

    def __init__(
        self, in_channels: int, out_channels: int, n_dim: int, *, components: int = 1
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.n_dim = in_channels, out_channels, n_dim
        self.components = components
        self.units: Units | None = None
        """Of the data, for a model that was trained on normalised ones; None: as they are."""
        self.check_options = True

    def operate(self, a: Field) -> Field:
        """u for input that has been checked, one component at a time."""
        raise NotImplementedError

    def forward(self, x: Tensor, y: Tensor | None = None) -> Field:
        """Map the input field a, here `x`, to the solution u.

        `y` is not used: trainers that pass a whole sample, such as neuraloperator's, may.
        """
        self.check_input(x)
        samples = x.shape[0]
        a = x if self.units is None else self.units.to_model(x)
        u = self.operate(a.reshape(samples * self.components, -1, *a.shape[2:]))
        u = u.reshape(samples, -1, *u.shape[2:])
        return u if self.units is None else self.units.from_model(u)

    def load_state_dict(
        self,
        state_dict: Mapping[str, Any],
        strict: bool = True,
        assign: bool = False,
        *,
        check_options: bool = True,
    ) -> Any:
        """Load weights, as every module of torch does.

        Args:
            state_dict: The weights.
            strict: Whether names must be the same.
            assign: Whether to take the tensors themselves instead of their numbers.
            check_options: Whether to refuse weights that say they were trained with other options,
                such as another basis or boundary, under which they are another map.
        """
        self.check_options = check_options
        try:
            return super().load_state_dict(state_dict, strict=strict, assign=assign)
        finally:
            self.check_options = True

    def options(self) -> dict[str, Any]:
        """Settings that weights rely on, but do not show in their names or shapes.

        They travel with the weights, which are refused where one of them differs: there they
        would be another map. A model of your own gives those that it has, as JSON can hold them.
        """
        return {}

    def get_extra_state(self) -> Tensor:
        return pack(dict(options=self.options()))

    def set_extra_state(self, state: Tensor) -> None:
        """Nothing besides the options, which `_load_from_state_dict` has compared."""

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        *how: Any,
    ) -> None:
        name = f"{prefix}_extra_state"
        # Before any weight is taken.
        if name in state_dict and self.check_options:
            refuse_other_options(unpack(state_dict[name]).get("options", {}), self.options())
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, *how
        )
        if name in missing_keys and not self.must_say_options:
            missing_keys.remove(name)

    @classmethod
    def from_paper(cls, benchmark: str, **overrides: Any) -> "Self":
        """The paper's model for one of its six benchmarks.

        Example:
            >>> from sfo.models import SFO
            >>> model = SFO.from_paper("maxwell")
            >>> sum(p.numel() for p in model.parameters())
            119304
        """
        settings = paper_settings(cls, benchmark)
        return cls(**{**PAPER_SHAPES[benchmark], **settings, **overrides})

    @classmethod
    def available(cls) -> bool:
        """Whether what the model needs is installed."""
        return True

    @classmethod
    def on_grid(cls, settings: dict[str, Any], shape: Sequence[int]) -> dict[str, Any]:
        """A preset's settings as a grid of this shape can bear them."""
        return settings

    def save_checkpoint(self, save_folder: str | os.PathLike[str], save_name: str) -> None:
        """Write the state where neuraloperator's trainer asks for it and looks when it resumes.

        For weights to keep or pass on, use `save_pretrained`.
        """
        folder = Path(save_folder)
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(self.state_dict(), folder / f"{save_name}_state_dict.pt")

    def check_input(self, a: Tensor) -> None:
        """Say in one sentence what is wrong with an input that this model cannot take."""
        if not isinstance(a, Tensor):
            raise ValueError(
                f"The input must be a torch tensor, got {type(a).__name__}; "
                "torch.as_tensor(a, dtype=torch.float32) makes one."
            )
        expected = f"(batch, {self.in_channels}, {', '.join(['n'] * self.n_dim)})"
        shape = tuple(a.shape)
        if a.ndim != self.n_dim + 2:
            raise ValueError(
                f"The input must have {self.n_dim + 2} axes, {expected}, got shape {shape}; "
                f"this model was built with n_dim={self.n_dim}."
            )
        if a.shape[1] != self.in_channels:
            raise ValueError(
                f"The input must have {self.in_channels} channels, {expected}, got "
                f"{a.shape[1]} in shape {shape}."
            )
        # A symbolic size must not be compared when a model is exported.
        if not torch.compiler.is_compiling() and 0 in shape:
            raise ValueError(f"The input must have no empty axis, {expected}, got shape {shape}.")
        if not a.is_floating_point():
            raise ValueError(
                f"The input must be real floating point, got {a.dtype}; use a.float()."
            )
        wanted = next(p.dtype for p in self.parameters() if not p.is_complex())
        if a.dtype != wanted and not torch.is_autocast_enabled(a.device.type):
            raise ValueError(
                f"The input is {a.dtype} and the model {wanted}: convert one of them, with "
                f"a.to({wanted}) or model.to({a.dtype})."
            )


class LayeredOperator(Operator):
    """u = Q(layer_T(… layer_1(P(a)))): lift, layers, project.

    Args:
        in_channels, out_channels, n_dim, components: See `Operator`.
        lift: P, from the input channels to latent channels.
        layers: Maps of the latent field.
        project: Q, from latent channels to the output channels.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int,
        *,
        lift: nn.Module,
        layers: list[nn.Module],
        project: nn.Module,
        components: int = 1,
    ) -> None:
        super().__init__(in_channels, out_channels, n_dim, components=components)
        self.lift = lift
        self.layers = nn.ModuleList(layers)
        self.project = project

    def operate(self, a: Field) -> Field:
        v = self.lift(a)
        for layer in self.layers:
            v = layer(v)
        return self.project(v)


def split_components(in_channels: int, out_channels: int, components: int) -> tuple[int, int]:
    """Channels of one component, or an error where they do not divide.

    Example:
        >>> split_components(12, 48, 6)
        (2, 8)
    """
    check_whole(1, components=components)
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        check_whole(0, **{name: channels})
        if channels < 1 or channels % components:
            raise ValueError(
                f"`{name}` must be a positive multiple of `components`, got "
                f"{name}={channels}, components={components}."
            )
    return in_channels // components, out_channels // components
