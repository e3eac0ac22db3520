# %% [markdown]
# # Your first operator in ten minutes
#
# An operator maps a function to a function: here the state of an Allen–Cahn mixture at t = 0 to
# its states at 26 later times. You make data from the equation, train a network on them, and look
# at what it does on states that it has never seen.
#
# Two numbers decide how long this takes. With these, half a minute of one core.

# %%
import sfo
from sfo.plot import picture

samples = 200
epochs = 10

# %% [markdown]
# ## Data
#
# A *benchmark* is an equation with a solver and random initial states. Its file is made on first
# use and kept. `a` holds the inputs and `u` the solutions, both `(sample, channel, *grid)`; the
# frames of a solution are its channels.

# %%
data = sfo.load_benchmark("allen_cahn", samples=samples, split="all", time_stride=4)
print("inputs", tuple(data.a.shape), "solutions", tuple(data.u.shape))
picture(data, samples=4).savefig("data.png", dpi=80)

# %% [markdown]
# ## Training
#
# `sfo.fit` takes the arrays and what is known about them: where the points lie, that the line is
# periodic (both in `grid`), and the times of the frames. Four fifths of the samples train, a tenth
# select the best epoch, a tenth are kept aside for the error that you read here.

# %%
run = sfo.fit(data.a, data.u, grid=data.grid, times=data.times, epochs=epochs, out="runs/first")
print(f"{run.record.parameters:,} parameters")
print(f"error on samples kept aside: {run.errors.percent:.2f} %")

# %% [markdown]
# The error is the mean over samples of ‖prediction − truth‖ / ‖truth‖. The picture has truth,
# prediction and their difference for the best, the median and the worst sample; time runs upwards.

# %%
run.plot("predictions.png")

# %% [markdown]
# ## Using it
#
# `predict` takes new inputs. The network itself is a plain `nn.Module`; saved, it is a folder with
# a JSON file and safetensors. The run's folder is enough to get all of it back.

# %%
u = run.predict(data.a[:3])
print("predicted", tuple(u.shape))

model = sfo.SFO.from_pretrained("runs/first")
model.save_pretrained("my_operator")
again = sfo.load_run("runs/first")
print(f"from its folder: {again.errors.percent:.2f} %")

# %% [markdown]
# Next: [your own arrays](own_arrays.md), or the same on the command line, with the whole data set:
# `sfo train --benchmark allen_cahn --preset recommended`.
