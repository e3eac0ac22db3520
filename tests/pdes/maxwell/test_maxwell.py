"""Yee's scheme against closed forms, its conservation laws and its right-hand side."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from sfo.pdes.maxwell import Maxwell, PlaneSource

# Where the six components sit in a cell, and when: H half a step after E.
PLACES = torch.tensor(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]], dtype=torch.float64
).mul(0.5)
DELAYS = torch.tensor([0, 0, 0, 0.5, 0.5, 0.5], dtype=torch.float64)


def steps(equation, *numbers):
    return equation.time_step * torch.tensor(numbers, dtype=torch.float64)


def random_state(*shape, samples=1):
    return torch.randn(samples, 6, *shape, dtype=torch.float64)


def divergences(state):
    """∇⁻ · E and ∇⁺ · H in units of 1/h, on a box that repeats."""
    e, h = state[..., :3, :, :, :].unbind(-4), state[..., 3:, :, :, :].unbind(-4)
    div_e = sum(f - f.roll(1, axis) for f, axis in zip(e, (-3, -2, -1), strict=True))
    div_h = sum(f.roll(-1, axis) - f for f, axis in zip(h, (-3, -2, -1), strict=True))
    return div_e, div_h


def plane_wave(equation, n, waves, times, *, discrete):
    """E = e cos(k·x − ωt), H = c/(μω) k × e cos(k·x − ωt), k = 2π waves/(n h), at Yee's places.

    On the grid, where differences of waves are sines, k and ω in the amplitudes are
    2/h sin(kh/2) and 2/dt sin(ωdt/2), and sin²(ωdt/2) = C²/(εμ) Σ sin²(kh/2).
    """
    h, dt, c = equation.spacing, equation.time_step, equation.light_speed
    k = 2 * math.pi / (n * h) * torch.tensor(waves, dtype=torch.float64)
    slowness = math.sqrt(equation.permittivity * equation.permeability) / c
    if discrete:
        k_grid = 2 / h * torch.sin(k * h / 2)
        omega_grid = float(k_grid.norm()) / slowness
        omega = 2 / dt * math.asin(omega_grid * dt / 2)
    else:
        k_grid, omega = k, float(k.norm()) / slowness
        omega_grid = omega
    e = torch.linalg.cross(k_grid, torch.tensor([0.3, -0.5, 0.8], dtype=torch.float64))
    e = e / e.norm()
    magnetic = c / (equation.permeability * omega_grid) * torch.linalg.cross(k_grid, e)
    amplitude = torch.cat([e, magnetic])
    cells = torch.stack(torch.meshgrid(*[torch.arange(n)] * 3, indexing="ij"), dim=-1)
    x = h * (cells + PLACES[:, None, None, None])
    t = times[:, None] + dt * DELAYS
    angle = x @ k - omega * t[..., None, None, None]
    return amplitude[:, None, None, None] * torch.cos(angle)


@pytest.mark.parametrize("waves", [(1, 0, 0), (0, 2, 1), (1, -2, 3)])
def test_waves_travel_by_the_dispersion_relation_of_the_grid(waves):
    """A wave that satisfies sin²(ωdt/2) = C²/(εμ) Σ sin²(kh/2) is an exact solution."""
    equation = Maxwell(permittivity=10, permeability=1.5)
    times = steps(equation, 0, 7, 100)
    wave = plane_wave(equation, 12, waves, times, discrete=True)
    u = equation.solve(wave[:1], times)
    torch.testing.assert_close(u[0], wave, rtol=0, atol=1e-12)


def test_converges_to_light_at_second_order():
    """Halving cells and steps quarters the distance to the wave of Maxwell's equations."""
    errors = []
    for n in (8, 16, 32):
        equation = Maxwell(spacing=1 / n, light_speed=1.0, courant=0.5)
        times = steps(equation, 0, 2 * n)
        wave = plane_wave(equation, n, (1, 1, 0), times, discrete=False)
        u = equation.solve(wave[:1], times)
        errors.append(float((u[0, 1] - wave[1]).norm() / wave[1].norm()))
    orders = [math.log2(a / b) for a, b in pairwise(errors)]
    assert orders == pytest.approx([2, 2], abs=0.1)


def test_one_step_is_a_leapfrog_step_of_the_rhs():
    """The compiled step: E moves by dt rhs, then H by dt rhs of the new E."""
    equation = Maxwell(permeability=2.0)
    old = random_state(5, 6, 7, samples=2)
    new = old.clone()
    new[:, :3] += equation.time_step * equation.rhs(new)[:, :3]
    new[:, 3:] += equation.time_step * equation.rhs(new)[:, 3:]
    u = equation.solve(old, steps(equation, 0, 1))
    torch.testing.assert_close(u[:, 0], old, rtol=0, atol=0)
    torch.testing.assert_close(u[:, 1], new, rtol=0, atol=1e-14)


def test_energy_is_constant():
    """ε|E|² at a step, plus μH·H over the half steps about it, keeps its sum."""
    equation = Maxwell(permeability=1.5)
    u = equation.solve(random_state(6, 7, 8), steps(equation, *range(200)))[0]
    electric = equation.permittivity * (u[1:, :3] ** 2).sum(dim=(1, 2, 3, 4))
    magnetic = equation.permeability * (u[1:, 3:] * u[:-1, 3:]).sum(dim=(1, 2, 3, 4))
    energy = electric + magnetic
    torch.testing.assert_close(energy, energy[:1].expand_as(energy), rtol=1e-12, atol=0)


def test_divergence_is_constant():
    """∇ · ∇ × = 0 holds for the differences, so that charges stay as they were."""
    equation = Maxwell()
    u = equation.solve(random_state(6, 7, 8), steps(equation, 0, 100))
    for div in divergences(u):
        torch.testing.assert_close(div[:, 1], div[:, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [(1, 0, 0), (-4, -3, -1), (2, 4, 5)])
def test_shifts_commute_with_solving(shift):
    """Nothing marks the ends of a periodic box, not even for a source that touches them."""
    equation, axes = Maxwell(), (-3, -2, -1)
    start, times = random_state(8, 8, 8), steps(equation, 3, 40)

    def source(x, y, z):
        return PlaneSource((4 + x, 3 + y, 1 + z), (6 + x, 4 + y, 3 + z), "z", period=9)

    u = equation.solve(start, times, [source(0, 0, 0)])
    shifted = equation.solve(start.roll(shift, axes), times, [source(*shift)])
    torch.testing.assert_close(shifted, u.roll(shift, axes), rtol=0, atol=1e-13)


def test_copied_planes_have_a_period_of_one_cell_less():
    """A box of n + 1 cells with copied planes is the periodic box of n cells."""
    equation, times = Maxwell(), steps(Maxwell(), 1, 30)
    start = random_state(5, 6, 7)
    longer = torch.nn.functional.pad(start, (0, 1, 0, 1, 0, 1), mode="circular")
    u = equation.solve(start, times)
    copied = equation.solve(longer, times, boundary="copy")
    torch.testing.assert_close(copied[..., :5, :6, :7], u, rtol=0, atol=0)


def test_open_rhs_sees_nothing_outside():
    """On a box cut from a larger one, every rate is that of the larger one."""
    equation, state = Maxwell(), random_state(9, 9, 9)
    whole = equation.rhs(state)
    cut = equation.rhs(state[..., 1:7, 2:8, 3:9], boundary="open")
    torch.testing.assert_close(cut, whole[..., 2:6, 3:7, 4:8], rtol=0, atol=0)


def test_rhs_is_differentiable():
    """The rates are linear in the state, so that their derivative is the map itself."""
    equation = Maxwell(spacing=1.0, light_speed=1.0)
    state, direction = random_state(4, 4, 4), random_state(4, 4, 4)
    _, tangent = torch.func.jvp(equation.rhs, (state,), (direction,))
    torch.testing.assert_close(tangent, equation.rhs(direction))
    assert torch.autograd.gradcheck(equation.rhs, random_state(2, 2, 2).requires_grad_())


def test_crop_keeps_the_centre():
    """Cropped frames are the centre of whole ones."""
    equation, start, times = Maxwell(), random_state(6, 8, 7), steps(Maxwell(), 0, 5)
    whole = equation.solve(start, times)
    assert torch.equal(equation.solve(start, times, crop=2), whole[..., 2:4, 2:6, 2:5])


def test_later_frames_do_not_depend_on_earlier_ones():
    """Stopping for a frame changes nothing, and float32 times are good enough."""
    equation, start = Maxwell(), random_state(5, 5, 5)
    often = equation.solve(start, steps(equation, *range(0, 451, 25)).float())
    assert torch.equal(often[:, -1:], equation.solve(start, steps(equation, 450)))


@pytest.mark.parametrize("arrays", [np.asarray, torch.Tensor.tolist])
def test_plain_arrays_are_welcome(arrays):
    """Times may be a list or an array, states an array."""
    equation, start, times = Maxwell(), random_state(4, 4, 4), steps(Maxwell(), 0, 3)
    u = equation.solve(start.numpy(), arrays(times))
    assert torch.equal(u, equation.solve(start, times))


def test_time_step_is_that_of_the_published_set():
    """7 × 25 steps take the 1.6682531e-13 s that the survey prints, on cells up to 1.575e-5 m."""
    assert 175 * Maxwell().time_step == pytest.approx(1.6682531e-13, rel=1e-7)
    grid = Maxwell().grid((32, 32, 32))
    assert float(grid.coordinates()[0][-1]) == pytest.approx(1.575e-5)


def test_times_between_steps_are_refused_with_a_way_out():
    """The step that the message proposes divides the first time."""
    equation, start = Maxwell(), torch.zeros(1, 6, 4, 4, 4)
    with pytest.raises(ValueError, match="whole multiples") as error:
        equation.solve(start, [0.0, 1e-14, 2e-14])
    courant = float(str(error.value).split("courant=")[1].split()[0])
    assert courant <= equation.courant
    assert replace(equation, courant=courant).solve(start, [0.0, 1e-14, 2e-14]).shape[1] == 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: Maxwell(courant=1.83), r"1\.8257"),
        (lambda: Maxwell(permittivity=-1.0), "permittivity"),
        (lambda: Maxwell().solve(torch.zeros(1, 6, 4, 4, 4), [1.0, 0.0]), "increasing"),
        (lambda: Maxwell().solve(torch.zeros(1, 3, 4, 4, 4), [0.0]), "sample, 6"),
        (lambda: Maxwell().solve(torch.zeros(1, 6, 4, 4, 4), [0.0], crop=2), "crop"),
        (lambda: Maxwell().rhs(torch.zeros(1, 6, 4, 4, 4), "copy"), "open"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_are_named(wrong, message):
    """Each message says what is wrong."""
    with pytest.raises(ValueError, match=message):
        wrong()


def test_stable_up_to_the_courant_limit():
    """Just below √(εμ/3) the shortest waves stay bounded."""
    equation = Maxwell(courant=0.999 * math.sqrt(10 / 3))
    u = equation.solve(random_state(4, 4, 4), steps(equation, 2000))
    assert u.abs().max() < 1e3
