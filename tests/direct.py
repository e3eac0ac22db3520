"""The slow obvious versions that the fast paths stand for."""

import itertools

import torch


def direct_sum(v, theta, phi):
    """Σₗ Θₗ Σⱼ φₗ(xᵢ − xⱼ) v(xⱼ) on a periodic grid, term by term."""
    shape = phi.shape[1:]
    points = list(itertools.product(*map(range, shape)))
    out = v.new_zeros(v.shape[0], theta.shape[1], *shape)
    for x in points:
        for y in points:
            offset = tuple((i - j) % n for i, j, n in zip(x, y, shape, strict=True))
            kernel = torch.einsum("lij,l->ij", theta, phi[(slice(None), *offset)])
            out[(..., *x)] += v[(..., *y)] @ kernel.T
    return out


def toeplitz(kernel, n, boundary):
    """The n × n matrix of a convolution with κ(t), a function of the signed offset t."""
    matrix = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        for t in range(-(n - 1), n):
            source = i - t
            if boundary == "reflect":
                source = source if source >= 0 else -1 - source
                source = source if source < n else 2 * n - 1 - source
            if 0 <= source < n:
                matrix[i, source] += kernel(t)
    return matrix
