# %% [markdown]
# # Train once, use on any grid
#
# A neural operator maps functions, so it should not matter on how many points a function is given.
# Does it? Train on 64 points, then ask on 32, 128 and 256, without training again.

# %%
import torch
from matplotlib.figure import Figure

import sfo

samples = 200
epochs = 10

# %% [markdown]
# ## One problem on four grids
#
# The data are stored on 256 points. Every second, fourth or eighth point of them is the same
# solution on a coarser grid.

# %%
train = sfo.load_benchmark("allen_cahn", samples=samples, split="train", time_stride=10)
test = sfo.load_benchmark("allen_cahn", samples=samples, split="test", time_stride=10)
coarse = train.grid.subsample(4)
print("trained on", coarse.shape, "of", train.grid.shape, "points")

# %%
run = sfo.fit(
    train.a[..., ::4],
    train.u[..., ::4],
    grid=coarse,
    times=train.times,
    epochs=epochs,
    out="runs/any_grid",
)

# %% [markdown]
# ## Two ways to another grid
#
# The paper builds its modes again for every grid, `transfer="rebuild"`: there they are other
# functions. `transfer="restrict"`, part of the recommended settings, keeps the kernel that was
# learned. The weights are the same, so a trained model can be switched.

# %%
grids = (32, 64, 128, 256)
errors = {}
for transfer in ("restrict", "rebuild"):
    run.model.modes.transfer = transfer
    for n in grids:
        a, u = test.a[..., :: 256 // n], test.u[..., :: 256 // n]
        difference = (run.predict(a) - u).flatten(1).norm(dim=1)
        errors[transfer, n] = 100 * (difference / u.flatten(1).norm(dim=1)).mean().item()
        print(f"{transfer:8s} {n:4d} points: {errors[transfer, n]:6.2f} %")

# %%
figure = Figure(figsize=(7, 3), layout="constrained")
left, right = figure.subplots(1, 2)
for transfer in ("restrict", "rebuild"):
    left.plot(grids, [errors[transfer, n] for n in grids], "o-", label=transfer)
left.set(xscale="log", xlabel="points", ylabel="error, %", xticks=grids, ylim=0)
left.set_xticklabels(grids)
left.minorticks_off()
left.legend(frameon=False)
run.model.modes.transfer = "restrict"
x = torch.linspace(-1, 1, 257)[:-1]
for n, style in ((256, "-"), (64, "o")):
    u = run.predict(test.a[:1, :, :: 256 // n])[0, -1]
    right.plot(x[:: 256 // n], u, style, ms=3, lw=1, label=f"{n} points")
right.set(xlabel="x", ylabel="u at the last time")
right.legend()
figure.savefig("grids.png", dpi=140)

# %% [markdown]
# On a finer grid the error stays what it was; on a coarser one the data themselves have lost what
# lies between the points. [Other grids](../guides/other_grids.md) has the measurements.
