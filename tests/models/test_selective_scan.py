import pytest
import torch

from sfo.models import selective_scan as module
from sfo.models.selective_scan import Block, scan_by_doubling, selective_scan


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


def test_single_precision_keeps_five_digits():
    inputs = example(n=300, states=16, channels=8)
    single = [x.detach().float().requires_grad_() for x in inputs]
    for fast, slow in zip(
        with_gradients(selective_scan, single), with_gradients(recurrence, inputs), strict=True
    ):
        error = (fast.double() - slow).abs().max() / slow.abs().max()
        assert error < 1e-5


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
@pytest.mark.parametrize("lanes", [1, 4])
def test_strong_decay_neither_overflows_nor_remembers(strength, lanes, monkeypatch):
    """Once exp(Δ a) = 0, a state knows its own point alone: y = Δ u b·c."""
    use(Block(rows=5, lanes=lanes, steps=8), monkeypatch)
    u, delta, a, b, c = (x.detach().float() for x in example())
    delta, a = delta + 1, a - 1
    inputs = [x.requires_grad_() for x in (u, delta, strength * a, b, c)]
    y, *gradients = with_gradients(selective_scan, inputs)
    torch.testing.assert_close(y, delta * u * (b * c).sum(-1, keepdim=True))
    assert all(x.isfinite().all() for x in gradients)


def test_few_states_are_kept_for_the_backward_pass():
    """One in 16, and the inputs: not the states of all points."""
    inputs = example(n=256, batch=2, states=16, channels=32, dtype=torch.float32)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()), lambda x: x):
        selective_scan(*inputs)
    states = 256 * 2 * 16 * 32
    assert sum(kept) <= states / 16 + sum(x.numel() for x in inputs)


def test_autocast_does_not_touch_the_recurrence():
    inputs = [x.detach().float() for x in example(n=200)]
    exact = selective_scan(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(selective_scan(*inputs), exact)
