from functools import partial

import pytest
import torch

from sfo.models.compiled import selective_scan as module
from sfo.models.compiled.selective_scan import Block, scan_by_doubling, selective_scan
from sfo.models.compiled.selective_scan_loops import CHANNEL_CHUNK


def recurrence(u, delta, a, b, c):
    """Point after point, as the definition has it."""
    h = torch.zeros(u.shape[1], *a.shape, dtype=u.dtype)
    y = []
    for t in range(len(u)):
        drive = (delta[t] * u[t])[:, None] * b[t][..., None]
        h = torch.exp(delta[t][:, None] * a) * h + drive
        y.append((c[t][..., None] * h).sum(1))
    return torch.stack(y)


def example(n=37, batch=5, states=3, channels=4, dtype=torch.float64):
    """Rates and step sizes that let a state fade over one point to a hundred."""
    u, delta = torch.randn(2, n, batch, channels, dtype=dtype)
    b, c = torch.randn(2, n, batch, states, dtype=dtype)
    a = -torch.rand(states, channels, dtype=dtype) * 8
    return [x.requires_grad_() for x in (u, delta.sigmoid(), a, b, c)]


def with_gradients(scan, inputs):
    y = scan(*inputs)
    generator = torch.Generator().manual_seed(3)
    direction = torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.dtype)
    return y, *torch.autograd.grad(y, inputs, direction)


def use(block, monkeypatch):
    monkeypatch.setattr(module.Block, "fitting", classmethod(lambda cls, batch, a: block))


@pytest.mark.parametrize(
    "block",
    [
        Block(rows=5, lanes=1, steps=16),
        Block(rows=2, lanes=1, steps=37),
        Block(rows=5, lanes=3, steps=4),
        Block(rows=3, lanes=9, steps=4),
        Block(rows=5, lanes=64, steps=1),
        Block(rows=1, lanes=2, steps=18),
    ],
)
def test_scan_is_the_recurrence(block, monkeypatch):
    """Values and gradients, however the batch and the sequence are cut."""
    use(block, monkeypatch)
    inputs = example()
    for fast, slow in zip(
        with_gradients(selective_scan, inputs), with_gradients(recurrence, inputs), strict=True
    ):
        torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 100])
def test_scan_of_any_length(n):
    inputs = example(n)
    for fast, slow in zip(
        with_gradients(selective_scan, inputs), with_gradients(recurrence, inputs), strict=True
    ):
        torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)


def backwards(u, delta, a, b, c):
    """The recurrence from the last point to the first."""
    return recurrence(u.flip(0), delta.flip(0), a, b.flip(0), c.flip(0)).flip(0)


def relative_error(fast, slow):
    return (fast.double() - slow).abs().max() / slow.abs().max()


@pytest.mark.parametrize(
    "size", [(1, 2, 3, 4), (32, 1, 1, 1), (33, 3, 2, CHANNEL_CHUNK + 7), (300, 5, 16, 8)]
)
def test_kernels_are_the_recurrence(size):
    """Values and gradients in float32, in both directions, keep five digits."""
    inputs = example(*size)
    single = [x.detach().float().requires_grad_() for x in inputs]
    for direction, slow in ((False, recurrence), (True, backwards)):
        fast = partial(selective_scan, backwards=direction)
        pairs = zip(with_gradients(fast, single), with_gradients(slow, inputs), strict=True)
        assert max(relative_error(*pair) for pair in pairs) < 1e-5


def test_torch_operations_run_backwards_too():
    inputs = example()
    for fast, slow in zip(
        with_gradients(partial(selective_scan, backwards=True), inputs),
        with_gradients(backwards, inputs),
        strict=True,
    ):
        torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)


def test_second_derivatives_of_kernels():
    """The gradient of a gradient's square, against float64."""

    def second(inputs, direction):
        y = selective_scan(*inputs, backwards=direction)
        gradients = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in gradients), inputs)

    inputs = example(n=20)
    single = [x.detach().float().requires_grad_() for x in inputs]
    for direction in (False, True):
        pairs = zip(second(single, direction), second(inputs, direction), strict=True)
        assert max(relative_error(*pair) for pair in pairs) < 1e-5


def test_threads_share_the_batch(monkeypatch):
    """Rows do not depend on who computes them; sums over the batch do by their order."""
    inputs = [x.detach().float().requires_grad_() for x in example()]
    alone = with_gradients(selective_scan, inputs)
    assert all(map(torch.equal, with_gradients(selective_scan, inputs), alone))
    for threads in (2, 3, 8):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        shared = with_gradients(selective_scan, inputs)
        torch.testing.assert_close(shared[3], alone[3], rtol=1e-5, atol=1e-6)
        assert all(torch.equal(shared[i], alone[i]) for i in (0, 1, 2, 4, 5))


def test_doubling_is_the_recurrence():
    inputs = example()
    for fast, slow in zip(
        with_gradients(scan_by_doubling, inputs),
        with_gradients(recurrence, inputs),
        strict=True,
    ):
        torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)


def test_derivatives_are_right(monkeypatch):
    """The first ones, and those of the gradient."""
    use(Block(rows=1, lanes=2, steps=2), monkeypatch)
    inputs = example(n=7, batch=2, states=2, channels=2)
    assert torch.autograd.gradcheck(selective_scan, inputs)
    assert torch.autograd.gradgradcheck(selective_scan, inputs)
    fixed = [inputs[0], *(x.detach() for x in inputs[1:])]
    assert torch.autograd.gradgradcheck(selective_scan, fixed)


def test_constant_coefficients_give_a_geometric_series():
    """y_t = Δ b c u (1 − qᵗ⁺¹)/(1 − q) with q = exp(Δ a)."""
    ones = torch.ones(50, 1, 1, dtype=torch.float64)
    rate = torch.full((1, 1), -0.7, dtype=torch.float64)
    y = selective_scan(3 * ones, 0.2 * ones, rate, 2 * ones, 5 * ones).flatten()
    q = torch.exp(0.2 * rate.flatten())
    torch.testing.assert_close(y, 6 * (1 - q ** torch.arange(1, 51)) / (1 - q))


def test_no_decay_gives_running_sums():
    u, delta, a, b, c = example()
    y = selective_scan(u, delta, 0 * a, b, c)
    sums = ((delta * u)[:, :, None] * b[..., None]).cumsum(0)
    torch.testing.assert_close(y, (c[..., None] * sums).sum(2))


@pytest.mark.parametrize("strength", [1e2, 1e4, 1e6])
@pytest.mark.parametrize(
    ("lanes", "dtype"), [(1, torch.float64), (4, torch.float64), (1, torch.float32)]
)
def test_strong_decay_neither_overflows_nor_remembers(strength, lanes, dtype, monkeypatch):
    """Once exp(Δ a) = 0, a state knows its own point alone: y = Δ u b·c."""
    use(Block(rows=5, lanes=lanes, steps=8), monkeypatch)
    u, delta, a, b, c = (x.detach().to(dtype) for x in example())
    delta, a = delta + 1, a - 1
    inputs = [x.requires_grad_() for x in (u, delta, strength * a, b, c)]
    y, *gradients = with_gradients(selective_scan, inputs)
    torch.testing.assert_close(y, delta * u * (b * c).sum(-1, keepdim=True))
    assert all(x.isfinite().all() for x in gradients)


def test_few_states_are_kept_for_the_backward_pass():
    """One in 32, and the inputs: not the states of all points."""
    inputs = example(n=256, batch=2, states=16, channels=32, dtype=torch.float32)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()), lambda x: x):
        selective_scan(*inputs)
    states = 256 * 2 * 16 * 32
    assert sum(kept) <= states / 32 + sum(x.numel() for x in inputs)


def test_autocast_does_not_touch_the_recurrence():
    inputs = [x.detach().float() for x in example(n=200)]
    exact = selective_scan(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(selective_scan(*inputs), exact)
