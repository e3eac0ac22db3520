"""Maxwell's equations: the equations, Yee's leapfrog, and the published sources."""

from sfo.pdes.maxwell.equation import Maxwell, PlaneSource

__all__ = ["Maxwell", "PlaneSource"]
