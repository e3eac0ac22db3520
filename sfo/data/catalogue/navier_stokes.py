"""The benchmark `navier_stokes`: 2D forced flow on a torus, as the FNO paper has it."""

from dataclasses import dataclass, field
from typing import ClassVar

from sfo.data.benchmarks import Scale, register
from sfo.data.catalogue.random_start import GaussianStart
from sfo.data.hdf5 import Layout
from sfo.pdes import NavierStokes


@register
@dataclass(frozen=True)
class NavierStokesBenchmark(GaussianStart):
    __doc__ = f"The 2D Navier–Stokes equations for vorticity, forced. {GaussianStart.__doc__}"
    name: ClassVar[str] = "navier_stokes"
    title: ClassVar[str] = "2D Navier–Stokes"
    layout: ClassVar[Layout] = "groups"
    shift_invariant: ClassVar[bool] = False  # The forcing is fixed in place.
    names: ClassVar[tuple[str, ...]] = NavierStokes.names
    inputs: ClassVar[tuple[str, ...]] = NavierStokes.names
    duration: ClassVar[float] = 20.0
    chunk: ClassVar[int] = 2
    scales: ClassVar[dict[str, Scale]] = {
        "smoke": Scale(samples=24, n=32, stored=2, frames=6),
        "desk": Scale(samples=250, n=64, frames=21),
        "paper": Scale(samples=1200, n=256, stored=4, frames=21),
    }
    pde: NavierStokes = field(default_factory=NavierStokes)
    sigma: float = 7**1.5
    tau: float = 7.0
    alpha: float = 2.5
