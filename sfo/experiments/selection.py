"""What a call of `sfo reproduce` is to do: which studies, which of their cells, which runs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sfo.checks import check_at_least
from sfo.data.benchmarks import ScaleName
from sfo.experiments.measurements import MEASUREMENTS, measured_models
from sfo.experiments.results import Results
from sfo.experiments.runner import plan
from sfo.experiments.study import Cell, Study, as_study, with_changes
from sfo.models.build import installed
from sfo.registry import STUDIES
from sfo.training.config import Experiment


@dataclass(frozen=True)
class Selection:
    """Studies and measurements at a scale, and the cells that are wanted of them.

    Args:
        studies: The studies.
        measurements: Names in `MEASUREMENTS`.
        scale: ScaleName of data and training.
        seeds: Number of seeds of each cell.
        rows: Only these rows, or rows of these benchmarks; none: all.
        columns: Only these columns; none: all.
    """

    studies: tuple[Study, ...]
    measurements: tuple[str, ...]
    scale: ScaleName = "desk"
    seeds: int = 1
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        *,
        scale: ScaleName = "desk",
        seeds: int = 1,
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
    ) -> "Selection":
        """By the names of studies and measurements, or "all"; wrong ones are refused."""
        known = sorted([*STUDIES.names(), *MEASUREMENTS.names()])
        wanted = known if list(names) == ["all"] else names
        if not wanted:
            raise ValueError(f"Name a study: {', '.join(known)}, or all.")
        for name in wanted:
            if name not in known:
                raise ValueError(f"Unknown study {name!r}; known: {', '.join(known)}, all.")
        check_at_least(1, seeds=seeds)
        studies = tuple(as_study(name) for name in wanted if name in STUDIES)
        cells = [cell for study in studies for cell in study.cells(scale, 1)]
        benchmarks = [cell.experiment.data.benchmark for cell in cells]
        _check("benchmark", rows, benchmarks, [cell.row for cell in cells])
        _check("column", columns, [cell.column for cell in cells])
        measurements = tuple(name for name in wanted if name in MEASUREMENTS)
        return cls(studies, measurements, scale, seeds, tuple(rows), tuple(columns))

    def takes(self, cell: Cell) -> bool:
        """Whether a cell is wanted, and its model is installed."""
        return self._is_selected(cell) and installed(cell.experiment.model.name)

    def tables(self) -> list[tuple[Study, list[Cell]]]:
        """The studies, and the cells to take of each."""
        return [
            (study, [cell for cell in study.cells(self.scale, self.seeds) if self.takes(cell)])
            for study in self.studies
        ]

    def missing_models(self, results: Results) -> list[str]:
        """Models that are wanted and not installed; measurements that are done want none."""
        models = [
            cell.experiment.model.name
            for study in self.studies
            for cell in study.cells(self.scale, 1)
            if self._is_selected(cell)
        ]
        if any(results.table(name) is None for name in self.measurements):
            models += measured_models()
        return [model for model in dict.fromkeys(models) if not installed(model)]

    def open_runs(self, results: Results) -> list[tuple[str, Experiment]]:
        """All that is yet to be done, each with what it is: a trial or a run."""
        tables = self.tables()
        runs = [("run" if job.keep else "trial", job.experiment) for job in plan(tables, results)]
        return [*runs, *(("run", run) for run in runs_after_trials(tables, results))]

    def _is_selected(self, cell: Cell) -> bool:
        rows = {cell.row, cell.experiment.data.benchmark}
        in_row = not self.rows or not rows.isdisjoint(self.rows)
        return in_row and (not self.columns or cell.column in self.columns)


def runs_after_trials(
    tables: Sequence[tuple[Study, Sequence[Cell]]], results: Results
) -> Iterator[Experiment]:
    """Runs whose protocol is not yet chosen: as long as any protocol has them."""
    for _, cells in tables:
        for cell in cells:
            if cell.tuned and not cell.runs(results):
                for k in range(cell.seeds):
                    yield with_changes(cell.experiment, seed=cell.experiment.seed + k)


def _check(kind: str, given: Sequence[str], known: Sequence[str], also: Sequence[str] = ()) -> None:
    for name in given:
        if name not in known and name not in also:
            names = ", ".join(dict.fromkeys(known))
            raise ValueError(f"`{kind}` must be some of {names}, got {name!r}.")
