from itertools import product

import pytest
import torch
from torch.nn import functional as F

from sfo.models import Transolver
from sfo.models.transolver import PhysicsAttention, reference_distances

SMALL = dict(hidden_channels=8, n_layers=2, n_heads=2, n_slices=5)


def attention(n_dim=1, projection="conv", channels=8, n_heads=2, n_slices=5):
    """In double precision, with weights of ordinary size and heads of different temperature."""
    layer = PhysicsAttention(
        channels, n_dim, n_heads=n_heads, n_slices=n_slices, projection=projection
    ).double()
    with torch.no_grad():
        layer.temperature.copy_(torch.linspace(0.3, 1.5, n_heads))
    return layer


def parameters(inputs, outputs, d, layers, heads, slices, ratio, neighbours):
    """Lift, layers (norms, temperatures, projections, slices, q k v, out, update) and head."""
    width, hidden = d // heads, ratio * d
    layer = 4 * d + heads + 2 * (d * d * neighbours + d) + (width + 1) * slices + 3 * width**2
    layer += (d + 1) * d + (d + 1) * hidden + (hidden + 1) * d
    lift = (inputs + 1) * 2 * d + (2 * d + 1) * d + d
    return lift + layers * layer + 2 * d + (d + 1) * outputs


ONE_AXIS = dict(d=64, layers=8, heads=8, slices=128, ratio=1, neighbours=3)
PLANE = dict(d=64, layers=6, heads=4, slices=64, ratio=2, neighbours=9)
SPACE = dict(d=128, layers=4, heads=8, slices=32, ratio=4, neighbours=27)


@pytest.mark.parametrize(
    ("benchmark", "formula", "count"),
    [
        ("allen_cahn", parameters(1 + 8, 101, **ONE_AXIS), 326_629),
        ("diffusion_sorption", parameters(1 + 8, 101, **ONE_AXIS), 326_629),
        ("diffusion_reaction", parameters(1 + 8, 101, **ONE_AXIS), 326_629),
        ("cahn_hilliard", parameters(1 + 8, 101, **ONE_AXIS), 326_629),
        ("shallow_water", parameters(1 + 2, 101, **PLANE), 595_773),
        ("maxwell", parameters(12 + 3, 48, **SPACE), 4_183_760),
    ],
)
def test_presets_have_these_parameters(benchmark, formula, count):
    with torch.device("meta"):
        model = Transolver.from_paper(benchmark)
    assert sum(p.numel() for p in model.parameters()) == formula == count


def test_attention_is_the_formula_point_by_point():
    layer = attention(projection="pointwise")
    v = torch.randn(1, 8, 6, dtype=torch.float64)
    x, f = (layer.project.weight @ v[0] + layer.project.bias[:, None]).split(8)
    gathered = torch.zeros(8, 6, dtype=torch.float64)
    for head in range(2):
        rows = slice(4 * head, 4 * head + 4)
        tau = layer.temperature[head]
        weights = [
            F.softmax((layer.slice.weight @ x[rows, i] + layer.slice.bias) / tau, 0)
            for i in range(6)
        ]
        tokens = []
        for g in range(5):
            total = sum(weights[i][g] for i in range(6)) + 1e-5
            tokens.append(sum(weights[i][g] * f[rows, i] for i in range(6)) / total)
        for g in range(5):
            query = layer.query.weight @ tokens[g]
            scores = torch.stack([query @ (layer.key.weight @ token) / 2 for token in tokens])
            share = F.softmax(scores, 0)
            new = sum(share[k] * (layer.value.weight @ tokens[k]) for k in range(5))
            for i in range(6):
                gathered[rows, i] += weights[i][g] * new
    truth = layer.out.weight @ gathered + layer.out.bias[:, None]
    torch.testing.assert_close(layer(v)[0], truth)


@pytest.mark.parametrize("shape", [(9,), (4, 5), (3, 4, 2)])
def test_convolution_of_the_point_itself_is_the_pointwise_map(shape):
    conv, pointwise = attention(len(shape)), attention(len(shape), "pointwise")
    state = conv.state_dict()
    centre = state["project.weight"].flatten(2)[:, :, 3 ** len(shape) // 2].clone()
    state["project.weight"].zero_().flatten(2)[:, :, 3 ** len(shape) // 2] = centre
    pointwise.load_state_dict({**state, "project.weight": centre})
    v = torch.randn(2, 8, *shape, dtype=torch.float64)
    torch.testing.assert_close(conv(v), pointwise(v))


def test_one_slice_is_the_mean_over_the_domain():
    layer = attention(projection="pointwise", n_heads=1, n_slices=1)
    v = torch.randn(2, 8, 30, dtype=torch.float64)
    mean = layer.project(v)[:, 8:].mean(2, keepdim=True) / (1 + 1e-5 / 30)
    truth = layer.out(layer.value.weight @ mean).expand(-1, -1, 30)
    torch.testing.assert_close(layer(v), truth)


@pytest.mark.parametrize(("outside", "bound"), [(0.01, 0.1), (-3.0, 0.1), (60.0, 5.0)])
def test_temperature_stays_within_its_bounds(outside, bound):
    layer = attention()
    v = torch.randn(1, 8, 12, dtype=torch.float64)
    outputs = []
    for value in (outside, bound):
        torch.nn.init.constant_(layer.temperature, value)
        outputs.append(layer(v))
    assert torch.equal(*outputs)


def test_without_coordinates_the_points_are_a_set():
    """With pointwise projections a permutation of the points permutes the solution."""
    settings = {**SMALL, "projection": "pointwise", "coordinates": False}
    model = Transolver(2, 3, **settings).double()
    a = torch.randn(2, 2, 40, dtype=torch.float64)
    order = torch.randperm(40)
    torch.testing.assert_close(model(a[:, :, order]), model(a)[:, :, order])


def test_distances_to_the_lattice():
    """√((x − i/3)² + (y − j/3)²), the lattice row by row as the grid."""
    a = torch.zeros(2, 1, 4, 7, dtype=torch.float64)
    distances = reference_distances(a, reference_points=4)
    x, y = (torch.arange(n, dtype=torch.float64) / (n - 1) for n in (4, 7))
    for channel, (i, j) in enumerate(product(range(4), range(4))):
        truth = torch.sqrt((x[:, None] - i / 3) ** 2 + (y - j / 3) ** 2)
        torch.testing.assert_close(distances[1, channel], truth)
        assert distances[0, channel, i, 2 * j] < 1e-12


def test_slices_start_orthonormal():
    """And so do not start alike, which the small weights of the other maps would make them."""
    model = Transolver(1, 1, hidden_channels=32, n_layers=2, n_heads=2, n_slices=7)
    for layer in model.layers:
        weight = layer.attention.slice.weight
        torch.testing.assert_close(weight @ weight.T, torch.eye(7))
        assert layer.update[0].weight.abs().max() < 0.1


def test_slices_start_orthogonal_or_as_upstream():
    """The authors' code draws orthogonal slices and overwrites them: 0.02 times a normal."""
    settings = dict(hidden_channels=64, n_layers=1, n_heads=2, n_slices=32)
    ours, theirs = (
        Transolver(1, 1, **settings, upstream=up).layers[0].attention.slice.weight.detach()
        for up in (False, True)
    )
    torch.testing.assert_close(ours @ ours.T, torch.eye(32))
    assert abs(theirs.std() / 0.02 - 1) < 0.1
