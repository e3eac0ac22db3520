"""Every model refuses bad arguments and bad input in one sentence, which names what is wrong."""

import pytest
import torch
from contracts.test_models import NAMES, small

from sfo.registry import MODELS

COMPONENTS = (dict(components=2), r"`in_channels` must be a positive multiple of `components`")
BAD = {
    "deeponet": [
        (dict(query="time"), r"`query` must be one of 'space', 'space_time', 'first_axis'"),
        (dict(activation="gelu"), r"`activation` must be one of 'relu', 'tanh', got 'gelu'"),
        (dict(train_shape=(8, 8)), r"`train_shape` must be the points along each of the 1 axes"),
        (dict(fields=2), r"`fields` must divide out_channels=3, got 2"),
        (dict(harmonics=-1), r"`harmonics` must be at least 0, got -1"),
        (dict(trunk_layers=0), r"`trunk_layers` must be at least 1, got 128, 128, 4 and 0"),
    ],
    "fno": [
        (dict(n_dim=2, n_modes=0), r"`n_modes` must be a number or 2 numbers, one for each axis"),
        (dict(n_dim=2, n_modes=(4,)), r"and at least 1.* got \(4,\)"),
        (dict(n_dim=2, padding=(1, -1)), r"`padding` must be .* at least 0, got \(1, -1\)"),
        (dict(n_layers=0), r"`n_layers` and `projection_channels` must be at least 1, got 64, 0"),
        COMPONENTS,
    ],
    "mno": [
        (dict(n_layers=0), r"`n_layers` must be at least 1, got 0"),
        (dict(n_states=-2), r"`n_states` must be at least 1, got -2"),
        (dict(rank=0), r"`rank` must be at least 1, got 0"),
        COMPONENTS,
    ],
    "mpnn": [
        (dict(neighbours="all"), r"`neighbours` must be one of 'box', 'cross', got 'all'"),
        (dict(n_dim=4), r"`n_dim` must be 1, 2 or 3, got 4"),
        (dict(radius=0), r"`radius` must be at least 1, got 128, 6 and 0"),
        (dict(start=(4,)), r"`start` must hold input channels 0\.\.3 or None, got"),
        (dict(start=(0, 1, 2)), r"`out_channels` must be two or more time steps of"),
        (dict(window=3), r"`window` must divide in_channels=4"),
        (
            dict(out_channels=4, window=2),
            r"`out_channels` must be more than 2 time steps of each",
        ),
        (dict(window=2, start=(0,)), r"`start` must be empty if there is a `window"),
        (
            dict(window=2, hidden_channels=8),
            r"`hidden_channels` must be at least 15 for a window",
        ),
    ],
    "sfo": [
        (dict(basis="ubs"), r"Unknown basis 'ubs'; known: chebyshev, fourier.*Did you mean 'usb'"),
        (dict(index="both"), r"`index` must be one of 'tied', 'multi', 'separable', got 'both'"),
        (dict(boundary="open"), r"`boundary` must be one of"),
        (dict(norm="batch"), r"`norm` must be one of 'layer', None, got 'batch'"),
        (dict(n_modes=0), r"`n_modes` must be at least 1, got 0"),
        (dict(n_modes="x"), r"`n_modes` must be a whole number, got 'x'"),
        (dict(n_layers=[1, 2]), r"`n_layers` must be a whole number, got \[1, 2\]"),
        (dict(n_layers=2.0), r"`n_layers` must be a whole number, got 2.0"),
        (dict(n_layers=None), r"`n_layers` must be a whole number, got None"),
        (dict(n_dim=1.0), r"`n_dim` must be a whole number, got 1.0"),
        (dict(in_channels="1"), r"`in_channels` must be a whole number, got '1'"),
        (dict(mixing="factored", rank=4.0), r"`rank` must be a whole number, got 4.0"),
        (dict(mlp_ratio="x"), r"`mlp_ratio` must be at least 0, got 'x'"),
        (dict(hidden_channels=12), r"multiple of 8 .* or lift_norm=None"),
        (dict(lift_kernel=4), r"`lift_kernel` must be odd"),
        (dict(n_layers=0), r"`n_layers` must be at least 1, got 0"),
        (dict(lift_channels=0), r"`lift_channels` must be at least 1, got 0"),
        (dict(rank=4), r'`rank` needs `mixing="factored"`, got rank=4'),
        (dict(mixing="factored", rank=0), r"`rank` must be at least 1, got 0"),
        (dict(mixing="sparse"), r"`mixing` must be one of 'dense', 'factored', got 'sparse'"),
        (dict(index="separable"), r'`index="separable"` needs `mixing="factored"`'),
        (dict(boundary="learned"), r'`boundary="learned"` needs `index="separable"`'),
        (dict(low_modes=-1), r"`low_modes` must be at least 0, got -1"),
        (dict(decode=5), r"`decode` must be between 1 and the 4 layers and 1 frames .* got 5"),
        (dict(out_fields=2), r"`out_fields` must divide `out_channels`"),
        (dict(output_skip=True, carried=[3]), r"`carried` must name input channels 0 to 0, got 3"),
        (dict(projection_channels=0), r"`projection_channels` must be at least 1, got 0"),
        COMPONENTS,
    ],
    "svd_no": [
        (dict(network="mlp"), r"`network` must be one of 'lstm', 'sine', got 'mlp'"),
        (dict(network="lstm", n_dim=2), r"`network` must be 'sine' on 2 axes, got 'lstm'"),
        (dict(n_modes=0), r"`n_modes`, .* must be at least 1, got 0, 128, 4, 32, 4"),
        (dict(penalty=-1.0), r"`penalty` must be at least 0, got -1.0"),
        COMPONENTS,
    ],
    "transolver": [
        (dict(n_heads=3), r"`hidden_channels` must be a positive multiple of `n_heads`, got"),
        (dict(n_slices=0), r"`n_layers` and `n_slices` must be at least 1, got n_layers=8"),
        (dict(reference_points=1), r"`reference_points` must be at least 2 or None, got 1"),
        (dict(projection="linear"), r"`projection` must be one of 'conv', 'pointwise', got"),
        (dict(n_dim=4), r"`n_dim` must be 1, 2 or 3 with projection='conv', got 4"),
        COMPONENTS,
    ],
    "unet": [
        (dict(n_dim=4), r"`n_dim` must be 1, 2 or 3, got 4"),
        (dict(n_levels=0), r"must be at least 1, got hidden_channels=32, n_levels=0"),
        (dict(boundary="zeros"), r"`boundary` must be one of 'zero', 'circular', got 'zeros'"),
        (dict(norm="layer"), r"`norm` must be one of 'batch', 'group', None, got 'layer'"),
    ],
    "uno": [
        (dict(n_modes=(3, 3)), r"`n_modes` must have five entries, one for each block, got \(3, 3"),
        (dict(hidden_channels=1), r"`hidden_channels` must be at least 2, got 1"),
        (dict(norm="batch"), r"`norm` must be one of 'inner', 'all', None, got 'batch'"),
        (dict(n_dim=4), r"`n_dim` must be 1, 2 or 3, got 4"),
    ],
}
BAD["pino"] = BAD["fno"]
GOOD = {
    "deeponet": dict(in_channels=1, out_channels=3, train_shape=(8,)),
    "mpnn": dict(in_channels=4, out_channels=20),
}
"""What the bad arguments are beside, where it is not one channel each."""


@pytest.mark.parametrize("name", NAMES)
def test_bad_arguments_are_named(name):
    good = GOOD.get(name, dict(in_channels=1, out_channels=1))
    for arguments, message in BAD[name]:
        with pytest.raises(ValueError, match=message):
            MODELS[name](**{**good, **arguments})


INPUTS = [
    (torch.zeros(2, 3, 16), r"must have 2 channels, \(batch, 2, n\), got 3"),
    (torch.zeros(2, 2, 16, 16), r"must have 3 axes, \(batch, 2, n\), got shape \(2, 2, 16, 16\)"),
    (torch.zeros(2, 16), r"must have 3 axes"),
    (torch.zeros(0, 2, 16), r"no empty axis"),
    (torch.zeros(2, 2, 0), r"no empty axis"),
    (torch.zeros(2, 2, 16, dtype=torch.int64), r"real floating point, got torch.int64"),
    (torch.zeros(2, 2, 16, dtype=torch.complex64), r"real floating point, got torch.complex64"),
    (
        torch.zeros(2, 2, 16, dtype=torch.float64),
        r"input is torch.float64 and the model torch.float32",
    ),
]


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_named(name):
    model = small(name, 2, 1, (16,))
    for a, message in INPUTS:
        with pytest.raises(ValueError, match=message):
            model(a)
