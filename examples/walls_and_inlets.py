# %% [markdown]
# # Walls and inlets: boundary, support, gate
#
# $$ \partial_t u = \partial_x^2 u, \qquad u(0, t) = c, \qquad \partial_x u(1, t) = 0 $$
#
# Heat on a line with an inlet on the left and a closed wall on the right. A convolution needs
# values beyond the ends of the domain: which? SFO has four answers, `boundary`.

# %%
import numpy as np
from matplotlib.figure import Figure

import sfo

samples = 200
epochs = 15

# %% [markdown]
# ## Data with a closed form
#
# Both end conditions hold for the waves sin((k + ½) π x), each of which decays at its own rate.
# The input has two channels: the initial state and the constant c.

# %%
rng = np.random.default_rng(0)
x = (np.arange(64) + 0.5) / 64
rates = (np.arange(20) + 0.5) * np.pi
waves = np.sin(rates[:, None] * x)
weights = rng.normal(size=(samples, 20)) / (1 + np.arange(20))
c = rng.normal(size=(samples, 1))
times = np.linspace(0, 0.1, 6)
frames = [c + weights * np.exp(-(rates**2) * t) @ waves for t in times]
u = np.stack(frames, axis=1)
a = np.stack([u[:, 0], np.broadcast_to(c, u[:, 0].shape)], axis=1)
grid = sfo.Grid((64,), (0.0,), (1.0,), offset=0.5, periodic=False)
print("a", a.shape, "u", u.shape)

# %% [markdown]
# ## Four boundaries
#
# `circular`: the other end of the domain; `zero`: nothing; `reflect`: the mirror image; `learned`:
# a learned multiple of the mirror image, per channel and wall, recommended where there are walls.
# `support="two_sided"` lets a point see both of its sides, and `gate` makes the kernel depend
# on the input; both are part of the recommended settings.

# %%
changes = {name: dict(boundary=name) for name in ("circular", "zero", "reflect", "learned")}
changes["one_sided"] = dict(support="one_sided")
changes["no gate"] = dict(gate=False)
runs = {}
for name, change in changes.items():
    out = f"runs/walls/{name}"
    runs[name] = sfo.fit(
        a, u, grid=grid, times=times, settings=change, epochs=epochs, batch_size=8, out=out
    )
    print(f"{name:10s} {runs[name].errors.percent:6.2f} %")

# %% [markdown]
# ## Where the error sits

# %%
figure = Figure(figsize=(7, 3), layout="constrained")
axes = figure.subplots()
for name in ("circular", "zero", "reflect", "learned"):
    size = np.abs(runs[name].predict(a) - u).mean(axis=(0, 1))
    axes.semilogy(x, size, label=name)
axes.set(xlabel="x (inlet at 0, wall at 1)", ylabel="mean |error|")
axes.legend(frameon=False, ncols=4)
figure.savefig("walls.png", dpi=140)

# %% [markdown]
# Heat conduction is linear and the same everywhere, so that the gate gains nothing here; which
# boundary and support fit does matter. The guide:
# [boundaries and supports](../guides/boundaries.md).
