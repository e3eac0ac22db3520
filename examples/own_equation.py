# %% [markdown]
# # Your own equation: Kuramoto–Sivashinsky as a plugin
#
# $$ \partial_t u = -\partial_x^2 u - \nu\,\partial_x^4 u - \frac{1}{2}\,\partial_x u^2 $$
#
# Flame fronts, chaotic in space and time. This file is a *plugin*: a Python file that registers
# something. Everything then works with it: training, resuming, evaluation, studies, reports.

# %%
from dataclasses import dataclass, field
from typing import ClassVar

import sfo
from sfo.data.benchmarks import Scale, register
from sfo.data.catalogue.random_start import GaussianStart
from sfo.pdes.base import Semilinear
from sfo.plot import picture

samples = 200
epochs = 20

# %% [markdown]
# ## The equation
#
# A periodic equation is a frozen dataclass with a `linear` part, which the solver takes exactly, a
# `reaction`, which is any function of values and derivatives, and maybe an `outer` operator on it.
# `d(u, 4)` is the fourth derivative. Solver, residual and linearisation follow from these.


# %%
@dataclass(frozen=True)
class Flame(Semilinear):
    nu: float = 1.0
    lower: float = 0.0
    upper: float = 32.0
    max_step: float = 0.05

    dealias: ClassVar[float] = 2 / 3

    def linear(self, u, d):
        return -d(u, 2) - self.nu * d(u, 4)

    def reaction(self, u, d):
        return u**2 / 2

    def outer(self, v, d):
        return -d(v, 1)


# %% [markdown]
# ## The benchmark
#
# Random initial fields, a duration, and sizes: that is all that data need.


# %%
@register
@dataclass(frozen=True)
class FlameBenchmark(GaussianStart):
    name: ClassVar[str] = "flame"
    title: ClassVar[str] = "A flame front"
    layout: ClassVar = "tensor"
    duration: ClassVar[float] = 6.0
    scales: ClassVar = {"desk": Scale(samples=400, n=128, stored=2, frames=21)}
    pde: Flame = field(default_factory=Flame)
    tau: float = 0.5


# %%
if __name__ == "__main__":
    data = sfo.load_benchmark("flame", samples=samples, split="all")
    picture(data, samples=3, title="u(x, t)").savefig("flames.png", dpi=80)
    run = sfo.fit(data.a, data.u, grid=data.grid, times=data.times, epochs=epochs, out="runs/flame")
    print(f"error on samples kept aside: {run.errors.percent:.1f} %")
    run.plot("predictions.png")

# %% [markdown]
# On the command line: `sfo train --benchmark flame --plugin own_equation.py --preset recommended`.
# Models, bases, metrics and studies are registered alike: [own model](../guides/own_model.md).
