"""A benchmark that takes no time: u(x, t) = c e^(−t) cos x, for the tests of files."""

import time
from dataclasses import dataclass
from typing import ClassVar

import torch

from sfo.data.benchmarks import Benchmark, Scale, sample_rng
from sfo.grid import Grid


@dataclass(frozen=True)
class Tiny(Benchmark):
    name: ClassVar[str] = "tiny"
    paper_name: ClassVar[str] = "allen_cahn"
    title: ClassVar[str] = "Tiny"
    layout: ClassVar[str] = "tensor"
    chunk: ClassVar[int] = 3
    scales: ClassVar[dict] = {"smoke": Scale(samples=10, n=16, frames=4, stored=2)}
    seconds: float = 0.0

    def grid(self, scale):
        return Grid((scale.n,), (-1.0,), (1.0,))

    def solve(self, seed, ids, scale):
        time.sleep(self.seconds)
        x = self.grid(scale).coordinates()[0]
        t = torch.tensor(self.times(scale), dtype=torch.float64)
        c = torch.tensor([sample_rng(seed, i).uniform() for i in ids], dtype=torch.float64)
        return c[:, None, None, None] * torch.exp(-t)[:, None, None] * torch.cos(x), None


@dataclass(frozen=True)
class TinyGroups(Tiny):
    """The same in 2D with a static field, one group a sample."""

    name: ClassVar[str] = "tiny_groups"
    layout: ClassVar[str] = "groups"
    names: ClassVar[tuple] = ("h", "v")
    static_names: ClassVar[tuple] = ("b",)
    inputs: ClassVar[tuple] = ("h", "b")
    stores_maxima: ClassVar[bool] = True
    scales: ClassVar[dict] = {"smoke": Scale(samples=5, n=4, frames=3)}

    def grid(self, scale):
        return Grid((scale.n, scale.n), (0.0, 0.0), (1.0, 1.0), offset=0.5, periodic=False)

    def solve(self, seed, ids, scale):
        shape = (scale.frames, 2, scale.n, scale.n)
        values = [sample_rng(seed, i).normal(size=shape) for i in ids]
        static = [sample_rng(seed + 1, i).normal(size=(1, *shape[2:])) for i in ids]
        stack = [torch.stack([torch.from_numpy(v) for v in rows]) for rows in (values, static)]
        return stack[0], stack[1]


@dataclass(frozen=True)
class Failing(Tiny):
    """Divides by zero at the second chunk, when the first is done."""

    name: ClassVar[str] = "failing"

    def solve(self, seed, ids, scale):
        if 3 in ids:
            time.sleep(1)
            raise ZeroDivisionError("sample 3")
        return super().solve(seed, ids, scale)
