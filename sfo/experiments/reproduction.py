"""What `sfo reproduce` does: which runs are missing, in which order, on how many workers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfo.experiments.engines import Engine
from sfo.experiments.estimate import Estimates
from sfo.experiments.measurements import MEASUREMENTS
from sfo.experiments.results import Results
from sfo.experiments.runner import RunnerState, reproduce
from sfo.experiments.selection import Selection
from sfo.machine import keep_freed_blocks, usable_cores
from sfo.training.config import Experiment

RunSeconds = Callable[[Experiment], float]
"""Expected seconds of a run."""


@dataclass(frozen=True)
class Reproduction:
    """Chosen studies and measurements, and the folder that they are completed in.

    Args:
        chosen: What is wanted.
        results: The folder of the Records.
        estimates: Expected seconds of runs on this machine.
        workers: Number of runs at a time, one thread each.
    """

    chosen: Selection
    results: Results
    estimates: Estimates
    workers: int

    @classmethod
    def of(
        cls, chosen: Selection, out: Path | None = None, workers: int | None = None
    ) -> "Reproduction":
        """Into `out`, by default results/SCALE, on `workers`, by default all usable cores."""
        if workers is not None and workers < 1:
            raise ValueError(
                f"`workers` must be at least 1, got {workers}; left out: one for each core."
            )
        keep_freed_blocks()  # Steps are timed here as the workers take them.
        results = Results(out or Path("results") / chosen.scale)
        return cls(chosen, results, Estimates(), workers or usable_cores())

    @property
    def cost(self) -> RunSeconds | None:
        """By which runs are sorted; None: runs of seconds need no order."""
        return None if self.chosen.scale == "smoke" else self.estimates.seconds

    def open_runs(self) -> list[tuple[str, Experiment, float]]:
        """All that is yet to be done: a trial or a run, what it is, and its expected seconds."""
        runs = self.chosen.open_runs(self.results)
        return [(kind, run, self.estimates.seconds(run)) for kind, run in runs]

    def is_measured(self, name: str) -> bool:
        """Whether a measurement is in the results as it would be today, and does not grow."""
        return self.results.is_whole(name) and not MEASUREMENTS[name].grows

    def measure(self, name: str, progress: Callable[[str], None]) -> None:
        """Measure a table and keep it."""
        values = MEASUREMENTS[name].measure(self.chosen.scale, progress, self.results)
        self.results.keep_table(name, values)

    def run(
        self, progress: Callable[[RunnerState], None], engine: Engine | None = None
    ) -> RunnerState:
        """Train what the chosen studies lack; the state at the end says which runs failed."""
        return reproduce(
            self.chosen.studies,
            self.results,
            scale=self.chosen.scale,
            seeds=self.chosen.seeds,
            workers=self.workers,
            cost=self.cost,
            include=self.chosen.takes,
            progress=progress,
            engine=engine,
        )
