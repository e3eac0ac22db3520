# %% [markdown]
# # From a stencil to a solver, without training
#
# $$ -D\,u'' + R\,u = f \text{ on } (0, 1), \qquad u(0), u(1) \text{ given} $$
#
# Two coupled species. The inverse of a stable stencil is a sum of decaying exponentials, and
# exponentials need few modes of the Hilbert matrix. So the matrices Θ of an SFO layer can be
# written down: a solver with a certified error, and no training ([theory](../theory.md)).

# %%
import torch
from matplotlib.figure import Figure

from sfo.theory import ConstructedSolver, Stencil, modes_needed, powers, steady_diffusion_reaction

n = 255

# %% [markdown]
# ## One exponential
#
# The stencil (−1, 2.5, −1) has the inverse G[t] = ⅔ · 2^−|t|, in closed form. How many modes hold
# 0.9^t on n points to a given accuracy? The count grows by some three modes per digit.

# %%
print("G[0], G[1], G[2] =", [round(float(g), 4) for g in Stencil(2.5, -1.0).green([0, 1, 2])])
for digits in (2, 4, 6, 8):
    print(f"1e-{digits}: {modes_needed(powers(0.9, n), eps=10.0**-digits)} modes")

# %% [markdown]
# ## A coupled problem
#
# Two species that diffuse into each other and react, with a source and given values at both ends.

# %%
diffusion = torch.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=torch.float64)
reaction = 3 * diffusion @ diffusion + 2 * torch.eye(2, dtype=torch.float64)
x = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
f = torch.stack([1 + torch.sin(9 * x), torch.cos(5 * x)], dim=1)
left, right = torch.tensor([[0.5, 1.0], [-1.0, 0.2]], dtype=torch.float64)
problem = steady_diffusion_reaction(diffusion, reaction, f, left, right)
direct = problem.solve()

# %% [markdown]
# ## A layer for every accuracy
#
# `certified` is proven before anything is solved; the error is measured against a direct solve.

# %%
print("  eps     modes   certified   largest error")
rows = []
for digits in range(1, 9):
    solver = ConstructedSolver(problem.stencil, n, eps=10.0**-digits)
    error = float((solver.solve(problem) - direct).abs().max())
    rows.append((solver.n_modes, solver.certified, error))
    print(f"  1e-{digits:02d}   {solver.n_modes:5d}   {solver.certified:9.1e}   {error:.1e}")

# %%
figure = Figure(figsize=(7, 3), layout="constrained")
solution, decay = figure.subplots(1, 2)
solution.plot(x, direct, lw=1.5)
solution.set(xlabel="x", title="the two species")
decay.semilogy(*zip(*[(r[0], r[1]) for r in rows], strict=True), "--", label="certified")
decay.semilogy(*zip(*[(r[0], r[2]) for r in rows], strict=True), "o-", label="largest error")
decay.set(xlabel="modes")
decay.legend(frameon=False)
figure.savefig("solver.png", dpi=140)
