"""What a study is: a table of cells, each of them one experiment over several seeds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from sfo.experiments import paper
from sfo.experiments.results import Results
from sfo.training.config import Experiment, Scale

PROTOCOLS: tuple[dict[str, Any], ...] = (
    dict(schedule="one_cycle", learning_rate=4e-3, clip=1.0),
    dict(schedule="one_cycle", learning_rate=1e-3, clip=1.0),
    dict(schedule="step", learning_rate=1e-3, clip=1.0),
)
"""From which every model and benchmark alike takes the one with the lowest validation error."""
TRIAL, LEAST = 6, 2
"""A trial of a protocol takes a sixth of the epochs, and two at least."""


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Args:
        row: A benchmark.
        column: What is varied.
        experiment: The run of the first seed; where `tuned`, its schedule is still open.
        seeds: How many; the first is the experiment's.
        tuned: Choose among `PROTOCOLS` by short trials with the first seed.
    """

    row: str
    column: str
    experiment: Experiment
    seeds: int = 1
    tuned: bool = False

    def trials(self) -> list[Experiment]:
        """The short runs that choose the protocol."""
        if not self.tuned:
            return []
        epochs = max(LEAST, self.experiment.train.epochs // TRIAL)
        return [with_changes(self.experiment, **choice, epochs=epochs) for choice in PROTOCOLS]

    def runs(self, results: Results) -> list[Experiment]:
        """One a seed, with the protocol that the trials have chosen; none before they are done."""
        chosen = self.experiment
        if self.tuned:
            choice = self.choice(results)
            if choice is None:
                return []
            chosen = with_changes(self.experiment, **choice)
        first = self.experiment.seed
        return [with_changes(chosen, seed=first + k) for k in range(self.seeds)]

    def choice(self, results: Results) -> dict[str, Any] | None:
        """The protocol with the lowest validation error; None before all trials are done."""
        errors = []
        for trial in self.trials():
            record = results.record(trial)
            if record is None and results.failure(trial) is None:
                return None
            error = inf if record is None else record.validation
            errors.append(error if isfinite(error) else inf)
        return PROTOCOLS[min(range(len(errors)), key=errors.__getitem__)]


@dataclass(frozen=True)
class Study:
    """A table of the paper, or one of ours.

    Args:
        name: As `sfo reproduce` has it.
        title: A line for the report.
        about: What the table tells, and how it differs from the paper's.
        cells: From the scale and the number of seeds.
        published: The paper's number for a row and a column, where it has one.
        analyses: What to measure on the trained models beyond their errors.
    """

    name: str
    title: str
    about: str
    cells: Callable[[Scale, int], list[Cell]]
    published: Callable[[str, str], paper.Published | None]
    analyses: tuple[str, ...] = ()


def with_changes(experiment: Experiment, *, seed: int | None = None, **train: Any) -> Experiment:
    """The experiment with another seed or other ways to train, validated again."""
    entries = experiment.model_dump()
    entries["train"] |= train
    if seed is not None:
        entries["seed"] = seed
    return Experiment(**entries)


def columns(cells: Sequence[Cell]) -> list[str]:
    """The columns of a table, in the order of their first cell."""
    return list(dict.fromkeys(cell.column for cell in cells))


def rows(cells: Sequence[Cell]) -> list[str]:
    """The rows, likewise."""
    return list(dict.fromkeys(cell.row for cell in cells))
