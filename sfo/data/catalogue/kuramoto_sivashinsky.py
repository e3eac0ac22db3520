"""The benchmark `kuramoto_sivashinsky`: two Lyapunov times of chaos on a line."""

from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

from sfo.data.benchmarks import Scale, register
from sfo.data.catalogue.random_start import GaussianStart
from sfo.data.hdf5 import Layout
from sfo.grid import Grid
from sfo.pdes import KuramotoSivashinsky


@register
@dataclass(frozen=True)
class KuramotoSivashinskyBenchmark(GaussianStart):
    __doc__ = f"""The 1D Kuramoto–Sivashinsky equation on its attractor. {GaussianStart.__doc__}
    transient: How long a Gaussian field evolves before t = 0.
    """
    name: ClassVar[str] = "kuramoto_sivashinsky"
    title: ClassVar[str] = "1D Kuramoto–Sivashinsky"
    layout: ClassVar[Layout] = "tensor"
    duration: ClassVar[float] = 20.0
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=256, stored=4, frames=11),
        "desk": Scale(samples=625, n=1024, stored=4, frames=101),
        "paper": Scale(samples=2560, n=1024, stored=4, frames=101),
    }
    pde: KuramotoSivashinsky = field(default_factory=KuramotoSivashinsky)
    sigma: float = 0.1
    tau: float = 0.5
    alpha: float = 2.0
    transient: float = 50.0

    def initial(self, seed: int, index: int, grid: Grid) -> Tensor:
        start = super().initial(seed, index, grid)
        if not self.transient:
            return start
        # Which state of the attractor comes out does not matter, so longer steps will do.
        return self.pde.solve(start[None], [0.0, self.transient], max_step=0.1)[0, 1]
