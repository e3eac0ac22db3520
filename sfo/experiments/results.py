"""A folder of results: Records, analyses and failures, one file each, and what is wrong with any.

records/    what each run measured, by the run's name
findings/   what else was measured on trained models
tables/     what was measured without training
failures/   runs that ended without a Record, and why
runs/       the runs at work, with their checkpoints; not needed once they are done
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import sfo
from sfo.experiments.record import (
    Analysis,
    Record,
    RecordError,
    outdated,
    revisions,
    seal,
    unseal,
)
from sfo.files import write_atomically
from sfo.training.config import Experiment

Kept = TypeVar("Kept", Record, Analysis)


class Results:
    """Finds and keeps what runs have measured.

    Args:
        folder: The folder, which is made on the first write.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        # What was read once does not change: nothing here is replaced.
        self._read: dict[Path, Any] = {}

    def __str__(self) -> str:
        return str(self.folder)

    def record(self, experiment: Experiment) -> Record | None:
        """The Record of an experiment, if there is one; `RecordError` if it cannot be trusted."""
        return self._get(Record, self._path("records", experiment), experiment)

    def analysis(self, kind: str, experiment: Experiment) -> Analysis | None:
        """An analysis of an experiment's model, likewise."""
        return self._get(Analysis, self._path("findings", experiment, f"{kind}-"), experiment)

    def failure(self, experiment: Experiment) -> str | None:
        """Why a run ended without a Record, if it did."""
        path = self._path("failures", experiment)
        if not path.exists():
            return None
        entries = _unseal(path)
        # What another revision failed at is to be tried.
        return None if outdated(experiment, entries.get("revisions", {})) else entries["why"]

    def keep(self, result: Record | Analysis) -> None:
        """Write a Record or an analysis; one that is there already is never replaced."""
        if isinstance(result, Record):
            path = self._path("records", result.experiment)
        else:
            path = self._path("findings", result.experiment, f"{result.kind}-")
        if path.exists():
            raise RecordError(f"{path} is there already; move it away to measure again.")
        _write(path, result.to_json())

    def keep_failure(self, experiment: Experiment, why: str) -> None:
        """Note why a run ended without a Record, so that it is not begun again and again."""
        entries: dict[str, Any] = {
            "version": sfo.__version__,
            "revisions": revisions(experiment),
            "experiment": experiment.model_dump(mode="json"),
            "why": why,
        }
        _write(self._path("failures", experiment), seal(entries))

    def table(self, name: str) -> dict[str, Any] | None:
        """A table that was measured in one go, if there is one."""
        path = self.table_path(name)
        return _unseal(path)["values"] if path.exists() else None

    def table_path(self, name: str) -> Path:
        """Where such a table is, or would be."""
        return self.folder / "tables" / f"{name}.json"

    def keep_table(self, name: str, values: dict[str, Any]) -> None:
        """Write such a table."""
        entries = {"version": sfo.__version__, "values": values}
        _write(self.table_path(name), seal(entries))

    def forget_failures(self) -> None:
        """So that failed runs are tried again."""
        for path in sorted((self.folder / "failures").glob("*.json")):
            path.unlink()

    def run_folder(self, experiment: Experiment) -> Path:
        """Where the run works."""
        return self.folder / "runs" / name(experiment)

    def problems(self) -> list[str]:
        """A sentence for every file here that must not enter a table."""
        errors = [
            *_errors(Record, self.folder / "records"),
            *_errors(Analysis, self.folder / "findings"),
        ]
        return [str(error) for error in errors]

    def _get(self, kind: type[Kept], path: Path, experiment: Experiment) -> Kept | None:
        if path not in self._read:
            if not path.exists():
                return None
            self._read[path] = _load(kind, path)
        found = self._read[path]
        if found.experiment != experiment:
            raise RecordError(f"{path} is of another experiment than its name says.")
        return found

    def _path(self, folder: str, experiment: Experiment, prefix: str = "") -> Path:
        return self.folder / folder / f"{prefix}{name(experiment)}.json"


def name(experiment: Experiment) -> str:
    """The name of a run's files: readable, and different for different experiments."""
    return "-".join(
        [
            experiment.data.benchmark,
            experiment.model.name,
            str(experiment.seed),
            experiment.key,
        ]
    )


def _errors(kind: type[Kept], folder: Path) -> Iterator[RecordError]:
    for path in sorted(folder.glob("*.json")):
        try:
            run = name(_load(kind, path).experiment)
        except RecordError as error:
            yield error
        else:
            if run not in path.stem:
                yield RecordError(f"{path} holds the run {run}.")


def _load(kind: type[Kept], path: Path) -> Kept:
    try:
        found = kind.from_json(path.read_text())
    except (ValueError, TypeError, KeyError) as error:
        raise RecordError(f"{path} {str(error).rstrip('.')}.") from error
    why = outdated(found.experiment, found.revisions)
    if why is not None:
        raise RecordError(f"{path} {why}.")
    return found


def _unseal(path: Path) -> dict[str, Any]:
    try:
        return unseal(path.read_text())
    except RecordError as error:
        raise RecordError(f"{path} {error}.") from error


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
