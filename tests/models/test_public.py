"""Weights in the layout of the paper's public code, against its forward pass written out here."""

import math

import pytest
import torch
from torch.nn import functional as F

from sfo.bases import multi_index, tied_index, usb_modes
from sfo.models import SFO, import_public


def dense_modes(n, n_modes):
    """Their basis: a dense eigensolver in float64, signs and noise as it returns them."""
    i = torch.arange(n, dtype=torch.float64)
    values, vectors = torch.linalg.eigh(1 / (1 + i[:, None] + i[None, :]))
    return vectors[:, values.argsort(descending=True)[:n_modes]].T


def public_state(shape, *, n_modes, d=16, frames=2, out=3, n_layers=2, update="mlp", index="tied"):
    """Random weights under the names and in the shapes of the public code."""
    n_dim, one = len(shape), (1,) * len(shape)
    kernel = 1 if n_dim == 1 else 5
    join = tied_index if index == "tied" else multi_index
    phi = join([dense_modes(n, n_modes) for n in shape])
    spectra = torch.fft.rfftn(phi, dim=tuple(range(1, n_dim + 1))).to(torch.complex64)

    def pair(name, n_out, n_in, size):
        scale = math.sqrt(n_in * math.prod(size))
        return {
            f"{name}.weight": torch.randn(n_out, n_in, *size) / scale,
            f"{name}.bias": torch.randn(n_out) / 3,
        }

    def norm(name):
        return {f"{name}.weight": 1 + torch.randn(d) / 5, f"{name}.bias": torch.randn(d) / 5}

    state = pair("lift.net", d, frames + n_dim, (kernel,) * n_dim) | norm("lift.norm")
    for i in range(n_layers):
        state[f"layers.{i}.Phi_f"] = spectra.clone()
        state[f"layers.{i}.Theta"] = torch.randn(len(phi), d, d) / d
        state |= norm(f"layers.{i}.norm")
        if update == "mlp":
            state |= pair(f"layers.{i}.mlp_fc1", 2 * d, d, one)
            state |= pair(f"layers.{i}.mlp_fc2", d, 2 * d, one)
        else:
            state |= pair(f"layers.{i}.glu_val", d, d, one)
            state |= pair(f"layers.{i}.glu_gate", d, d, one)
    state |= pair("head", out, d, one)
    return {f"core.{name}": value for name, value in state.items()}


def public_forward(state, a):
    """Their forward pass on one component, step by step in float64."""
    state = {
        name.removeprefix("core."): value.to(
            torch.complex128 if value.is_complex() else torch.float64
        )
        for name, value in state.items()
    }
    a, grid = a.double(), a.shape[2:]
    axes = tuple(range(2, a.ndim))

    def pointwise(name, v):
        weight = state[f"{name}.weight"].flatten(1)
        return torch.einsum("oi,bi...->bo...", weight, v) + along(state[f"{name}.bias"])

    def along(channels):
        return channels.view(-1, *[1] * len(grid))

    lines = [torch.linspace(0, 1, n, dtype=torch.float64) for n in grid]
    places = torch.stack(torch.meshgrid(*lines, indexing="ij")).expand(len(a), -1, *grid)
    weight = state["lift.net.weight"]
    v = torch.cat([a, places], 1)
    v = F.pad(v, (weight.shape[-1] // 2,) * (2 * len(grid)), mode="circular")
    v = (F.conv1d, F.conv2d, F.conv3d)[len(grid) - 1](v, weight, state["lift.net.bias"])
    v = F.group_norm(v, 8, state["lift.norm.weight"], state["lift.norm.bias"])
    i = 0
    while f"layers.{i}.Theta" in state:
        part = f"layers.{i}"
        mean = v.mean(1, keepdim=True)
        z = (v - mean) / (v.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt()
        z = z * along(state[f"{part}.norm.weight"]) + along(state[f"{part}.norm.bias"])
        z_hat = torch.fft.rfftn(z, dim=axes)
        s = torch.zeros_like(v)
        for theta, phi_hat in zip(state[f"{part}.Theta"], state[f"{part}.Phi_f"], strict=True):
            filtered = torch.fft.irfftn(z_hat * phi_hat.conj(), s=grid, dim=axes)
            s = s + torch.einsum("oi,bi...->bo...", theta, filtered)
        if f"{part}.mlp_fc1.weight" in state:
            v = v + pointwise(f"{part}.mlp_fc2", F.gelu(pointwise(f"{part}.mlp_fc1", s)))
        else:
            v = v + pointwise(f"{part}.glu_val", s) * pointwise(f"{part}.glu_gate", s).sigmoid()
        i += 1
    return pointwise("head", v)


def relative(ours, theirs):
    return ((ours.double() - theirs).norm() / theirs.norm()).item()


@pytest.mark.parametrize("update", ["mlp", "glu"])
@pytest.mark.parametrize(
    ("shape", "n_modes", "basis"),
    [
        ((64,), 8, "usb"),
        ((64,), 20, "given"),
        ((33,), 20, "given"),
        ((24, 32), 20, "given"),
        ((20, 20), 6, "usb"),
        ((18, 18, 18), 16, "given"),
        ((8, 8, 8), 5, "usb"),
    ],
)
def test_answers_as_the_public_code_does(shape, n_modes, basis, update):
    """To 1e-5, with modes that are exact as well as with those that are round-off noise."""
    state = public_state(shape, n_modes=n_modes, update=update)
    model = import_public(state, shape=shape)
    a = torch.randn(2, 2, *shape)
    assert model.modes.options.basis == basis
    assert relative(model(a), public_forward(state, a)) < 1e-5


def test_the_reference_is_a_correlation():
    """The spectra in the reference stand for S(x) = Σₗ Θₗ Σₜ φₗ(t) z(x + t), summed here."""
    z, phi = torch.randn(1, 2, 16).double(), dense_modes(16, 3)
    theta = torch.randn(3, 2, 2).double()
    by_sum = sum(
        torch.einsum("oi,bix->box", theta[mode] * phi[mode, t], z.roll(-t, -1))
        for mode in range(3)
        for t in range(16)
    )
    model = SFO(1, 1, n_modes=3, hidden_channels=8, product="correlation").double()
    kernel = model.kernels[0]
    sign = torch.sign((phi * usb_modes(16, 3)).sum(1))
    padded = torch.zeros(3, 8, 8).double()
    padded[:, :2, :2] = sign.view(-1, 1, 1) * theta
    kernel.theta.data = padded
    out = kernel(torch.cat([z, torch.zeros(1, 6, 16)], 1).double())[:, :2]
    torch.testing.assert_close(out, by_sum)


def test_the_paper_s_sizes():
    """The public 1D model has an MLP of 2d: 335,845 parameters instead of 302,821."""
    state = public_state((256,), n_modes=16, d=64, frames=1, out=101, n_layers=4)
    model = import_public(state)
    assert sum(p.numel() for p in model.parameters()) == 335_845
    paper = SFO.from_paper("allen_cahn", mlp_ratio=2)
    assert sum(p.numel() for p in paper.parameters()) == 335_845


def test_components_share_the_network():
    """Six components of two frames each, as the public code's Maxwell model takes them."""
    state = public_state((8, 8, 8), n_modes=4)
    a = torch.randn(2, 12, 8, 8, 8)
    theirs = public_forward(state, a.view(12, 2, 8, 8, 8)).reshape(2, 18, 8, 8, 8)
    assert relative(import_public(state, components=6)(a), theirs) < 1e-5


@pytest.mark.parametrize(("shape", "n_modes"), [((16, 12), 3), ((20, 20), 18), ((6, 6, 6), 2)])
def test_multi_index(shape, n_modes):
    state = public_state(shape, n_modes=n_modes, d=8, n_layers=1, index="multi")
    a = torch.randn(1, 2, *shape)
    model = import_public(state, index="multi", shape=shape)
    assert relative(model(a), public_forward(state, a)) < 1e-5


def test_noise_of_another_machine_is_kept():
    """Modes that nobody can compute again travel with the weights, also through a file."""
    state = public_state((24, 24), n_modes=5)
    noise = [torch.linalg.qr(torch.randn(24, 24, dtype=torch.float64))[0][:5] for _ in range(2)]
    spectra = torch.fft.rfft2(tied_index(noise)).to(torch.complex64)
    state |= {name: spectra for name in state if name.endswith("Phi_f")}
    a = torch.randn(2, 2, 24, 24)
    model = import_public(state)
    assert model.modes.options.basis == "given"
    assert relative(model(a), public_forward(state, a)) < 1e-5


def test_saved_and_loaded_again(tmp_path):
    state = public_state((32,), n_modes=20)
    a = torch.randn(2, 2, 32)
    model = import_public(state).eval()
    again = SFO.from_pretrained(model.save_pretrained(tmp_path)).eval()
    torch.testing.assert_close(again(a), model(a))
    with torch.no_grad():
        fresh = SFO(**model.arguments)
    with pytest.raises(ValueError, match="has no modes yet"):
        fresh(a)
    fresh.load_state_dict(model.state_dict())
    torch.testing.assert_close(fresh(a), model(a))
    # Half precision and back costs the weights digits, not the modes.
    assert model.half().given.get_extra_state().dtype == torch.float64


def test_other_grids():
    """Given modes are restricted to other grids: K is the same there on band-limited fields."""
    model = import_public(public_state((32,), n_modes=20))
    kernel = model.kernels[0]
    angle = 2 * math.pi * torch.arange(64) / 64
    fine = torch.stack([torch.sin((k % 8) * angle + k) for k in range(16)])[None]
    torch.testing.assert_close(kernel(fine)[..., ::2], kernel(fine[..., ::2]))
    model.modes.transfer = "rebuild"
    with pytest.raises(ValueError, match="32 points along axis 0"):
        kernel(fine)


@pytest.mark.parametrize("suffix", ["pt", "safetensors", "nested", "parallel"])
def test_files(tmp_path, suffix):
    """A state dict by torch.save or safetensors, alone, nested, or of a parallel model."""
    from safetensors.torch import save_file

    state = public_state((16,), n_modes=4)
    a = torch.randn(1, 2, 16)
    path = tmp_path / ("model.safetensors" if suffix == "safetensors" else "model.pt")
    if suffix == "safetensors":
        pairs = {k: torch.view_as_real(v) if v.is_complex() else v for k, v in state.items()}
        save_file({k: v.contiguous() for k, v in pairs.items()}, path)
    elif suffix == "nested":
        torch.save({"epoch": 3, "model_state_dict": state}, path)
    elif suffix == "parallel":
        torch.save({f"module.{k}": v for k, v in state.items()}, path)
    else:
        torch.save(state, path)
    assert relative(import_public(path)(a), public_forward(state, a)) < 1e-5


def test_weights_without_modes():
    """The public code for several grids stores no modes: they are torch's on this machine."""
    full = public_state((32,), n_modes=20)
    state = {name: value for name, value in full.items() if not name.endswith("Phi_f")}
    a = torch.randn(2, 2, 32)
    assert relative(import_public(state, shape=(32,))(a), public_forward(full, a)) < 1e-5
    with pytest.raises(ValueError, match="pass `shape`"):
        import_public(state)


def test_names_may_be_mapped():
    state = public_state((16,), n_modes=4)
    renamed = {name.replace("core.head", "out"): value for name, value in state.items()}
    names = {"out.weight": "head.weight", "out.bias": "head.bias"}
    a = torch.randn(1, 2, 16)
    model = import_public(renamed, names=names)
    assert relative(model(a), public_forward(state, a)) < 1e-5
    with pytest.raises(ValueError, match="'other', which is not in the weights"):
        import_public(renamed, names={"other": "head.weight"})


def test_the_glu_with_the_paper_s_sigma_is_another_function():
    state = public_state((32,), n_modes=8, update="glu")
    a = torch.randn(2, 2, 32)
    gelu = import_public(state, activation="gelu")
    assert relative(gelu(a), public_forward(state, a)) > 0.1


def broken(change):
    state = public_state((16,), n_modes=4)
    change(state)
    return state


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda s: s.pop("core.layers.1.Theta"), "miss 'layers.1.Theta'"),
        (lambda s: s.pop("core.head.bias"), "miss 'head.bias'"),
        (lambda s: s.update(extra=torch.ones(2)), "unknown 'extra'"),
        (lambda s: s.update({"core.head.bias": torch.ones(7)}), r"'head.bias' must have the shape"),
        (lambda s: s.update({"core.layers.1.Theta": torch.ones(5, 16, 16)}), "layers.1.Theta"),
        (lambda s: s.update({"core.layers.0.Theta": torch.ones(5, 16)}), r"\(L, d, d\)"),
        (lambda s: s.update({"core.layers.1.Phi_f": torch.ones(4, 9) + 0j}), "same modes"),
        (lambda s: s.update(epoch=3), "must be tensors"),
        (lambda s: s.update({"module.core.head.bias": torch.ones(3)}), "twice"),
    ],
)
def test_what_does_not_fit_is_named(change, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        import_public(broken(change))
    assert "\n" not in str(error.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ValueError, match="Cannot read the weights"):
        import_public(tmp_path / "absent.pt")
    path = tmp_path / "model.pt"
    torch.save(SFO(1, 1, n_modes=2, hidden_channels=8), path)
    with pytest.raises(ValueError, match="would run code"):
        import_public(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="no file of tensors"):
        import_public(path)
    torch.save([1, 2], path)
    with pytest.raises(ValueError, match="got a list"):
        import_public(path)
    with pytest.raises(ValueError, match="does not fit"):
        import_public(public_state((16,), n_modes=4), shape=(20,))
    with pytest.raises(ValueError, match='index="tied"'):
        import_public(public_state((16, 16), n_modes=5), index="multi")
