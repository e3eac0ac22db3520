import jaxtyping
import pytest
import torch
from torch import nn

from sfo import SFO
from sfo.models.build import build_model
from sfo.models.presets import ONE_AXIS

SMALL = dict(n_modes=4, hidden_channels=16, n_layers=2)


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("benchmark", "parameters"),
    [
        ("allen_cahn", 302_821),
        ("diffusion_sorption", 94_117),
        ("diffusion_reaction", 368_357),
        ("cahn_hilliard", 368_357),
        ("shallow_water", 406_053),
        ("maxwell", 119_304),
    ],
)
def test_parameter_counts_of_the_paper(benchmark, parameters):
    assert count(SFO.from_paper(benchmark)) == parameters


def test_the_mean_1d_count_that_the_paper_prints():
    assert sum(count(SFO.from_paper(name)) for name in ONE_AXIS) / len(ONE_AXIS) == 283_413


@pytest.mark.parametrize(
    ("benchmark", "index", "parameters"),
    [
        ("shallow_water", "tied", 176_677),
        ("shallow_water", "multi", 668_197),
        ("maxwell", "tied", 61_960),
        ("maxwell", "multi", 922_120),
    ],
)
def test_parameter_counts_of_the_index_ablation(benchmark, index, parameters):
    assert count(SFO.from_paper(benchmark, n_modes=6, index=index)) == parameters


def layer_by_hand(layer, v, phi):
    """The layer's equation with nothing of the package but its parameters."""
    norm, update = layer.norm, layer.update
    x = nn.functional.layer_norm(v.movedim(1, -1), norm.weight.shape, norm.weight, norm.bias)
    x_hat = torch.fft.fftn(x.movedim(-1, 1), dim=tuple(range(2, v.ndim)))
    phi_hat = torch.fft.fftn(phi, dim=tuple(range(1, phi.ndim)))
    s_hat = torch.einsum("lij,l...,bj...->bi...", layer.kernel.theta.to(phi_hat), phi_hat, x_hat)
    s = torch.fft.ifftn(s_hat, dim=tuple(range(2, v.ndim))).real.movedim(1, -1)
    hidden = nn.functional.gelu(s @ update.inner.weight.T + update.inner.bias)
    return v + (hidden @ update.outer.weight.T + update.outer.bias).movedim(-1, 1)


@pytest.mark.parametrize("shape", [(13,), (8, 9), (6, 6), (5, 6, 7), (4, 5, 4, 6)])
def test_the_whole_model_by_its_equation(shape):
    """Any number of axes, of any length: odd, prime, unequal."""
    model = SFO(2, 3, len(shape), **SMALL).double()
    a = torch.randn(2, 2, *shape, dtype=torch.float64)
    v = model.lift(a)
    for layer in model.layers:
        v = layer_by_hand(layer, v, model.modes.modes(shape))
    q = model.project
    u = (v.movedim(1, -1) @ q.weight.T + q.bias).movedim(-1, 1)
    torch.testing.assert_close(model(a), u)


def test_glu_update():
    model = SFO(1, 1, update="glu", **SMALL)
    layer = model.layers[0]
    v = torch.randn(2, 16, 12)
    kv = layer.kernel(layer.norm(v))
    gate, value = layer.update.gate(kv), layer.update.value(kv)
    torch.testing.assert_close(layer(v), v + nn.functional.gelu(gate) * value)


def test_hidden_layers_of_the_lift_and_the_projection():
    """P is v + W₂ σ(W₁ v) of the linear lift v, Q a perceptron; the layers are untouched."""
    model = SFO(1, 3, lift_channels=5, projection_channels=7, **SMALL)
    linear = SFO(1, 16, **SMALL)
    with torch.no_grad():
        linear.project.weight.copy_(torch.eye(16))
        linear.project.bias.zero_()
    linear.load_state_dict(
        {k: v for k, v in model.state_dict().items() if "lift.mlp" not in k and "project" not in k},
        strict=False,
    )

    def by_hand(part, v):
        (inner, b1), (outer, b2) = ((part[i].weight, part[i].bias[:, None]) for i in (0, 2))
        return outer @ nn.functional.gelu(inner @ v + b1) + b2

    a = torch.randn(2, 1, 12)
    v = linear.lift(a)
    v = v + by_hand(model.lift.mlp, v)
    for layer in linear.layers:
        v = layer(v)
    torch.testing.assert_close(model(a), by_hand(model.project, v))


def test_components_share_the_network_and_do_not_mix():
    shared = SFO(6, 12, components=3, **SMALL)
    single = SFO(2, 4, **SMALL)
    single.load_state_dict(shared.state_dict())
    a = torch.randn(2, 6, 16)
    parts = [single(a[:, i : i + 2]) for i in (0, 2, 4)]
    torch.testing.assert_close(shared(a), torch.cat(parts, dim=1))


def test_translation_is_all_that_coordinates_break():
    """Without coordinates the circular model commutes with shifts."""
    model = SFO(1, 2, coordinates=False, **SMALL).double()
    a = torch.randn(1, 1, 20, dtype=torch.float64)
    torch.testing.assert_close(model(a.roll(7, -1)), model(a).roll(7, -1))
    with_coordinates = SFO(1, 2, **SMALL).double()
    moved = with_coordinates(a.roll(7, -1)) - with_coordinates(a).roll(7, -1)
    assert moved.abs().max() > 1e-3


def test_nan_stays_in_its_own_sample():
    model = SFO(1, 1, 2, **SMALL)
    a = torch.randn(3, 1, 8, 8)
    clean = model(a)
    a[1, 0, 2, 2] = float("nan")
    u = model(a)
    assert u[1].isnan().any()
    torch.testing.assert_close(u[[0, 2]], clean[[0, 2]])


def test_zero_shot_on_other_grids():
    """A trained grid is remembered with the weights and other grids work in both modes."""
    for transfer in ("rebuild", "restrict"):
        model = SFO(1, 1, transfer=transfer, lift_norm=None, **SMALL)
        at_64 = model(torch.randn(1, 1, 64))
        assert model.modes.train_shape == (64,)
        other = SFO(1, 1, transfer=transfer, lift_norm=None, **SMALL)
        other.load_state_dict(model.state_dict())
        for n in (32, 128):
            a = torch.randn(1, 1, n)
            torch.testing.assert_close(other(a), model(a))
        assert at_64.isfinite().all()


def test_a_trained_convolution_transfers_to_other_grids():
    """Train on n = 64 to apply a linear convolution, then evaluate on 32 and 128 points."""

    def pairs(n, samples=64):
        generator = torch.Generator().manual_seed(1)
        k = torch.arange(1, 5)
        coefficients = torch.randn(samples, 2, 4, generator=generator)
        x = torch.arange(n) / n
        waves = torch.stack(
            [torch.cos(2 * torch.pi * k[:, None] * x), torch.sin(2 * torch.pi * k[:, None] * x)]
        )
        damp = 1 / (1 + (k / 2) ** 2)
        a = torch.einsum("sck,ckx->sx", coefficients, waves)
        u = torch.einsum("sck,ckx->sx", coefficients * damp, waves)
        return a[:, None], u[:, None]

    model = SFO.recommended(1, 1, n_modes=8, hidden_channels=8, n_layers=1)
    a, u = pairs(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(300):
        optimizer.zero_grad()
        ((model(a) - u).norm() / u.norm()).backward()
        optimizer.step()
    with torch.no_grad():
        truth = model(a)
        assert (truth - u).norm() < 0.05 * u.norm()
        coarse, fine = model(pairs(32)[0]), model(pairs(128)[0])
    assert (coarse - truth[..., ::2]).norm() < 0.02 * truth.norm()
    assert (fine[..., ::2] - truth).norm() < 0.02 * truth.norm()


@pytest.mark.parametrize("linear", [True, False])
def test_kernels_of_linear_equations_are_linear(linear):
    """K(v + w) = K v + K w, but for b; with the gate the kernel depends on the field."""
    model = SFO.recommended(1, 1, n_dim=3, n_modes=4, linear=linear).double()
    kernel = model.kernels[0]
    v, w = torch.randn(2, 1, 32, 8, 8, 8, dtype=torch.float64)
    off = kernel(v + w) + kernel(0 * v) - kernel(v) - kernel(w)
    assert (off.norm() < 1e-12 * kernel(v).norm()) == linear
    of_maxwell = build_model("sfo", "maxwell", preset="recommended").kernels
    assert all(k.gate is None for k in of_maxwell)


def test_a_grid_with_fewer_points_than_modes_is_refused():
    with pytest.raises(ValueError, match="4 one_sided modes do not fit an axis of 3 points"):
        SFO(2, 1, **SMALL)(torch.zeros(2, 2, 3))


def test_unknown_benchmark_lists_the_papers():
    with pytest.raises(ValueError, match="no SFO for 'burgers'; it has allen_cahn"):
        SFO.from_paper("burgers")


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_a_trace_in_training_mode_leaves_numbers(monkeypatch):
    """While torch traces, sizes are tensors: the training grid must not become one."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    model, a = SFO(1, 1, **SMALL), torch.randn(2, 1, 16)
    torch.jit.trace(model, (a,), check_trace=False)
    assert [type(n) for n in model.modes.train_shape] == [int]
    fresh = SFO(1, 1, **SMALL)
    fresh.load_state_dict(model.state_dict())
    assert torch.equal(fresh(a), model(a))


def test_a_grid_below_the_reach_of_the_lift_is_refused():
    """It ended in torch's words about padding."""
    model = SFO(1, 1, n_dim=2, n_modes=1, hidden_channels=8)
    with pytest.raises(ValueError, match=r"at least 2 points .* lift_kernel=5, got \(1, 8\)"):
        model(torch.zeros(1, 1, 1, 8))
    assert SFO(1, 1, n_dim=2, n_modes=1, lift_kernel=1)(torch.zeros(1, 1, 1, 8)).shape[2:] == (1, 8)
