# %% [markdown]
# # Your own arrays: Darcy flow
#
# $$ -\nabla\cdot(k\,\nabla u) = 1 \text{ on the unit square}, \qquad u = 0 \text{ on its sides} $$
#
# You have two arrays from somewhere: inputs k and solutions u. Here they come from a solver of
# twenty lines, so that the page stands alone; replace it by your own. The map to learn is k → u.

# %%
import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve

import sfo

samples = 200
epochs = 12


def coefficient(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two values, 3 and 12, by the sign of a smooth random field."""
    waves = np.arange(8)
    amplitude = rng.normal(size=(8, 8)) / (1 + waves[:, None] ** 2 + waves**2)
    cosines = np.cos(np.pi * waves[:, None] * (np.arange(n) + 0.5) / n)
    return np.where(cosines.T @ amplitude @ cosines > 0, 12.0, 3.0)


def pressure(k: np.ndarray) -> np.ndarray:
    """Finite volumes: harmonic means of k between neighbours, u = 0 half a cell outside."""
    n = len(k)
    matrix = sparse.lil_matrix((n * n, n * n))
    for i in range(n):
        for j in range(n):
            for p, q in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                inside = 0 <= p < n and 0 <= q < n
                face = 2 / (1 / k[i, j] + 1 / k[p, q]) if inside else 2 * k[i, j]
                matrix[i * n + j, i * n + j] += face
                if inside:
                    matrix[i * n + j, p * n + q] = -face
    return spsolve(matrix.tocsr(), np.full(n * n, 1 / n**2)).reshape(n, n)


# %% [markdown]
# ## Two arrays
#
# The layout is `(sample, channel, *grid)`, on one, two, three or more axes. Arrays may also be
# memory maps or HDF5 datasets; they are then read batch by batch.

# %%
rng = np.random.default_rng(0)
fields = [coefficient(rng, n=32) for _ in range(samples)]
a = np.stack(fields)[:, None]
u = np.stack([pressure(k) for k in fields])[:, None]
print("a", a.shape, "u", u.shape)

# %% [markdown]
# ## A run
#
# What you do not say follows from the data: normalisation, batch size, learning rate, epochs.
# Stop it or kill it: the same call continues, and ends with the same bits.

# %%
run = sfo.fit(a, u, names=("pressure",), epochs=epochs, out="runs/darcy")
print(f"error on samples kept aside: {run.errors.percent:.2f} %")
run.plot("darcy.png")

# %% [markdown]
# Later, or elsewhere, the folder is enough: `sfo.load_run("runs/darcy").predict(a)`. The same on
# the command line: `np.savez("mine.npz", a=a, u=u)`, then `sfo train --data mine.npz`.
