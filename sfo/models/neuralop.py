"""neuraloperator's own FNO and UNO, as models of this package."""

import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from sfo.checks import install_command
from sfo.models.fno import for_each_axis
from sfo.models.matrices import Layout
from sfo.models.operator import Operator, split_components
from sfo.models.spectral_conv import keep_complex
from sfo.registry import MODELS
from sfo.shapes import Field

if TYPE_CHECKING:
    from typing_extensions import Self


class Peer(Operator):
    """Another library's model behind this package's interface."""

    extra: ClassVar[str | None] = "peers"
    """The optional dependencies that the model needs, as in `pip install '.[peers]'`."""

    matrix_layouts: ClassVar[dict[str, Layout | None]] = {"*.weight.tensor": "first_two"}
    """Weights of the spectral convolutions are `(in, out, *frequencies)`."""

    model: nn.Module

    @classmethod
    def available(cls) -> bool:
        """Whether neuraloperator is installed."""
        return find_spec("neuralop") is not None

    def operate(self, a: Field) -> Field:
        return self.model(a)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> "Self":
        return super()._apply(keep_complex(fn), recurse)


@MODELS.register("neuralop_fno")
class NeuralopFNO(Peer):
    """neuraloperator's FNO: two-layer lift and projection, a channel MLP in every layer.

    It computes in single precision. In version 2.0.0 its frequencies are off by one where an
    axis other than the last has an odd number of points n: the spectrum is shifted back by
    ⌊n/2⌋ where ⌈n/2⌉ is due.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes.
        n_modes: Frequencies along an axis, counted as in `FNO`; neuraloperator counts both
            signs and is given twice as many, which keeps one more along the last axis.
        hidden_channels: Latent channels.
        n_layers: Number of layers.
        projection_channels: Width of the hidden layer of the projection.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.

    Example:
        >>> model = NeuralopFNO(1, 3, hidden_channels=8) if NeuralopFNO.available() else None
        >>> model is None or sum(p.numel() for p in model.parameters()) > 1000
        True
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        "shallow_water": dict(n_modes=12, hidden_channels=20),
        "maxwell": dict(n_modes=8, hidden_channels=20, coordinates=False),
    }
    """Widths and modes of the paper's FNO; its parameters' number is not this one's."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        n_modes: int | Sequence[int] = 16,
        hidden_channels: int = 64,
        n_layers: int = 4,
        projection_channels: int = 128,
        coordinates: bool = True,
        components: int = 1,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        modes = for_each_axis("n_modes", n_modes, n_dim, at_least=1)
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        super().__init__(in_channels, out_channels, n_dim, components=components)
        model = import_neuralop().FNO(
            n_modes=tuple(2 * m for m in modes),
            in_channels=channels_in,
            out_channels=channels_out,
            hidden_channels=hidden_channels,
            n_layers=n_layers,
            projection_channel_ratio=projection_channels / hidden_channels,
            positional_embedding="grid" if coordinates else None,
        )
        # An operator's precision is that of its first parameter: not a complex one.
        blocks = model.fno_blocks
        del model.fno_blocks
        model.fno_blocks = blocks
        self.model = model
        self.register_state_dict_post_hook(_drop_metadata)
        self.arguments = {**arguments, "n_modes": list(modes)}


@MODELS.register("neuralop_uno")
class NeuralopUNO(Peer):
    """neuraloperator's UNO: five layers on n, n/2, n/4, n/2, n points, with skips across.

    It computes in single precision. In version 2.0.0 it misplaces the negative frequencies
    from one grid to the next, on more than one axis: it cuts or extends the spectrum at its end,
    where they lie.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes, at most 3.
        n_modes: Frequencies along an axis for each of the five layers, a number or one for each
            axis, counted as in `FNO`.
        hidden_channels: Latent channels on the finest grid.
        coordinates: Append the coordinates to the input.
        components: Components of a vector field that share the network, see `Operator`.

    Example:
        >>> model = NeuralopUNO(1, 3, hidden_channels=8) if NeuralopUNO.available() else None
        >>> model is None or sum(p.numel() for p in model.parameters()) > 1000
        True
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        "shallow_water": dict(n_modes=(17, 7, 7, 7, 17), hidden_channels=30),
        "maxwell": dict(
            n_modes=((16, 16, 9), (8, 8, 4), (8, 8, 4), (8, 8, 4), (16, 16, 9)),
            hidden_channels=32,
            coordinates=False,
        ),
    }
    """Widths and modes of the paper's UNO; its parameters' number is not this one's."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        n_modes: Sequence[int | Sequence[int]] = (11, 5, 5, 5, 11),
        hidden_channels: int = 20,
        coordinates: bool = True,
        components: int = 1,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        modes = [for_each_axis("n_modes", m, n_dim, at_least=1) for m in n_modes]
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        super().__init__(in_channels, out_channels, n_dim, components=components)
        d = hidden_channels
        uno = import_neuralop().UNO
        # Its constructor prints.
        with redirect_stdout(StringIO()):
            self.model = uno(
                in_channels=channels_in,
                out_channels=channels_out,
                hidden_channels=d,
                lifting_channels=d,
                projection_channels=2 * d,
                positional_embedding="grid" if coordinates else None,
                n_layers=5,
                uno_out_channels=[2 * d, 4 * d, 4 * d, 2 * d, d],
                uno_n_modes=[[2 * m for m in layer] for layer in modes],
                uno_scalings=[[scale] * n_dim for scale in (0.5, 0.5, 1, 2, 2)],
                channel_mlp_skip="linear",
            )
        self.arguments = {**arguments, "n_modes": [list(m) for m in modes]}


def import_neuralop() -> ModuleType:
    """`neuralop.models`, or an error that says how to get it."""
    try:
        # Importing it sets warning filters; this keeps them to itself.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from neuralop import models
    except ImportError as error:
        raise ImportError(
            f"This model is neuraloperator's, which is not installed: {install_command('peers')}."
        ) from error
    return models


def _drop_metadata(
    module: nn.Module, state: dict[str, Any], prefix: str, metadata: dict[str, Any]
) -> None:
    """neuraloperator adds its constructor's arguments to the state, which is no tensor."""
    state.pop("_metadata", None)
