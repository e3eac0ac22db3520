"""What rows and columns are called in tables, where their names are not title enough."""

from sfo.registry import BENCHMARKS


def benchmark_title(name: str) -> str:
    """The title of a registered benchmark; the name of anything else."""
    return getattr(BENCHMARKS[name], "title", name) if name in BENCHMARKS else name
