"""Checkpoints of the paper's public code as an `SFO`: names, signs, modes and settings."""

import os
import pickle
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from sfo.bases import multi_index, tied_index, usb_modes
from sfo.checks import check_at_least, check_choice
from sfo.models.blocks import Activation
from sfo.models.given_modes import GIVEN
from sfo.models.sfo import SFO
from sfo.shapes import Modes

State = dict[str, Tensor]
PublicIndex = Literal["tied", "multi"]

WRAPPER_KEYS = ("model_state_dict", "state_dict", "model")
"""Where training scripts put a state dict that they save beside other things."""

MODE_TOLERANCE = 1e-6
"""Modes that differ by less than this, relative to their largest value, are the same modes."""

UPDATES = {
    "mlp": {"mlp_fc1": "inner", "mlp_fc2": "outer"},
    "glu": {"glu_gate": "gate", "glu_val": "value"},
}


def import_public(
    weights: Mapping[str, Any] | str | os.PathLike[str],
    *,
    components: int = 1,
    shape: Sequence[int] | None = None,
    index: PublicIndex = "tied",
    activation: Activation | None = None,
    names: Mapping[str, str] | None = None,
) -> SFO:
    """The SFO that answers as a checkpoint of the paper's public code does.

    The layout is, for layers i = 0, 1, …, with an optional prefix `core.` or `module.core.`:

        lift.net, lift.norm, head              weight and bias
        layers.i.norm                          weight and bias
        layers.i.mlp_fc1, layers.i.mlp_fc2     weight and bias, or glu_gate and glu_val instead
        layers.i.Theta                         (L, d, d)
        layers.i.Phi_f                         (L, …): the spectra of the modes on the real grid

    Sizes follow from the weights. The public code correlates where the paper convolves, has an
    MLP of 2d in one dimension too, and a sigmoid in its GLU: the model here gets these settings.
    Its modes are those of a dense eigensolver, up to signs the exact ones or, from some mode on,
    round-off noise. In the first case Θ takes the signs and the model has the basis `usb`; in the
    second the modes stay with the weights (`basis="given"`), and other grids are reached with
    `transfer="restrict"`. Weights without `Phi_f` get the modes of torch's `eigh` on this machine.

    Args:
        weights: A state dict, or a file of one: `.safetensors`, or what `torch.save` wrote, which
            is read without running any code in it.
        components: Components of a vector field that share the network, 6 for Maxwell; the
            weights do not tell.
        shape: The training grid; None: as `Phi_f` has it, with an even last axis, or that of the
            other axes where it fits.
        index: `"multi"` for weights with one mode per index tuple.
        activation: σ; None: the public code's, sigmoid in a GLU and GELU in an MLP.
        names: Other names of the checkpoint, each with the one of the layout above.

    Example:
        >>> import_public({"lift.net.weight": torch.zeros(8, 2, 1)})
        Traceback (most recent call last):
        ValueError: The weights miss 'lift.net.bias' (10 such in all) of the public code's layout; \
`names` renames what is called otherwise.
    """
    check_at_least(1, components=components)
    check_choice("index", index, PublicIndex)
    state = _renamed(_read(weights), names or {})
    update, n_layers = _check_layout(state)
    theta, lift = state["layers.0.Theta"], state["lift.net.weight"]
    n_dim, width = lift.ndim - 2, theta.shape[1]
    n_modes = _along_axis(len(theta), n_dim, index)
    phi = _stored_modes(state, n_layers, n_dim, n_modes, index, shape)
    grid = tuple(phi.shape[1:])
    signs = _signs_of_exact(phi, n_modes, index)
    hidden = state["layers.0.mlp_fc1.weight"].shape[0] if update == "mlp" else width
    model = SFO(
        components * (lift.shape[1] - n_dim),
        components * state["head.weight"].shape[0],
        n_dim,
        n_modes=n_modes,
        hidden_channels=width,
        n_layers=n_layers,
        basis=GIVEN if signs is None else "usb",
        index=index,
        product="correlation",
        transfer="restrict" if signs is None else "rebuild",
        update="glu" if update == "glu" else "mlp",
        activation=activation or ("sigmoid" if update == "glu" else "gelu"),
        mlp_ratio=hidden / width,
        lift_kernel=lift.shape[-1],
        lift_norm="group" if "lift.norm.weight" in state else None,
        components=components,
        train_shape=grid,
    )
    if model.given is not None:
        model.given.set(_factors(phi, n_modes, index))
    model = model.to(torch.promote_types(theta.dtype, torch.float32))
    own = model.state_dict()
    own.update(_mapped(state, own, UPDATES[update], signs))
    model.load_state_dict(own)
    return model


def _read(weights: Mapping[str, Any] | str | os.PathLike[str]) -> Mapping[str, Any]:
    if isinstance(weights, Mapping):
        return weights
    path = Path(weights)
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ValueError(f"Cannot read the weights {path}: {error.strerror or error}.") from None
    except (pickle.UnpicklingError, SafetensorError, RuntimeError, EOFError):
        raise ValueError(
            f"{path} is no file of tensors alone: save model.state_dict() by torch.save or as "
            "safetensors; a whole pickled model would run code when it is read."
        ) from None
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} must hold a state dict, got a {type(content).__name__}.")
    return content


def _renamed(state: Mapping[str, Any], names: Mapping[str, str]) -> State:
    """The tensors by their names in the layout, without the prefixes of wrappers."""
    for key in WRAPPER_KEYS:
        if isinstance(state.get(key), Mapping):
            state = state[key]
            break
    unused = [name for name in names if name not in state]
    if unused:
        raise ValueError(f"`names` has {unused[0]!r}, which is not in the weights.")
    out: State = {}
    for key, value in state.items():
        if not isinstance(value, Tensor):
            raise ValueError(
                f"The weights must be tensors, got a {type(value).__name__} for {key!r}: pass the "
                "state dict alone."
            )
        name = names.get(key, key).removeprefix("module.").removeprefix("core.")
        if name in out:
            raise ValueError(f"The weights have {name} twice; one of them is {key!r}.")
        out[name] = value.detach().cpu()
    return out


def _check_layout(state: State) -> tuple[str, int]:
    """The kind of update and the number of layers, or a sentence on what is missing or wrong."""
    found = {name.split(".")[1] for name in state if name.startswith("layers.")}
    n_layers = len(found)
    update = "glu" if any(".glu_" in name for name in state) else "mlp"
    parts = ["lift.net", "head"] + (["lift.norm"] if "lift.norm.weight" in state else [])
    for i in range(max(1, n_layers)):
        parts += [f"layers.{i}.{part}" for part in ("norm", *UPDATES[update])]
    required = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
    required += [f"layers.{i}.Theta" for i in range(max(1, n_layers))]
    known = {*required, *(f"layers.{i}.Phi_f" for i in range(n_layers))}
    for words, wrong in (
        ("miss", [name for name in required if name not in state]),
        ("have an unknown", [name for name in state if name not in known]),
    ):
        if wrong:
            raise ValueError(
                f"The weights {words} {wrong[0]!r} ({len(wrong)} such in all) of the public "
                "code's layout; `names` renames what is called otherwise."
            )
    shapes = _expected_shapes(state, update, n_layers)
    for name, expected in shapes.items():
        if tuple(state[name].shape) != expected:
            raise ValueError(
                f"{name!r} must have the shape {expected} beside the other weights, got "
                f"{tuple(state[name].shape)}."
            )
    return update, n_layers


def _expected_shapes(state: State, update: str, n_layers: int) -> dict[str, tuple[int, ...]]:
    """The shape of every weight, as the first layer's Θ, the lift and the head imply it."""
    theta, lift = state["layers.0.Theta"], state["lift.net.weight"]
    n_dim = lift.ndim - 2
    if theta.ndim != 3 or not 1 <= n_dim <= 3 or lift.shape[1] <= n_dim:
        raise ValueError(
            "'layers.0.Theta' must be (L, d, d) and 'lift.net.weight' (d, channels + axes, k, …) "
            f"on 1, 2 or 3 axes, got {tuple(theta.shape)} and {tuple(lift.shape)}."
        )
    d, one = theta.shape[1], (1,) * n_dim
    h = state["layers.0.mlp_fc1.weight"].shape[0] if update == "mlp" else d
    out = state["head.weight"].shape[0]
    shapes: dict[str, tuple[int, ...]] = {
        "lift.net.weight": (d, lift.shape[1], *[lift.shape[-1]] * n_dim),
        "lift.net.bias": (d,),
        "head.weight": (out, d, *one),
        "head.bias": (out,),
    }
    if "lift.norm.weight" in state:
        shapes |= {"lift.norm.weight": (d,), "lift.norm.bias": (d,)}
    first, second = UPDATES[update]
    for i in range(n_layers):
        shapes |= {
            f"layers.{i}.Theta": (len(theta), d, d),
            f"layers.{i}.norm.weight": (d,),
            f"layers.{i}.norm.bias": (d,),
            f"layers.{i}.{first}.weight": (h, d, *one),
            f"layers.{i}.{first}.bias": (h,),
            f"layers.{i}.{second}.weight": (d, h, *one),
            f"layers.{i}.{second}.bias": (d,),
        }
    return shapes


def _along_axis(modes: int, n_dim: int, index: PublicIndex) -> int:
    if index == "tied":
        return modes
    along = round(modes ** (1 / n_dim))
    if along**n_dim != modes:
        raise ValueError(
            f'`index="multi"` needs L^{n_dim} modes, got Θ with {modes}: use index="tied".'
        )
    return along


def _stored_modes(
    state: State,
    n_layers: int,
    n_dim: int,
    n_modes: int,
    index: PublicIndex,
    shape: Sequence[int] | None,
) -> Modes:
    """The modes on the training grid, from their spectra or as torch's `eigh` has them."""
    spectra = [state.get(f"layers.{i}.Phi_f") for i in range(n_layers)]
    if spectra[0] is None:
        if shape is None:
            raise ValueError(
                "The weights hold no `Phi_f`, the spectra of their modes: pass `shape`, the grid "
                "they were trained on."
            )
        if len(shape) != n_dim or min(shape) < n_modes:
            raise ValueError(
                f"`shape` must have {n_dim} axes of at least {n_modes} points, got {tuple(shape)}."
            )
        return _join([_dense_modes(n, n_modes) for n in shape], index)
    first = _complex(spectra[0])
    for i, spectrum in enumerate(spectra):
        if spectrum is None or not torch.equal(_complex(spectrum), first):
            raise ValueError(
                f"All layers must have the same modes, but layers.{i}.Phi_f differs from the first."
            )
    *others, half = first.shape[1:]
    last = next((n for n in others if n // 2 + 1 == half), 2 * (half - 1))
    grid = tuple(shape) if shape is not None else (*others, last)
    modes = n_modes if index == "tied" else n_modes**n_dim
    if first.shape != (modes, *grid[:-1], grid[-1] // 2 + 1) or len(grid) != n_dim:
        raise ValueError(
            f"`Phi_f` has the shape {tuple(first.shape)}, which does not fit {modes} modes on a "
            f"grid of shape {grid}."
        )
    axes = tuple(range(1, n_dim + 1))
    return torch.fft.irfftn(first.to(torch.complex128), s=grid, dim=axes)


def _complex(spectrum: Tensor) -> Tensor:
    """A spectrum, also where a file has its real and imaginary parts side by side."""
    pairs = spectrum.is_floating_point() and spectrum.shape[-1:] == (2,)
    return torch.view_as_complex(spectrum.contiguous()) if pairs else spectrum


def _dense_modes(n: int, n_modes: int) -> Float[Tensor, "modes n"]:
    """The eigenvectors of the Hilbert matrix that torch's dense eigensolver returns."""
    i = torch.arange(n, dtype=torch.float64)
    _, vectors = torch.linalg.eigh(1 / (i[:, None] + i + 1))
    return vectors.T.flip(0)[:n_modes]


def _join(axes: Sequence[Tensor], index: PublicIndex) -> Modes:
    return tied_index(axes) if index == "tied" else multi_index(axes)


def _signs_of_exact(phi: Modes, n_modes: int, index: PublicIndex) -> Tensor | None:
    """The signs that turn the exact modes into these; None if they are other modes."""
    shape = phi.shape[1:]
    if n_modes > min(shape):
        return None
    exact = _join([usb_modes(n, n_modes) for n in shape], index)
    signs = torch.sign((phi * exact).flatten(1).sum(1))
    error = (phi - signs.view(-1, *[1] * len(shape)) * exact).abs().max()
    return signs if error <= MODE_TOLERANCE * phi.abs().max() else None


def _factors(phi: Modes, n_modes: int, index: PublicIndex) -> list[Float[Tensor, "modes n"]]:
    """The modes along each axis whose products are these."""
    n_dim = phi.ndim - 1
    if index == "tied":
        split = [_rank_one(mode) for mode in phi]
        axes = [torch.stack([factors[m] for factors in split]) for m in range(n_dim)]
    else:
        table = phi.view(*[n_modes] * n_dim, *phi.shape[1:])
        first, *rest = _rank_one(phi[0])
        size = first.norm()
        units = [first / size, *rest]
        axes = []
        for m in range(n_dim):
            modes = table[tuple(slice(None) if a == m else 0 for a in range(n_dim))]
            # Without the other axes' factors only this one is left.
            for other in reversed([a for a in range(n_dim) if a != m]):
                modes = torch.tensordot(modes, units[other], dims=([1 + other], [0]))
            axes.append(modes)
        signs = _join([a[:1] for a in axes], index)[0] * phi[0]
        axes[0] = axes[0] * torch.sign(signs.sum())
    error = (_join(axes, index) - phi).abs().max()
    if error > 10 * MODE_TOLERANCE * phi.abs().max():
        raise ValueError(
            f'The modes of `Phi_f` are no products along the axes as index="{index}" has them: '
            "try the other index."
        )
    return axes


def _rank_one(mode: Float[Tensor, "..."]) -> list[Float[Tensor, "n"]]:
    """Vectors whose product is this array, of length 1 but for the first."""
    factors = [
        torch.linalg.svd(mode.movedim(m, 0).reshape(n, -1), full_matrices=False)[0][:, 0]
        for m, n in enumerate(mode.shape)
    ]
    product = _join([f[None] for f in factors], "tied")[0]
    return [factors[0] * (product * mode).sum(), *factors[1:]]


def _mapped(state: State, own: State, update: Mapping[str, str], signs: Tensor | None) -> State:
    """The weights under our names, in our shapes, with the signs of our modes."""
    out: State = {}
    for name, value in state.items():
        if name.endswith("Phi_f"):
            continue
        first, *rest = name.split(".")
        if name.endswith("Theta"):
            target = f"layers.{rest[0]}.kernel.theta"
            if signs is not None:
                value = value * signs.to(value.dtype).view(-1, 1, 1)
        elif first == "layers":
            i, part, kind = rest
            target = f"layers.{i}.{'norm' if part == 'norm' else 'update.' + update[part]}.{kind}"
        elif first == "head":
            target = f"project.{rest[0]}"
        else:
            target = f"lift.{'mix' if rest[0] == 'net' else 'norm'}.{rest[1]}"
        assert prod(own[target].shape) == value.numel()
        out[target] = value.reshape(own[target].shape).to(own[target].dtype)
    return out
