"""The factored kernel is a dense one whose matrices share their factors."""

import copy
from itertools import product

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional as F

from sfo import SFO
from sfo.bases import multi_index
from sfo.models.kernel import FactoredKernel, SpectralKernel
from sfo.models.kernel_modes import KernelModes, KernelOptions

GRIDS = {1: (9,), 2: (6, 7), 3: (5, 4, 6)}
CHOICES = [
    *product((1, 2, 3), ("tied", "multi"), ("circular", "zero", "reflect"), ("paper",)),
    (2, "multi", "circular", "unit"),
    (1, "tied", "zero", "unit"),
]


def kernel(n_dim, *, channels=3, out_channels=4, rank=5, skip=False, gate=False, **options):
    modes = KernelModes(KernelOptions(3, n_dim, **options))
    kind = FactoredKernel(
        channels, modes, out_channels=out_channels, rank=rank, skip=skip, gate=gate
    )
    return kind.double()


@pytest.mark.parametrize(("n_dim", "index", "boundary", "gain"), CHOICES)
@pytest.mark.parametrize("support", ["one_sided", "two_sided"])
def test_equals_the_dense_kernel(n_dim, index, boundary, gain, support):
    """With Θₗ = A diag(θₗ) B, outputs and gradients, to 1e-12."""
    options = dict(index=index, boundary=boundary, gain=gain, support=support, low_modes=0)
    k = kernel(n_dim, channels=4, **options)
    dense = SpectralKernel(4, k.modes).double()
    v = torch.randn(2, 4, *GRIDS[n_dim], dtype=torch.float64, requires_grad=True)
    dout = torch.randn(2, 4, *GRIDS[n_dim], dtype=torch.float64)
    with torch.no_grad():
        k.mix_out.bias.zero_()
        dense.theta.copy_(k.theta)
    ours, theirs = k(v), dense(v)
    assert (ours - theirs).abs().max() <= 1e-12 * theirs.abs().max()
    (dv,) = torch.autograd.grad(ours, v, dout, retain_graph=True)
    (dv_dense,) = torch.autograd.grad(theirs, v, dout, retain_graph=True)
    assert (dv - dv_dense).abs().max() <= 1e-12 * dv_dense.abs().max()
    weights = (k.coefficients, k.mix_in, k.mix_out.weight)
    grads = torch.autograd.grad(ours, weights, dout)
    (dtheta,) = torch.autograd.grad(theirs, dense.theta, dout)
    # By the chain rule through Θₗ = A diag(θₗ) B.
    chained = torch.autograd.grad(k.theta, weights, dtheta)
    for ours_, theirs_ in zip(grads, chained, strict=True):
        assert (ours_ - theirs_).abs().max() <= 1e-11 * theirs_.abs().max()


@pytest.mark.parametrize("n_dim", [1, 2, 3])
@pytest.mark.parametrize("boundary", ["circular", "zero", "reflect"])
def test_separable_is_multi_index_with_products(n_dim, boundary):
    k = kernel(n_dim, index="separable", boundary=boundary, support="two_sided")
    multi = kernel(n_dim, index="multi", boundary=boundary, support="two_sided")
    with torch.no_grad():
        theta = k.coefficients[0]
        for factor in k.coefficients[1:]:
            theta = torch.einsum("rl,rk->rlk", theta, factor).flatten(1)
        multi.coefficients.copy_(theta)
        multi.mix_in.copy_(k.mix_in)
        multi.mix_out.load_state_dict(k.mix_out.state_dict())
    v = torch.randn(2, 3, *GRIDS[n_dim], dtype=torch.float64)
    torch.testing.assert_close(k(v), multi(v))
    torch.testing.assert_close(k.theta, multi.theta)
    torch.testing.assert_close(k.spatial(GRIDS[n_dim]), multi.spatial(GRIDS[n_dim]))


def test_unit_gain_of_separable_modes_holds_along_each_axis():
    modes = KernelModes(KernelOptions(5, 2, index="separable", gain="unit", support="two_sided"))
    for phi in modes.axes((32, 20)):
        power = torch.fft.fft(phi).abs().square().sum(0)
        assert power.max().item() / 3 == pytest.approx(1)


@pytest.mark.parametrize(("weight", "boundary"), [(0.0, "zero"), (1.0, "reflect")])
@pytest.mark.parametrize("n_dim", [1, 2])
def test_learned_reflections_contain_the_fixed_boundaries(n_dim, weight, boundary):
    learned = kernel(n_dim, index="separable", boundary="learned", support="two_sided")
    fixed = kernel(n_dim, index="separable", boundary=boundary, support="two_sided")
    fixed.load_state_dict({k: v for k, v in learned.state_dict().items() if k != "reflections"})
    torch.nn.init.constant_(learned.reflections, weight)
    v = torch.randn(2, 3, *GRIDS[n_dim], dtype=torch.float64)
    torch.testing.assert_close(learned(v), fixed(v))


def test_skip_gate_and_bias():
    k = kernel(1, skip=True, gate=True)
    v = torch.randn(2, 3, 9, dtype=torch.float64)
    plain = copy.deepcopy(k)
    plain.gate = plain.skip = None
    with torch.no_grad():
        plain.mix_out.bias.zero_()
    gate = torch.sigmoid(torch.einsum("ij,bjx->bix", k.gate.weight, v) + k.gate.bias[:, None])
    pointwise = torch.einsum("ij,bjx->bix", k.skip, v) + k.mix_out.bias[:, None]
    torch.testing.assert_close(k(v), plain(2 * gate * v) + pointwise)


def test_multi_index_coefficients_are_in_the_order_of_the_modes():
    """The coefficient of a mode is found by its Kronecker product."""
    k = kernel(2, index="multi", rank=None, channels=2, out_channels=2)
    axes = k.modes.axes((6, 7))
    torch.testing.assert_close(k.modes.modes((6, 7)), multi_index(axes))


@pytest.mark.parametrize("mixing", ["dense", "factored"])
@pytest.mark.parametrize("index", ["tied", "multi", "separable"])
def test_kept_spectra_give_the_same_and_follow_every_change(mixing, index):
    if mixing == "dense" and index == "separable":
        pytest.skip("a dense kernel is not separable")
    torch.manual_seed(0)
    small = dict(n_modes=3, hidden_channels=8, n_layers=2, skip=True)
    model = SFO(1, 2, 2, mixing=mixing, index=index, **small).double()
    a = torch.randn(2, 1, 8, 8, dtype=torch.float64)

    def check(model):
        """Kept against a twin that keeps nothing, twice: built, and taken."""
        twin = copy.deepcopy(model)
        for kernel in twin.kernels:
            kernel.cache.limit = 0
        with torch.no_grad():
            for _ in range(2):
                torch.testing.assert_close(model(a), twin(a), rtol=1e-12, atol=1e-12)
        assert all(kernel.cache._entry is not None for kernel in model.kernels)
        assert all(kernel.cache._entry is None for kernel in twin.kernels)

    model(a)
    model.eval()
    check(model)
    # An optimizer's step, a load, edits by hand and behind torch's back, other grids.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(a).square().sum().backward()
    optimizer.step()
    check(model)
    model.load_state_dict(
        {k: 1.5 * v for k, v in model.state_dict().items() if "_extra" not in k}, strict=False
    )
    check(model)
    for kernel in model.kernels:
        weight = kernel.theta if mixing == "dense" else kernel.coefficients
        weight.data.mul_(2)
    check(model)
    with torch.no_grad():
        model(torch.randn(1, 1, 12, 10, dtype=torch.float64))
    check(model)
    a = torch.randn(1, 1, 12, 10, dtype=torch.float64)
    check(model)
    model.modes.transfer = "restrict"
    check(model)
    model.train()(a)
    assert all(kernel.cache._entry is None for kernel in model.kernels)


def test_no_spectrum_is_kept_beyond_the_limit():
    model = SFO(1, 1, 2, n_modes=3, hidden_channels=8, n_layers=1).eval()
    model.kernels[0].cache.limit = 100
    with torch.no_grad():
        model(torch.zeros(1, 1, 8, 8))
    assert model.kernels[0].cache._entry is None


def test_decoding_along_the_depth():
    """Frames of each field are split evenly; the last J layers are read."""
    model = SFO(1, 10, n_modes=3, hidden_channels=8, n_layers=4, decode=2, out_fields=2)
    a = torch.randn(2, 1, 12)
    v = model.lift(a)
    after = []
    for layer in model.layers:
        v = layer(v)
        after.append(v)
    first, second = model.project.shares
    # Five frames per field: two in the first share, three in the second.
    early, late = first(after[2]), second(after[3])
    truth = torch.cat([early[:, :2], late[:, :3], early[:, 2:], late[:, 3:]], dim=1)
    torch.testing.assert_close(model(a), truth)


def test_output_skip_starts_as_the_carried_frame():
    """Two fields of three frames; the first is channel 1 of the input, the second is not there."""
    model = SFO(
        2, 6, n_modes=3, hidden_channels=8, output_skip=True, out_fields=2, carried=[1, None]
    )
    plain = copy.deepcopy(model)
    plain.skip = None
    a = torch.randn(2, 2, 12)
    carried = F.pad(a[:, 1:2].expand(-1, 3, -1), (0, 0, 0, 3))
    torch.testing.assert_close(model(a), plain(a) + carried)


def test_components_are_carried_each_by_its_own_frame():
    """Two components with two input frames each: the last is carried."""
    model = SFO(
        4,
        6,
        n_modes=3,
        hidden_channels=8,
        output_skip=True,
        components=2,
        out_fields=2,
        carried=[1, 3],
    )
    plain = copy.deepcopy(model)
    plain.skip = None
    a = torch.randn(2, 4, 12)
    truth = plain(a) + a[:, [1, 1, 1, 3, 3, 3]]
    torch.testing.assert_close(model(a), truth)


def test_standardised_input_and_output():
    model = SFO(2, 6, n_modes=3, hidden_channels=8, standardise=True, out_fields=2).double()
    a = torch.randn(50, 2, 12, dtype=torch.float64) * torch.tensor([[3.0], [0.1]]) + 5
    mean, deviation = a.mean((0, 2)), a.std((0, 2), correction=0)
    before = model(a)
    model.standardise_by(mean, deviation, torch.tensor([2.0, 10.0]))
    after = model(a)
    model.standardise = None
    torch.testing.assert_close(before, model(a))
    u = model((a - mean[:, None]) / deviation[:, None])
    torch.testing.assert_close(after, torch.cat([2 * u[:, :3], 10 * u[:, 3:]], dim=1))


@pytest.mark.parametrize("make", [SFO, SFO.recommended])
@pytest.mark.parametrize("n_dim", [1, 2, 3])
def test_a_model_that_ran_on_fake_or_meta_tensors_first(make, n_dim):
    """What it prepares then has no numbers, and must not be kept."""
    shape = (12, 10, 8)[:n_dim]
    small = dict(n_modes=3, hidden_channels=8, train_shape=shape)
    torch.manual_seed(0)
    model = make(1, 2, n_dim, **small).eval()
    a = torch.randn(1, 1, *shape)
    truth = copy.deepcopy(model)(a)
    mode = FakeTensorMode()
    weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    fakes = {name: mode.from_tensor(weight) for name, weight in weights.items()}
    with mode:
        u = torch.func.functional_call(model, fakes, (mode.from_tensor(a),))
    assert isinstance(u, FakeTensor)
    with torch.device("meta"):
        assert copy.deepcopy(model).to("meta")(torch.empty(1, 1, *shape)).shape == truth.shape
    torch.testing.assert_close(model(a), truth)


def test_an_offset_is_added_and_goes_with_the_weights(tmp_path):
    """On its own grid as it is; on another, as a linear field is there; with the weights."""
    model = SFO(1, 2, n_modes=3, hidden_channels=8, standardise=True, train_shape=(12,)).eval()
    a, finer = torch.randn(3, 1, 12), torch.randn(3, 1, 23)
    before, before_finer = model(a), model(finer)
    lines = torch.tensor([[1.0], [-2.0]])
    constants = torch.zeros(1), torch.ones(1), torch.ones(1)
    model.standardise_by(*constants, offset=lines * torch.linspace(0, 1, 12))
    torch.testing.assert_close(model(a), before + lines * torch.linspace(0, 1, 12))
    torch.testing.assert_close(model(finer), before_finer + lines * torch.linspace(0, 1, 23))
    model.save_pretrained(tmp_path)
    assert torch.equal(SFO.from_pretrained(tmp_path)(a), model(a))
    other = SFO(1, 2, n_modes=3, hidden_channels=8, standardise=True, train_shape=(12,)).eval()
    without = copy.deepcopy(other.state_dict())
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(a), model(a))
    other.load_state_dict(without)
    assert other.standardise.offset is None
