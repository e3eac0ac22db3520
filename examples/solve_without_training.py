"""Solve a coupled diffusion–reaction problem with an SFO layer that was never trained.

    −D u″ + R u = f  on (0, 1),    u(0) and u(1) given,    two coupled species

The theory gives the kernel of the inverse in closed form and the number of modes that hold it
to a wanted accuracy, so the layer's matrices Θ can be written down. Under a second on one core.

    python examples/solve_without_training.py --n 255
"""

import argparse

import torch

from sfo.theory import ConstructedSolver, steady_diffusion_reaction


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=255, help="interior grid points")
    n = parser.parse_args().n

    diffusion = torch.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=torch.float64)
    reaction = 3 * diffusion @ diffusion + 2 * torch.eye(2, dtype=torch.float64)
    x = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
    f = torch.stack([1 + torch.sin(9 * x), torch.cos(5 * x)], dim=1)
    left, right = torch.tensor([[0.5, 1.0], [-1.0, 0.2]], dtype=torch.float64)
    problem = steady_diffusion_reaction(diffusion, reaction, f, left, right)
    direct = problem.solve()

    print(f"{problem.stencil}, {n} points")
    print("  eps     modes   certified   largest error")
    for digits in range(1, 9):
        solver = ConstructedSolver(problem.stencil, n, eps=10.0**-digits)
        error = (solver.solve(problem) - direct).abs().max()
        print(f"  1e-{digits:02d}   {solver.n_modes:5d}   {solver.certified:9.1e}   {error:.1e}")


if __name__ == "__main__":
    main()
