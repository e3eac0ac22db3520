"""The periodic solvers against exponax, an independent implementation in JAX."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from sfo.pdes import (
    AllenCahn,
    Burgers,
    CahnHilliard,
    DiffusionReaction,
    KuramotoSivashinsky,
    NavierStokes,
)
from sfo.pdes.initial import normalised_waves, sum_of_waves
from sfo.registry import BENCHMARKS

pytestmark = pytest.mark.peers

ALLEN_CAHN = dict(diffusivity=1e-4, first_order_coefficient=5.0, third_order_coefficient=-5.0)
FISHER = dict(diffusivity=0.5, reactivity=1.0)
CAHN_HILLIARD = dict(
    diffusivity=1e-2, gamma=1e-4, first_order_coefficient=-1.0, third_order_coefficient=1.0
)


BURGERS = dict(diffusivity=0.01, conservative=True)
KURAMOTO_SIVASHINSKY = dict(conservative=True)
VORTICITY = dict(diffusivity=1e-3)
KOLMOGOROV = dict(diffusivity=1e-3, drag=0.0, injection_mode=2, injection_scale=0.05)


@dataclass(frozen=True)
class KolmogorovFlow(NavierStokes):
    """Navier–Stokes with exponax's forcing; its vorticity has the opposite sign."""

    def source(self, grid):
        y = grid.mesh()[1]
        return self.forcing * torch.cos(4 * math.pi * y)


PERIODIC = [
    (Burgers(), "Burgers", BURGERS, "burgers", 1),
    (
        KuramotoSivashinsky(),
        "KuramotoSivashinskyConservative",
        KURAMOTO_SIVASHINSKY,
        "kuramoto_sivashinsky",
        1,
    ),
    (NavierStokes(forcing=0.0), "NavierStokesVorticity", VORTICITY, "navier_stokes", -1),
    (
        KolmogorovFlow(forcing=0.1),
        "KolmogorovFlowVorticity",
        KOLMOGOROV,
        "navier_stokes",
        -1,
    ),
]


def exponax_steps(peer, constants, start, length, step, n_steps, dealiasing_fraction=1.0):
    """The field after `n_steps` steps of an exponax stepper in float64."""
    jax = pytest.importorskip("jax")
    exponax = pytest.importorskip("exponax")
    with jax.enable_x64(True):
        where = exponax.stepper if hasattr(exponax.stepper, peer) else exponax.stepper.reaction
        stepper = getattr(where, peer)(
            start.ndim - 1,
            length,
            start.shape[-1],
            step,
            order=4,
            dealiasing_fraction=dealiasing_fraction,
            **constants,
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


@pytest.mark.parametrize(("pde", "peer", "constants", "benchmark", "sign"), PERIODIC)
def test_exponax_agrees_on_transport(pde, peer, constants, benchmark, sign):
    """On the benchmarks' initial fields, ours with default steps and theirs with their own."""
    n = 1024 if pde.n_dim == 1 else 64
    start = BENCHMARKS[benchmark].initial(0, 0, pde.grid(n))
    step, n_steps = {
        "burgers": (5e-4, 600),
        "kuramoto_sivashinsky": (0.0125, 800),
        "navier_stokes": (0.02, 100),
    }[benchmark]
    theirs = sign * exponax_steps(peer, constants, sign * start, pde.length, step, n_steps, 2 / 3)
    ours = pde.solve(start[None], [0.0, step * n_steps])[0, -1]
    assert distance(ours, theirs) < (1e-5 if benchmark == "kuramoto_sivashinsky" else 1e-6)


@pytest.mark.parametrize(("pde", "peer", "constants", "benchmark", "sign"), PERIODIC)
def test_exponax_steps_alike_in_transport(pde, peer, constants, benchmark, sign, monkeypatch):
    """The same method at the same steps, on few waves and without dealiasing: to round-off."""
    monkeypatch.setattr(type(pde), "dealias", 1.0)
    grid = pde.grid(256 if pde.n_dim == 1 else 48)
    phases = [2 * math.pi / pde.length * x for x in grid.mesh()]
    start = torch.sin(2 * phases[0] + 1) + 0.5 * torch.cos(phases[-1] + 0.5 * torch.sin(phases[0]))
    step = 1e-3 if benchmark == "burgers" else 0.02
    theirs = sign * exponax_steps(peer, constants, sign * start[None], pde.length, step, 50)
    ours = pde.solve(start[None, None], [0.0, 50 * step], max_step=step)[0, -1]
    assert distance(ours, theirs) < 1e-11
