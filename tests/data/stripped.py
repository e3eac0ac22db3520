"""Small data files, and the same without our header, as others would have written them."""

import shutil

import h5py

from sfo.data.generate import generate
from sfo.registry import BENCHMARKS

# Steps as long as the equation bears: what is tested is the file.
FASTER = {
    "allen_cahn": dict(max_step=0.01),
    "burgers": dict(max_step=0.01),
    "cahn_hilliard": dict(max_step=4e-3),
    "kuramoto_sivashinsky": dict(max_step=0.1, transient=5.0),
    "navier_stokes": dict(max_step=0.2),
}


def make(folder, name, samples=6, scale="smoke", **options):
    """A benchmark's file."""
    benchmark = BENCHMARKS[name].with_options(**{**FASTER.get(name, {}), **options})
    path = folder / f"{name}.hdf5"
    return generate(benchmark, path, scale=scale, samples=samples, workers=1)


def strip(path, to):
    """A copy without header and checksums."""
    shutil.copy(path, to)
    with h5py.File(to, "a") as file:
        del file.attrs["sfo"]
        if "sha256" in file:
            del file["sha256"]
        for group in (g for g in file.values() if isinstance(g, h5py.Group)):
            del group.attrs["sha256"], group.attrs["config"]
    return to
