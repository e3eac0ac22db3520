"""What users of PyTorch expect of every registered model, and of the kinds of SFO."""

import io
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import jaxtyping
import pytest
import torch
from contracts.test_models import NAMES, small
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacrev, jvp, stack_module_state, vmap

from sfo.models import SFO, SVDNO, Transolver

TINY = dict(n_modes=4, hidden_channels=8, n_layers=2)
KINDS = {
    **{name: lambda name=name: small(name, 1, 2, (16,)) for name in NAMES},
    "factored": lambda: SFO(1, 2, 1, **TINY, mixing="factored", rank=4),
    "separable": lambda: SFO(
        1, 2, 1, **TINY, mixing="factored", index="separable", boundary="learned", gate=True
    ),
    "two axes": lambda: SFO(
        1, 2, 2, **TINY, mixing="factored", index="separable", boundary="learned", gate=True
    ),
    "recommended": lambda: SFO.recommended(1, 2, 1, **TINY),
    "svd_no lstm": lambda: SVDNO(
        1, 2, 1, n_modes=4, hidden_channels=16, n_layers=2, network="lstm", network_layers=1
    ),
    "transolver distances": lambda: Transolver(
        1, 2, 1, hidden_channels=16, n_layers=1, n_heads=2, n_slices=8, reference_points=3
    ),
    "two-sided": lambda: SFO(1, 2, 1, **TINY, support="two_sided", boundary="reflect", norm=None),
}
kinds = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def model(kind):
    torch.manual_seed(0)
    return KINDS[kind]().eval()


@pytest.fixture
def a(kind):
    grid = (6, 8) if kind == "two axes" else (16,)
    return torch.randn(3, 1, *grid, generator=torch.Generator().manual_seed(1))


def parts(model):
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    return weights, dict(model.named_buffers())


def close(first, second):
    torch.testing.assert_close(first, second, rtol=1e-3, atol=1e-5)


@kinds
def test_vmap_over_samples_is_the_batch(model, a):
    close(vmap(lambda x: model(x[None])[0])(a), model(a))


@kinds
def test_per_sample_gradients_are_those_of_each_sample(model, a):
    weights, buffers = parts(model)

    def loss(weights, x):
        return functional_call(model, (weights, buffers), (x[None],)).square().mean()

    found = vmap(grad(loss), in_dims=(None, 0))(weights, a)
    for number, x in enumerate(a):
        model.zero_grad()
        model(x[None]).square().mean().backward()
        for name, weight in model.named_parameters():
            if weight.grad is not None:
                close(found[name][number], weight.grad)


@kinds
def test_forward_and_reverse_mode_agree(model, a):
    """⟨w, J v⟩ = ⟨Jᵀ w, v⟩, by torch.func and by dual numbers."""
    v, w = torch.randn_like(a), torch.randn(3, 2, *a.shape[2:])
    _, forward = jvp(model, (a,), (v,))
    x = a.clone().requires_grad_()
    (reverse,) = torch.autograd.grad(model(x), x, w)
    close((w * forward).sum(), (reverse * v).sum())
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(model(forward_ad.make_dual(a, v))).tangent
    close(dual, forward)


@kinds
def test_jacrev_has_the_rows_of_the_jacobian(model, a):
    jacobian = jacrev(lambda x: model(x[None])[0])(a[0])
    v = torch.randn_like(a[0])
    _, along = jvp(lambda x: model(x[None])[0], (a[0],), (v,))
    close(torch.tensordot(jacobian, v, v.ndim), along)


@kinds
def test_an_ensemble_is_its_members(kind, model, a):
    members = [model, KINDS[kind]().eval()]
    weights, buffers = stack_module_state(members)
    out = vmap(lambda w, b: functional_call(model, (w, b), (a,)))(weights, buffers)
    for found, member in zip(out, members, strict=True):
        close(found, member(a))


@kinds
def test_meta_tensors_give_the_shape_and_leave_nothing(kind, model, a):
    """A model may be built and run without numbers; one that was still answers with them."""
    with torch.device("meta"):
        assert KINDS[kind]()(torch.empty(a.shape)).shape == (3, 2, *a.shape[2:])
    fresh = deepcopy(model)
    fresh.to("meta")(a.to("meta"))
    filled = fresh.to_empty(device="cpu")
    filled.load_state_dict(model.state_dict())
    close(filled(a), model(a))


@kinds
def test_fake_tensors_leave_nothing(model, a):
    """Run under fake tensors before its first call, a model answers as one that was not."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    fresh = deepcopy(model)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        assert fresh(mode.from_tensor(a)).shape == (3, 2, *a.shape[2:])
    close(fresh(a), model(a))


@kinds
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
def test_a_trace_is_the_model(model, a, monkeypatch):
    # While torch traces, sizes are tensors, which the tests' checks of shapes do not take.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    traced = torch.jit.trace(model, (a,), check_trace=False)
    close(traced(2 * a), model(2 * a))


@pytest.mark.slow
@kinds
def test_an_export_is_the_model(model, a):
    """Before a first call."""
    exported = torch.export.export(deepcopy(model), (a,), strict=False).module()
    close(exported(2 * a), model(2 * a))


@kinds
def test_a_copy_is_the_model_and_its_own(model, a):
    before = model(a)
    copy = deepcopy(model)
    close(copy(a), before)
    with torch.no_grad():
        for weight in copy.parameters():
            weight.mul_(2)
    assert not torch.allclose(copy(a), before, rtol=1e-2)
    close(model(a), before)


@kinds
def test_precisions_agree(model, a):
    """float64 to float32's rounding, bfloat16 to its own."""
    u = model(a)
    truth = deepcopy(model).double()(a.double())
    assert (u - truth).norm() < 1e-5 * truth.norm()
    half = deepcopy(model).bfloat16()(a.bfloat16())
    assert half.dtype == torch.bfloat16
    assert (half.float() - u).norm() < 0.1 * u.norm()


@kinds
@pytest.mark.parametrize("trained", [True, False])
def test_autocast_is_the_model_rounded(kind, model, a, trained):
    """With backward() inside too; afterwards the model answers as before."""
    before = model(a)
    with torch.autocast("cpu", torch.bfloat16), torch.set_grad_enabled(trained):
        u = model(a)
        if trained:
            u.float().square().mean().backward()
    assert (u.float() - before).norm() < 0.1 * before.norm()
    if trained:
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
    close(model(a), before)


@kinds
def test_however_the_input_lies_in_memory(model, a):
    """Strided, transposed, expanded, wanting a gradient; one sample at a time; left as it was."""
    before, kept = model(a), a.clone()
    close(model(torch.stack([a, -a], -1)[..., 0]), before)
    close(model(a.movedim(0, -1).contiguous().movedim(-1, 0)), before)
    close(model(a.clone().requires_grad_()), before)
    close(torch.cat([model(x[None]) for x in a]), before)
    close(model(a[:1].expand(3, *a.shape[1:]))[2], before[0])
    with torch.no_grad():
        close(model(a), before)
    with torch.inference_mode():
        close(model(a), before)
    assert torch.equal(a, kept)


@kinds
def test_a_model_first_used_in_inference_mode_can_be_trained(kind, model, a):
    """What it builds then, and keeps, must allow gradients."""
    fresh = deepcopy(model)
    with torch.inference_mode():
        first = fresh(a)
    u = fresh(a)
    close(u, first.clone())
    u.square().sum().backward()
    model(a).square().sum().backward()
    for weight, other in zip(fresh.parameters(), model.parameters(), strict=True):
        assert (weight.grad is None) == (other.grad is None)
        if weight.grad is not None:
            close(weight.grad, other.grad)


@kinds
def test_threads_share_a_fresh_model(kind, model, a):
    """Four first calls at once, as a server has them."""
    fresh = deepcopy(model)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: torch.no_grad()(fresh)(a), range(8)))
    for answer in answers:
        close(answer, model(a))


@kinds
def test_a_pickle_is_the_model(model, a):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    close(torch.load(file, weights_only=False)(a), model(a))


@kinds
def test_an_empty_batch_is_refused_in_a_sentence(model, a):
    with pytest.raises(ValueError, match=r"no empty axis.*got shape \(0, 1, "):
        model(a[:0])


@kinds
def test_every_block_changes_the_output(model, a):
    """A module whose weights could be anything would be one that is not there.

    In float64, where a small effect shows: slices that are alike attend to each other alike.
    """
    model, a = model.double(), a.double()
    before = model(a)
    for name, module in model.named_modules():
        own = [weight for weight in module.parameters(recurse=False) if weight.numel()]
        if not own:
            continue
        saved = [weight.detach().clone() for weight in own]
        with torch.no_grad():
            for weight in own:
                weight.add_(torch.randn(weight.shape).to(weight))
            after = model(a)
            for weight, old in zip(own, saved, strict=True):
                weight.copy_(old)
        assert not torch.allclose(after, before, rtol=1e-9, atol=1e-10), name


# Modules that hold weights of fused operations, and read as parameters, not as calls.
HOLDERS = {
    "mno": {"layers.0.mixer.enter"},
    "mpnn": {"encoder", "layers.0.message", "layers.0.message_out", "layers.0.update"},
    "svd_no": {"phi.readout", "psi.readout"},
    "transolver": {f"layers.0.attention.{n}" for n in ("query", "key", "value", "slice")},
}


@kinds
def test_hooks_are_called(kind, model, a):
    """On every module with weights, but for those that are documented to hold some only."""
    before, seen = model(a), set()
    expected = {name for name, m in model.named_modules() if [*m.parameters(recurse=False)]}
    for name in expected:
        module = model.get_submodule(name)
        module.register_forward_hook(lambda m, i, o, name=name: seen.add(name))
    close(model(a), before)
    assert expected - seen == HOLDERS.get(kind.split()[0], set())
