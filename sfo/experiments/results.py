"""A folder of results: Records, analyses and failures, one file each, and what is wrong with any.

records/    what each run measured, by the run's name
findings/   what else was measured on trained models
tables/     what was measured without training
failures/   runs that ended without a Record, and why
runs/       the runs at work, with their checkpoints and locks; not needed once they are done

Any number of processes may write into one folder: each run has a lock of its own.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sfo
from sfo.experiments.record import (
    Analysis,
    Record,
    RecordError,
    declared_revision,
    on_benchmark,
    outdated,
    revisions,
    seal,
    unseal,
)
from sfo.files import locked, write_atomically
from sfo.registry import MODELS
from sfo.training.config import Experiment

T = TypeVar("T", Record, Analysis)


class AlreadyClaimed(Exception):
    """Another process has claimed the run."""


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
        """An analysis of an experiment's model, if there is one; `RecordError` as for a Record."""
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
        """A table that was measured in one go, if there is one, of the models as they are today."""
        path = self.table_path(name)
        return _of_today(_unseal(path)["values"]) if path.exists() else None

    def is_whole(self, name: str) -> bool:
        """Whether there is such a table, and none of its models was revised since."""
        path = self.table_path(name)
        return path.exists() and not _revised(_unseal(path)["values"])

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

    @contextmanager
    def claimed(self, experiment: Experiment, wait: float = 0.0) -> Iterator[None]:
        """Hold an experiment while it is worked on; `AlreadyClaimed` if another process does.

        Args:
            experiment: What is worked on.
            wait: Seconds to wait for another process to end; negative: as long as it takes.
        """
        # Beside the real folder: links to one folder lead to one lock.
        path = self.folder.resolve() / "runs" / f"{name(experiment)}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path, timeout=wait, busy=AlreadyClaimed(name(experiment))):
            yield

    def is_claimed(self, experiment: Experiment) -> bool:
        """Whether another process has claimed it now."""
        try:
            with self.claimed(experiment):
                return False
        except AlreadyClaimed:
            return True

    def check_writable(self) -> None:
        """Refuse a folder that takes no files, before anything is done for it."""
        try:
            (self.folder / "runs").mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise ValueError(
                f"Cannot write into {self}: {error.strerror or error}; choose another folder with "
                "--out."
            ) from error

    def files(self, experiment: Experiment) -> dict[str, str]:
        """All that is known of an experiment: the text of its files, by their paths in here."""
        paths = [
            self._path("records", experiment),
            self._path("failures", experiment),
            *(self.folder / "findings").glob(f"*-{name(experiment)}.json"),
        ]
        found = [path for path in paths if path.exists()]
        return {str(path.relative_to(self.folder)): path.read_text() for path in found}

    def take(self, files: Mapping[str, str]) -> None:
        """Write what `files` gave elsewhere; what is there already stays."""
        for place, text in files.items():
            path = self.folder / place
            if not path.exists():
                _write(path, text)

    def problems(self) -> list[str]:
        """A sentence for every file here that must not enter a table."""
        errors = [
            *_errors(Record, self.folder / "records"),
            *_errors(Analysis, self.folder / "findings"),
        ]
        return [str(error) for error in errors]

    def _get(self, kind: type[T], path: Path, experiment: Experiment) -> T | None:
        if path not in self._read:
            if not path.exists():
                return None
            self._read[path] = load_trusted(kind, path)
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


def _errors(kind: type[T], folder: Path) -> Iterator[RecordError]:
    for path in sorted(folder.glob("*.json")):
        try:
            run = name(load_trusted(kind, path).experiment)
        except RecordError as error:
            yield error
        else:
            if run not in path.stem:
                yield RecordError(f"{path} holds the run {run}.")


def load_trusted(kind: type[T], path: Path) -> T:
    """Read a Record or an analysis; `RecordError` if its numbers are not to be shown."""
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


def _revised(values: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Rows and columns of a measured table whose models would give other numbers today."""
    return {
        (row, column)
        for rows in _tables(values).values()
        for row in rows
        for column, (model, preset, then) in values.get("models", {}).items()
        if model not in MODELS
        or on_benchmark(declared_revision(model, preset), row) != on_benchmark(then, row)
    }


def _tables(values: Mapping[str, Any]) -> dict[str, Mapping[str, Mapping[str, Any]]]:
    """What of a measured table has a number for each benchmark and model."""
    return {key: values[key] for key in ("counts", "seconds") if key in values}


def _of_today(values: dict[str, Any]) -> dict[str, Any]:
    """A measured table without what was revised."""
    gone = _revised(values)
    kept = {
        key: {
            row: {c: number for c, number in numbers.items() if (row, c) not in gone}
            for row, numbers in rows.items()
        }
        for key, rows in _tables(values).items()
    }
    return {**values, **kept}
