"""The periodic solvers against exponax, an independent implementation in JAX."""

import numpy as np
import pytest
import torch

from sfo.pdes import AllenCahn, CahnHilliard, DiffusionReaction
from sfo.pdes.initial import normalised_waves, sum_of_waves

pytestmark = pytest.mark.peers

ALLEN_CAHN = dict(diffusivity=1e-4, first_order_coefficient=5.0, third_order_coefficient=-5.0)
FISHER = dict(diffusivity=0.5, reactivity=1.0)
CAHN_HILLIARD = dict(
    diffusivity=1e-2, gamma=1e-4, first_order_coefficient=-1.0, third_order_coefficient=1.0
)


def exponax_steps(peer, constants, start, length, step, n_steps):
    """The field after `n_steps` steps of an exponax stepper in float64, without dealiasing."""
    jax = pytest.importorskip("jax")
    exponax = pytest.importorskip("exponax")
    with jax.enable_x64(True):
        stepper = getattr(exponax.stepper.reaction, peer)(
            1, length, start.shape[-1], step, order=4, dealiasing_fraction=1.0, **constants
        )
        run = jax.jit(exponax.repeat(stepper, n_steps))
        return torch.from_numpy(np.array(run(jax.numpy.asarray(start.numpy()))))


def distance(u, v):
    return ((u - v).norm() / v.norm()).item()


@pytest.mark.parametrize(
    ("pde", "peer", "constants", "draw", "step", "n_steps"),
    [
        (AllenCahn(), "AllenCahn", ALLEN_CAHN, sum_of_waves, 2e-3, 500),
        (DiffusionReaction(), "FisherKPP", FISHER, normalised_waves, 1e-4, 1000),
        (CahnHilliard(), "CahnHilliard", CAHN_HILLIARD, sum_of_waves, 2.5e-4, 800),
    ],
)
def test_exponax_agrees(pde, peer, constants, draw, step, n_steps):
    """At 1,024 points, with our own steps and with theirs."""
    start = draw(np.random.default_rng(0), pde.grid(1024))
    theirs = exponax_steps(peer, constants, start, pde.length, step, n_steps)
    ours = pde.solve(start[None], [0.0, step * n_steps])[0, -1]
    assert distance(ours, theirs) < 1e-6


@pytest.mark.parametrize(
    ("pde", "peer", "constants"),
    [
        (AllenCahn(), "AllenCahn", ALLEN_CAHN),
        (DiffusionReaction(), "FisherKPP", FISHER),
        (CahnHilliard(), "CahnHilliard", CAHN_HILLIARD),
    ],
)
def test_exponax_steps_alike(pde, peer, constants, monkeypatch):
    """The same method at the same steps, on a field without the shortest wave: to round-off."""
    monkeypatch.setattr(type(pde), "warm_up", 0)
    x = pde.grid(256).coordinates()[0]
    start = (0.5 + 0.3 * torch.sin(2 * torch.pi * x))[None]
    step, n_steps = 1e-3, 50
    theirs = exponax_steps(peer, constants, start, pde.length, step, n_steps)
    ours = pde.solve(start[None], [0.0, step * n_steps], max_step=step)[0, -1]
    assert distance(ours, theirs) < 1e-12
