"""Exponential time stepping: its functions against many digits, its order, its errors."""

import math

import mpmath
import numpy as np
import pytest
import torch

from sfo.pdes import AllenCahn, Burgers, CahnHilliard, DiffusionReaction
from sfo.pdes.integrate import ETDRK4, integrate, phi_functions, step_plan


def exact_phi(k: int, z: float) -> float:
    """φₖ(z) = ₁F₁(1; k + 1; z) / k!, to 50 digits."""
    with mpmath.workdps(50):
        return float(mpmath.hyp1f1(1, k + 1, mpmath.mpf(z)) / mpmath.factorial(k))


def test_phi_functions_are_exact():
    """From the stiffest wave to growth, through 0 and across |z| = 1, where the formula changes."""
    ends = torch.logspace(-300, 6, 200, dtype=torch.float64)
    near = torch.linspace(-1.5, 1.5, 101, dtype=torch.float64)
    z = torch.cat([-ends, ends[ends < 500], near])
    for k, phi in enumerate(phi_functions(z), start=1):
        exact = torch.tensor([exact_phi(k, x) for x in z.tolist()], dtype=torch.float64)
        assert ((phi - exact) / exact).abs().max() < 3e-15


def test_without_stiffness_it_is_the_classical_method():
    """One step of u′ = u² from 1: the stages of RK4, by hand."""
    zero, one = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    h = 0.1
    k1 = 1.0
    k2 = (1 + h / 2 * k1) ** 2
    k3 = (1 + h / 2 * k2) ** 2
    k4 = (1 + h * k3) ** 2
    by_hand = 1 + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    assert ETDRK4(zero, one, h)(one, lambda u: u**2).item() == pytest.approx(by_hand, rel=1e-15)


def test_without_reaction_one_step_is_exact():
    """û(t) = exp(λt) û(0), however long the step."""
    initial = torch.randn(2, 1, 16, dtype=torch.float64)
    linear = -(torch.arange(9, dtype=torch.float64) ** 2)
    times = torch.tensor([0.0, 3.0], dtype=torch.float64)
    frames = integrate(
        initial, times, linear=linear, outer=linear, reaction=torch.zeros_like, max_step=math.inf
    )
    exact = torch.fft.irfft(torch.exp(3 * linear) * torch.fft.rfft(initial), n=16)
    torch.testing.assert_close(frames[:, 1], exact, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("pde", "step"),
    [(AllenCahn(), 0.05), (DiffusionReaction(nu=0.01), 0.1), (CahnHilliard(), 0.02)],
)
def test_the_error_falls_with_the_fourth_power_of_the_step(pde, step, monkeypatch):
    """On few waves: on many, stiffness lowers the order for Cahn–Hilliard to three."""
    monkeypatch.setattr(DiffusionReaction, "warm_up", 0)
    x = pde.grid(24).coordinates()[0]
    initial = (0.3 + 0.2 * torch.sin(2 * math.pi / pde.length * x))[None, None]
    times = [0.0, 10 * step]
    exact = pde.solve(initial, times, max_step=step / 32)
    errors = [(pde.solve(initial, times, max_step=step / r) - exact).norm() for r in (1, 2, 4)]
    orders = [math.log2(errors[0] / errors[1]), math.log2(errors[1] / errors[2])]
    assert min(orders) > 3.8


@pytest.mark.parametrize("warm_up", [0, 3, 9])
def test_steps_add_up_and_keep_their_limits(warm_up):
    """They cover all times, meet each, stay below max_step and below an eighth of the time."""
    times, max_step = [0.5, 0.55, 0.554, 1.0, 1.5], 0.03
    covered = list(step_plan(times, max_step, warm_up))
    starts, ends = [s for s, _, _ in covered], [e for _, e, _ in covered]
    assert starts == [times[0], *ends[:-1]]
    assert set(times[1:]) <= set(ends)
    for start, end, n_steps in covered:
        step = (end - start) / n_steps
        assert step <= max_step * (1 + 1e-8)
        if warm_up:
            assert step <= max(max_step / 2**warm_up, (start - times[0]) / 8) * (1 + 1e-8)


def test_equal_frames_share_their_steps(monkeypatch):
    """0.01, 0.02, … differ in their last digits, which must not cost new coefficients."""
    built = []
    monkeypatch.setattr(
        "sfo.pdes.integrate.ETDRK4", lambda *args: built.append(args[2]) or ETDRK4(*args)
    )
    AllenCahn().solve(torch.zeros(1, 1, 8), np.linspace(0, 1, 101))
    assert built == [0.0025, 0.00125]  # the second to estimate the error


def rough(pde, size, n=128):
    """White noise, far from what the benchmarks have."""
    generator = torch.Generator().manual_seed(0)
    return size * torch.randn(2, 1, n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize(
    ("pde", "size", "wrong"),
    [(AllenCahn(), 3.0, 1e-3), (Burgers(), 8.0, 3e-4), (CahnHilliard(), 3.0, None)],
)
def test_rough_and_large_fields_are_solved_in_shorter_steps(pde, size, wrong):
    """Default steps would be off by so much, or blow up; they are refined and are not."""
    start, times = rough(pde, size), [0.0, 20 * pde.max_step, 40 * pde.max_step]
    exact = pde.solve(start, times, max_step=pde.max_step / 64)[:, 1:]

    def error(frames):
        return ((frames[:, 1:] - exact).norm() / exact.norm()).item()

    if wrong is None:
        with pytest.raises(ValueError, match="blew up"):
            pde.solve(start, times, max_step=pde.max_step)
    else:
        assert error(pde.solve(start, times, max_step=pde.max_step)) > wrong
    assert error(pde.solve(start, times)) < 1e-4


def test_the_roughest_sample_decides():
    """Beside a smooth one that alone would need no shorter steps, wherever it stands."""
    pde = AllenCahn()
    smooth, bad = torch.zeros(1, 1, 128, dtype=torch.float64), rough(pde, 3.0)[:1]
    times = [0.0, 0.05]
    alone = pde.solve(bad, times)
    for batch in (torch.cat([bad, smooth]), torch.cat([smooth, smooth, bad])):
        together = pde.solve(batch, times)
        row = int(batch.flatten(1).norm(dim=1).argmax())
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-12)


def test_fields_too_rough_for_any_step_say_so():
    with pytest.raises(
        ValueError, match=r"too rough or too large for the steps of AllenCahn.*blow up"
    ):
        AllenCahn().solve(rough(AllenCahn(), 20.0), [0.0, 0.05])


def test_an_estimate_never_changes_a_solution_that_is_good_enough():
    """To the bit, what the equation's own steps give when asked for by name."""
    pde = CahnHilliard()
    x = pde.grid(256).coordinates()[0]
    start = torch.sin(4 * math.pi * x)[None, None]
    times = np.linspace(0, 0.05, 6)
    assert torch.equal(pde.solve(start, times), pde.solve(start, times, max_step=pde.max_step))


def test_a_solution_that_blows_up_says_where_and_what_to_do():
    initial = 2 * torch.sin(AllenCahn().grid(64).coordinates()[0] * math.pi)[None, None]
    with pytest.raises(ValueError, match=r"between t=0 and t=2, in steps of 1\. .*max_step=0\.2"):
        AllenCahn().solve(100 * initial, [0.0, 2.0], max_step=1.0)


def test_a_step_must_be_positive():
    for max_step in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match=f"`max_step` must be .*positive.* got .*{max_step}"):
            AllenCahn().solve(torch.zeros(1, 1, 8), [0, 1], max_step=max_step)


@pytest.mark.parametrize(
    ("times", "max_step"), [([0.0, 1e12], 0.01), ([0.0, 1e300], 1e-300), ([0.0, 1.0], 5e-324)]
)
def test_what_would_not_end_is_not_begun(times, max_step):
    """Times of 1e12 were stepped through for ever; 1e300 / 1e-300 is more than a float holds."""
    with pytest.raises(ValueError, match=r"more than 1e\+08 steps of at most .*`max_step`"):
        AllenCahn().solve(torch.zeros(1, 1, 8), times, max_step=max_step)
