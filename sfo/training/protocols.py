"""How a benchmark is trained unless told otherwise: the paper's protocol, and shorter ones."""

from typing import Any

from sfo.data.benchmarks import ScaleName
from sfo.registry import BENCHMARKS

PINO_WEIGHTS = dict(physics=0.1, initial=0.2)
"""Of the residual and the first frames beside the error: PDENNEval's 10 : 2 : 1."""
PAPER_PROTOCOL: dict[str, dict[str, Any]] = {
    "shallow_water": dict(epochs=200, batch_size=10),
    "maxwell": dict(batch_size=1),
}
"""Where the paper's protocol differs from `TrainConfig`'s defaults, by its benchmark."""
SMALLER_SCALES: dict[str, dict[str, Any]] = {
    "desk": dict(epochs=60, decay_every=None, batch_size=10),
    "smoke": dict(epochs=2, decay_every=None, batch_size=8),
}
"""What smaller scales change of it."""
DESK: dict[str, dict[str, Any]] = {
    "shallow_water": dict(epochs=10, batch_size=2),
    "maxwell": dict(epochs=10),
}
"""And the desk scale for the benchmarks of more axes: a thousand steps, a third of the others'."""


def protocol(benchmark: str, scale: ScaleName) -> dict[str, Any]:
    """How a benchmark is trained at a scale, unless told otherwise.

    Example:
        >>> protocol("maxwell", "paper"), protocol("maxwell", "desk")["epochs"]
        ({'batch_size': 1}, 10)
    """
    name = BENCHMARKS[benchmark].paper_name
    paper = PAPER_PROTOCOL.get(name or "", {})
    if scale == "paper":
        return paper
    shorter = {**SMALLER_SCALES[scale], **(DESK.get(name or "", {}) if scale == "desk" else {})}
    batch = min(shorter["batch_size"], paper.get("batch_size", shorter["batch_size"]))
    return {**shorter, "batch_size": batch}
