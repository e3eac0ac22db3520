"""What a study is: a table of cells, each one experiment over several seeds, and how it is shown.

A study is registered in `STUDIES` as a `Study`, or as a function that gives its cells:

    @STUDIES.register("mine")
    def mine(scale, seeds):
        '''Two models on my equation, %'''
        runs = {model: Experiment.of("heat", model, scale=scale) for model in ("sfo", "fno")}
        return [Cell("heat", model, run, seeds) for model, run in runs.items()]

Without any presentation of its own it is shown as a table of means and intervals over its rows and
columns, the best in bold.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

from sfo.data.benchmarks import ScaleName
from sfo.experiments import paper
from sfo.experiments.blocks import Block
from sfo.experiments.results import Results
from sfo.registry import STUDIES
from sfo.training.config import Experiment

if TYPE_CHECKING:
    from sfo.experiments.study_results import StudyResults

Protocol = Mapping[str, Any]
"""Fields of `TrainConfig`, as schedule, learning_rate, optimizer or batch_size."""


@dataclass(frozen=True)
class Cell:
    """One number of a table.

    Args:
        row: Name of the row, usually a benchmark.
        column: Name of what is varied.
        experiment: The run of the first seed; where there are `protocols`, its way to train is
            still open.
        seeds: Number of seeds; the first is the experiment's.
        protocols: Ways to train, of which the one with the lowest validation error in short
            trials with the first seed is taken; none: as the experiment says.
        trial_share: A trial takes this part of the epochs: 6 is a sixth.
        trial_least: Least number of epochs of a trial.
    """

    row: str
    column: str
    experiment: Experiment
    seeds: int = 1
    protocols: tuple[Protocol, ...] = ()
    trial_share: int = 6
    trial_least: int = 2

    @property
    def tuned(self) -> bool:
        """Whether its protocol is chosen by trials."""
        return bool(self.protocols)

    def trials(self) -> list[Experiment]:
        """The short runs that choose the protocol."""
        epochs = max(self.trial_least, self.experiment.train.epochs // self.trial_share)
        return [with_changes(self.experiment, **p, epochs=epochs) for p in self.protocols]

    def runs(self, results: Results) -> list[Experiment]:
        """One per seed, with the protocol that the trials chose; none before they are done."""
        chosen = self.experiment
        if self.protocols:
            choice = self.choice(results)
            if choice is None:
                return []
            chosen = with_changes(self.experiment, **choice)
        first = self.experiment.seed
        return [with_changes(chosen, seed=first + k) for k in range(self.seeds)]

    def choice(self, results: Results) -> Protocol | None:
        """The protocol with the lowest validation error; None before all trials are done."""
        errors = []
        for trial in self.trials():
            record = results.record(trial)
            if record is None and results.failure(trial) is None:
                return None
            error = inf if record is None else record.validation
            errors.append(error if isfinite(error) else inf)
        return self.protocols[min(range(len(errors)), key=errors.__getitem__)]


def nothing_published(row: str, column: str) -> paper.Published | None:
    """What the paper prints of a study that it does not have."""
    return None


@dataclass(frozen=True)
class Study:
    """A table of the paper, one of ours, or one of yours.

    Args:
        name: Name that `sfo reproduce` takes.
        title: A line for the report.
        about: What the table tells, and how it differs from the paper's.
        cells: From the scale and the number of seeds to the cells of the table.
        published: The paper's number for a row and a column, where it has one.
        analyses: Names of what to measure on the trained models beyond their errors.
        titles: Titles of rows and columns; those of others are the registered ones, or the names.
        present: From what was measured to the tables and pictures of the study's section; None:
            a table of means and intervals, and one of the protocols where they are chosen.
        summary: What the section "In short" at the head of the report says of the study.
        limits: Sentences on how far the study's numbers go.
        compared: Whether the columns are alternatives, the best of which is marked.
        least_columns: How many columns of a row must be there before the study is shown.
    """

    name: str
    title: str
    about: str
    cells: Callable[[ScaleName, int], list[Cell]]
    published: Callable[[str, str], paper.Published | None] = nothing_published
    analyses: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    present: "Callable[[StudyResults], list[Block]] | None" = None
    summary: "Callable[[StudyResults], list[Block]] | None" = None
    limits: "Callable[[StudyResults], list[str]] | None" = None
    compared: bool = True
    least_columns: int = 1


def as_study(name: str) -> Study:
    """A registered study; a function that gives cells becomes one, titled by its docstring."""
    entry = STUDIES[name]
    if isinstance(entry, Study):
        return entry
    first, _, rest = (entry.__doc__ or name).strip().partition("\n")
    return Study(name, first, " ".join(rest.split()), entry)


def study_names() -> list[str]:
    """All studies in the order of the report: the package's own, then users', as registered."""

    def is_users(name: str) -> bool:
        return not as_study(name).cells.__module__.startswith("sfo.")

    return sorted(STUDIES.in_order(), key=is_users)


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
    """The rows, in the order of their first cell."""
    return list(dict.fromkeys(cell.row for cell in cells))
