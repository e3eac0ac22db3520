"""The singular value decomposition neural operator (SVD-NO)."""

from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from sfo.checks import check_at_least, check_choice
from sfo.models.blocks import Pointwise, coordinates
from sfo.models.operator import Operator, split_components
from sfo.registry import MODELS
from sfo.shapes import Field
from sfo.spectral_mix import no_autocast
from sfo.transforms import is_transformed

Network = Literal["lstm", "sine"]
Points = Float[Tensor, "batch _ points"]
"""A field with its grid flattened."""


class SineNetwork(nn.Module):
    """A perceptron with sines, at every point on its own."""

    def __init__(self, in_channels: int, channels: int, n_layers: int) -> None:
        super().__init__()
        widths = [in_channels, *[channels] * n_layers]
        self.layers = nn.ModuleList(Pointwise(width, channels) for width in widths)

    def forward(self, z: Points) -> Points:
        for layer in self.layers:
            z = layer(z).sin()
        return z


class RecurrentNetwork(nn.Module):
    """An LSTM that walks along the one axis of the grid."""

    def __init__(self, in_channels: int, channels: int, n_layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(in_channels, channels, n_layers)

    def forward(self, z: Points) -> Points:
        # In mixed precision CPUs have no LSTM.
        with no_autocast(z.device.type):
            sequence = z.permute(2, 0, 1).to(next(self.parameters()).dtype)
            # torch has no LSTM on the meta device or under its own transforms.
            plain = is_transformed() or z.is_meta
            out = lstm_by_definition(self.lstm, sequence) if plain else self.lstm(sequence)[0]
            return out.permute(1, 2, 0)


def lstm_by_definition(
    lstm: nn.LSTM, sequence: Float[Tensor, "points batch _"]
) -> Float[Tensor, "points batch _"]:
    """The outputs of an LSTM, point by point: i, f, g, o = W x + b + W' h + b', then c and h.

    Example:
        >>> lstm, sequence = nn.LSTM(2, 3, 2), torch.randn(5, 1, 2)
        >>> torch.allclose(lstm_by_definition(lstm, sequence), lstm(sequence)[0], atol=1e-6)
        True
    """
    for layer in range(lstm.num_layers):
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        w_x, b_x, w_h, b_h = (getattr(lstm, f"{name}_l{layer}") for name in names)
        entering = F.linear(sequence, w_x, b_x).unbind()
        h = c = torch.zeros_like(entering[0][:, : lstm.hidden_size])
        outputs = []
        for x in entering:
            i, f, g, o = (x + F.linear(h, w_h, b_h)).chunk(4, -1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            outputs.append(h)
        sequence = torch.stack(outputs)
    return sequence


class SingularFunctions(nn.Module):
    """L functions with d components each, that depend on the input field: Φ(z) = R(h(z), 1).

    h is a network with few channels, R a linear map of them to d · L. Integrals and sums of Φ
    are linear in R, so that Φ itself, d · L numbers a point, is not needed to compute them.

    Args:
        network: h.
        channels: Channels of h.
        components: d.
        n_functions: L.
    """

    def __init__(
        self, network: nn.Module, channels: int, components: int, n_functions: int
    ) -> None:
        super().__init__()
        self.network = network
        self.readout = nn.Linear(channels, components * n_functions)
        self.n_functions = n_functions

    def features(self, z: Points) -> Points:
        """h(z), and 1 for the readout's bias."""
        return F.pad(self.network(z), (0, 0, 0, 1), value=1.0)

    @property
    def matrix(self) -> Float[Tensor, "components functions features"]:
        """R, the bias in the last column."""
        full = torch.cat([self.readout.weight, self.readout.bias[:, None]], dim=1)
        return full.unflatten(0, (-1, self.n_functions))

    def forward(self, z: Points) -> Float[Tensor, "batch components functions points"]:
        """Φ at every point."""
        return torch.einsum("dlh,bhn->bdln", self.matrix, self.features(z))

    def gram(self, features: Points, weighted: Points) -> Float[Tensor, "batch L L"]:
        """∫ Φᵀ Φ dx from h, and h times the weights of the points."""
        covariance = torch.bmm(weighted, features.mT)
        matrix = self.matrix
        products = torch.einsum("dlh,dmk->lmhk", matrix, matrix)
        return torch.einsum("lmhk,bhk->blm", products, covariance)


@MODELS.register("svd_no")
class SVDNO(Operator):
    """A neural operator that learns the singular value decomposition of its kernel.

        u = Q v_T,        v_t = GELU(W_t v_{t−1} + b_t + K v_{t−1}),        v₀ = P z,
        (K v)(x) = Σₗ φₗ(z(x)) σₗ ∫ ψₗ(z(y)) · v(y) dy,        z = (a, x)

    Two networks give the L singular functions φₗ and ψₗ, with d components each, at a point
    from the input and the coordinates there, or along the way to there if they are LSTMs. They
    and σ are shared by all layers, W_t and b_t are not. Integrals over the unit box are by the
    trapezoidal rule. Any grid is accepted.

    Nothing but a penalty makes the functions orthonormal. A training loop adds it to its loss:

        ‖∫ Φᵀ Φ dx − 1‖² + ‖∫ Ψᵀ Ψ dx − 1‖²,        the mean over the batch.

    It is `regularisation()`, a scalar of the last forward pass, weight included; any model with
    a term of its own may have such a method. For models inside of others it is

        sum(m.regularisation() for m in model.modules() if hasattr(m, "regularisation"))

    There is no public code, and the numbers of parameters that the SFO paper prints do not fit
    the published equations: on one axis 586,193, the mean of four, here 206,957 (Allen–Cahn),
    159,917, 2,163,816 and 29,699, whose mean is 640,097; on two 973,289, here 1,396,201; on
    three 125,452, here 76,556.

    Args:
        in_channels: Channels of the input field a.
        out_channels: Channels of the solution field u; time steps count as channels.
        n_dim: Number of axes.
        n_modes: Number of singular functions L.
        hidden_channels: Latent channels d.
        n_layers: Number of layers T.
        network: `"sine"`: perceptrons with sines; `"lstm"`: LSTMs along the axis, if it is one.
        network_channels: Width of the networks.
        network_layers: Hidden maps of the perceptrons, from width to width, or stacked LSTMs.
        penalty: Weight of the penalty.
        components: Components of a vector field that share the network, see `Operator`.

    Example:
        >>> model = SVDNO.from_paper("diffusion_sorption")
        >>> model(torch.randn(8, 1, 256)).shape
        torch.Size([8, 101, 256])
        >>> model.regularisation().shape
        torch.Size([])
    """

    PAPER: ClassVar[dict[str, dict[str, Any]]] = {
        "allen_cahn": dict(network="lstm"),
        "diffusion_sorption": dict(network_layers=6),
        "diffusion_reaction": dict(
            n_modes=3,
            hidden_channels=512,
            network="lstm",
            network_channels=128,
            network_layers=3,
        ),
        "cahn_hilliard": dict(
            hidden_channels=64,
            network_channels=5,
            network_layers=2,
        ),
        "shallow_water": dict(
            n_modes=4,
            hidden_channels=512,
            network_channels=64,
            network_layers=3,
        ),
        "maxwell": dict(
            n_modes=4,
            hidden_channels=64,
            network_channels=64,
            network_layers=3,
            components=6,
        ),
    }

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        n_dim: int = 1,
        *,
        n_modes: int = 8,
        hidden_channels: int = 128,
        n_layers: int = 4,
        network: Network = "sine",
        network_channels: int = 32,
        network_layers: int = 4,
        penalty: float = 1.0,
        components: int = 1,
    ) -> None:
        arguments = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        check_choice("network", network, Network)
        if network == "lstm" and n_dim != 1:
            raise ValueError(
                f"`network` must be 'sine' on {n_dim} axes, got 'lstm', which needs an order of "
                "the points."
            )
        sizes = (n_modes, hidden_channels, n_layers, network_channels, network_layers)
        if min(sizes) < 1:
            raise ValueError(
                "`n_modes`, `hidden_channels`, `n_layers`, `network_channels` and "
                f"`network_layers` must be at least 1, got {', '.join(map(str, sizes))}."
            )
        check_at_least(0, penalty=penalty)
        channels_in, channels_out = split_components(in_channels, out_channels, components)
        super().__init__(in_channels, out_channels, n_dim, components=components)
        channels_in += n_dim
        kind = RecurrentNetwork if network == "lstm" else SineNetwork

        def functions() -> SingularFunctions:
            net = kind(channels_in, network_channels, network_layers)
            return SingularFunctions(net, network_channels, hidden_channels, n_modes)

        self.lift = Pointwise(channels_in, hidden_channels)
        self.phi, self.psi = functions(), functions()
        self.sigma = nn.Parameter(torch.ones(n_modes))
        self.layers = nn.ModuleList(
            Pointwise(hidden_channels, hidden_channels) for _ in range(n_layers)
        )
        self.project = Pointwise(hidden_channels, channels_out)
        self.penalty = penalty
        self._excess: Tensor | None = None
        self.arguments = arguments

    def operate(self, a: Field) -> Field:
        z = torch.cat([a, coordinates(a)], dim=1).flatten(2)
        weights = trapezoid_weights(a)
        phi, psi = self.phi.features(z), self.psi.features(z)
        weighted_psi = psi * weights
        v = self.lift(z)
        for layer in self.layers:
            v = F.gelu(layer(v) + self.kernel(v, phi, weighted_psi))
        self._excess = excess(self.phi.gram(phi, phi * weights))
        self._excess = self._excess + excess(self.psi.gram(psi, weighted_psi))
        return self.project(v).unflatten(2, a.shape[2:])

    def kernel(self, v: Points, phi: Points, weighted_psi: Points) -> Points:
        """Σₗ φₗ σₗ ∫ ψₗ · v from the features of φ, and those of ψ with the points' weights."""
        moments = torch.bmm(v, weighted_psi.mT)
        q = self.sigma * torch.einsum("dlh,bdh->bl", self.psi.matrix, moments)
        return torch.bmm(torch.einsum("dlh,bl->bdh", self.phi.matrix, q), phi)

    def regularisation(self) -> Float[Tensor, ""]:
        """How far the singular functions of the last forward pass are from orthonormal."""
        if self._excess is None:
            raise ValueError("`regularisation` is about the last forward pass: there was none.")
        return self.penalty * self._excess

    def __getstate__(self) -> dict[str, Any]:
        # A copy has no forward pass behind it, and torch copies no tensor that has one.
        return {**self.__dict__, "_excess": None}


def excess(gram: Float[Tensor, "batch L L"]) -> Float[Tensor, ""]:
    """‖G − 1‖², the mean over the batch."""
    unit = torch.eye(gram.shape[1], dtype=gram.dtype, device=gram.device)
    return (gram - unit).square().sum((1, 2)).mean()


def trapezoid_weights(a: Field) -> Float[Tensor, " points"]:
    """Weights of the grid's points in the integral over the unit box, ends included.

    Example:
        >>> trapezoid_weights(torch.zeros(1, 1, 5))
        tensor([0.1250, 0.2500, 0.2500, 0.2500, 0.1250])
    """
    weights = a.new_ones(1)
    for n in a.shape[2:]:
        line = a.new_full((n,), 1 / max(1, n - 1))
        if n > 1:
            line[[0, -1]] /= 2
        weights = (weights[:, None] * line).flatten()
    return weights
