"""Your own arrays: Darcy flow at 32², from two arrays to a trained model and a picture.

    −∇ · (k ∇u) = 1  on the unit square,    u = 0 on its sides,    k = 3 or 12, in random patches

The map to learn is k → u. Half a minute on one core at these sizes; stop it or kill it, the same
command goes on.

    python examples/own_data.py --samples 500 --epochs 40
"""

import argparse

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import spsolve

import sfo


def coefficient(rng: np.random.Generator, n: int) -> np.ndarray:
    """Two values, by the sign of a smooth random field."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=24, help="how many problems to solve")
    parser.add_argument("--epochs", type=int, default=2, help="passes over the training samples")
    parser.add_argument("--out", default="runs/darcy", help="the run's folder")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    k = [coefficient(rng, n=32) for _ in range(options.samples)]
    a = np.stack(k)[:, None]  # (sample, channel, *grid)
    u = np.stack([pressure(field) for field in k])[:, None]

    run = sfo.fit(a, u, names=("pressure",), epochs=options.epochs, out=options.out)
    run.plot("darcy.png")
    print(f"Error on samples that were held out: {run.errors.percent:.2f} %; see darcy.png")
    model = sfo.SFO.from_pretrained(options.out)  # or sfo.load_run(options.out), elsewhere
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")


if __name__ == "__main__":
    main()
