"""What a report is about: the runs of a folder, be it one run's, one of runs, or one of results."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfo.experiments.record import Record, RecordError, check_own
from sfo.experiments.results import Results, load_trusted, name
from sfo.experiments.study_results import problems, records
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder


@dataclass(frozen=True)
class ReportedRun:
    """What there is to say of a run.

    Args:
        label: Its name in tables and curves.
        experiment: What was trained.
        record: What was measured; None before the run is finished.
        history: The rows of its metrics.jsonl; none where they were not kept.
        cost: Its cost.json, if there is one.
    """

    label: str
    experiment: Experiment
    record: Record | None
    history: Sequence[dict[str, Any]] = ()
    cost: dict[str, Any] | None = None


@dataclass(frozen=True)
class ReportedFolder:
    """The runs of a folder, of whatever kind it is.

    Args:
        runs: Those that can be trusted.
        problems: A sentence for every file that is left out.
        results: Where the studies' Records, analyses and tables are; None without studies.
    """

    runs: tuple[ReportedRun, ...]
    problems: tuple[str, ...] = ()
    results: Results | None = None


def read_folder(folder: Path) -> ReportedFolder:
    """A folder as `sfo train` or `sfo reproduce` has left it, or one that holds such runs."""
    if not RunFolder(folder).exists and _is_results(folder):
        results = Results(folder)
        runs = tuple(
            _reported(name(kept.experiment), results.run_folder(kept.experiment), kept)
            for kept in records(results)
        )
        return ReportedFolder(runs, problems(results), results)
    is_run = RunFolder(folder).exists
    inside = [folder] if is_run else sorted(p.parent for p in folder.glob("*/experiment.json"))
    if not inside:
        raise ValueError(
            f"{folder} holds no results and no run; make some with `sfo train --out {folder}` "
            f"or `sfo reproduce main --scale smoke --out {folder}`."
        )
    found: list[ReportedRun] = []
    bad: list[str] = []
    for path in inside:
        record = path / "record.json"
        try:
            kept = load_trusted(Record, record) if record.exists() else None
            if kept is not None:
                check_own(kept, record, RunFolder(path))
        except RecordError as error:
            bad.append(str(error).replace(f"{path.parent}{os.sep}", ""))
        else:
            found.append(_reported(path.resolve().name, path, kept))
    return ReportedFolder(tuple(found), tuple(bad))


def _is_results(folder: Path) -> bool:
    return any((folder / kind).is_dir() for kind in ("records", "tables", "failures"))


def _reported(label: str, folder: Path, record: Record | None) -> ReportedRun:
    """A run, with its course as far as that was kept."""
    run = RunFolder(folder)
    experiment = run.experiment() if record is None else record.experiment
    return ReportedRun(label, experiment, record, run.history(), run.cost())
