"""The registered benchmarks, one line each: a new one is a file here, its line, and its card."""

from sfo.data.catalogue.burgers import BurgersBenchmark
from sfo.data.catalogue.darcy import DarcyBenchmark
from sfo.data.catalogue.kuramoto_sivashinsky import KuramotoSivashinskyBenchmark
from sfo.data.catalogue.navier_stokes import NavierStokesBenchmark
from sfo.data.catalogue.paper import (
    AllenCahnBenchmark,
    CahnHilliardBenchmark,
    DiffusionReactionBenchmark,
    DiffusionSorptionBenchmark,
    MaxwellBenchmark,
    PublishedDiffusionReaction,
    PublishedDiffusionSorption,
    PublishedShallowWater,
    ShallowWaterBenchmark,
)

__all__ = [
    "AllenCahnBenchmark",
    "BurgersBenchmark",
    "CahnHilliardBenchmark",
    "DarcyBenchmark",
    "DiffusionReactionBenchmark",
    "DiffusionSorptionBenchmark",
    "KuramotoSivashinskyBenchmark",
    "MaxwellBenchmark",
    "NavierStokesBenchmark",
    "PublishedDiffusionReaction",
    "PublishedDiffusionSorption",
    "PublishedShallowWater",
    "ShallowWaterBenchmark",
]
