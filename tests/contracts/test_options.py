"""Weights are refused by a model with other options, or they are the same map there."""

from inspect import signature

import pytest
import torch
from contracts.test_models import NAMES, small

from sfo.models import SFO
from sfo.registry import MODELS

SIZES = {"in_channels", "out_channels", "n_dim", "hidden_channels", "n_layers", "n_modes"}
"""Arguments that every model shows in the shapes of its weights."""

OTHERS = {
    "deeponet": dict(
        train_shape=(16, 8),
        query="space_time",
        fields=2,
        harmonics=3,
        n_functions=16,
        branch_layers=2,
        trunk_layers=2,
        activation="tanh",
    ),
    "fno": dict(
        projection_channels=64,
        padding=5,
        activate_last=True,
        coordinates=False,
        components=2,
        unused_norms=True,
    ),
    "mno": dict(
        n_states=5,
        expansion=1,
        rank=3,
        mlp_ratio=2,
        norm=False,
        coordinates=False,
        components=2,
        upstream=True,
    ),
    "mpnn": dict(
        radius=2, neighbours="cross", periodic=True, parameters=(2.0,), start=(1, 0), window=1
    ),
    "sfo": dict(
        mixing="factored",
        rank=None,  # 4 needs mixing="factored", and shows in shapes.
        basis="chebyshev",
        index="multi",
        boundary="zero",
        support="two_sided",
        product="correlation",
        transfer="restrict",
        gain="unit",
        low_modes=0,
        transform="matmul",
        theta_scale=0.5,
        skip=True,
        gate=True,
        update="glu",
        activation="relu",
        mlp_ratio=3,
        norm=None,
        lift_kernel=3,
        lift_norm=None,
        lift_channels=16,
        projection_channels=16,
        decode=2,
        output_skip=True,
        coordinates=False,
        standardise=True,
        components=2,
        out_fields=2,
        carried=(1, 0),
        train_shape=(8, 8),
    ),
    "svd_no": dict(network="lstm", network_channels=8, network_layers=2, penalty=0.5, components=2),
    "transolver": dict(
        n_heads=8,
        n_slices=16,
        mlp_ratio=2,
        projection="pointwise",
        coordinates=False,
        reference_points=2,
        components=2,
        upstream=True,
    ),
    "unet": dict(n_levels=3, norm="batch", boundary="circular", coordinates=True, components=2),
    "uno": dict(padding=0, norm="all", coordinates=False, components=2, upstream=True),
}
OTHERS["pino"] = OTHERS["fno"]


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_refused_or_mean_the_same(name):
    """Each option at a time. One that is new in a model must be added here."""
    arguments = [p for p in signature(MODELS[name]).parameters if p not in SIZES]
    assert sorted(arguments) == sorted(OTHERS[name])
    torch.manual_seed(0)
    n_dim = 1 if name == "svd_no" else 2
    first, a = small(name, 2, 4, (16, 16)[:n_dim]).eval(), torch.randn(2, 2, *(16, 16)[:n_dim])
    before = first(a)
    for option, value in OTHERS[name].items():
        assert is_refused_or_same(first, option, value, a, before), (option, value)


@pytest.mark.parametrize(
    ("settings", "option", "value"),
    [
        (dict(decode=2), "out_fields", 2),
        (dict(update="glu"), "activation", "sigmoid"),
        (dict(mixing="factored", index="separable"), "boundary", "reflect"),
    ],
)
def test_options_that_others_bring(settings, option, value):
    torch.manual_seed(0)
    first = SFO(2, 4, n_modes=4, hidden_channels=8, n_layers=2, **settings).eval()
    a = torch.randn(2, 2, 16)
    assert is_refused_or_same(first, option, value, a, first(a))
    with pytest.raises(ValueError, match=f"trained with {option}="):
        type(first)(**{**first.arguments, option: value}).load_state_dict(first.state_dict())


def is_refused_or_same(first, option, value, a, before):
    other = type(first)(**{**first.arguments, option: value}).eval()
    try:
        other.load_state_dict(first.state_dict())
    except (ValueError, RuntimeError):  # The options differ, or the shapes.
        return True
    return torch.allclose(other(a), before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "sfo"])
def test_weights_from_before_are_taken(name):
    """Up to version 0.3 those of other models than SFO say nothing of their options."""
    model = small(name, 1, 1, (16,))
    state = {k: w for k, w in model.state_dict().items() if k != "_extra_state"}
    assert len(state) < len(model.state_dict())
    model.load_state_dict(state)
