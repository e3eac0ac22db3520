"""The benchmark `burgers`: the 1D viscous Burgers equation from Gaussian random fields."""

from dataclasses import dataclass, field
from typing import ClassVar

from sfo.data.benchmarks import Scale, register
from sfo.data.catalogue.random_start import GaussianStart
from sfo.data.hdf5 import Layout
from sfo.pdes import Burgers


@register
@dataclass(frozen=True)
class BurgersBenchmark(GaussianStart):
    __doc__ = (
        f"The 1D viscous Burgers equation from Gaussian random fields. {GaussianStart.__doc__}"
    )
    name: ClassVar[str] = "burgers"
    title: ClassVar[str] = "1D Burgers"
    layout: ClassVar[Layout] = "tensor"
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=256, stored=4, frames=11),
        "desk": Scale(samples=625, n=1024, stored=4, frames=101),
        "paper": Scale(samples=1200, n=8192, stored=8, stride=4, frames=101),
    }
    pde: Burgers = field(default_factory=Burgers)
    sigma: float = 25.0
    tau: float = 5.0
    alpha: float = 2.0
