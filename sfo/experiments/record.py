"""What a run measured, in JSON files that show when they were changed.

A Record is void when its numbers would differ today, and then only. That is for a person to know:
whoever changes what a model computes raises the integer `revision` of its class, whoever changes a
benchmark's data that of the benchmark's, and whoever changes what every run gives raises
`TRAINING_REVISION` here. None stands for 1. A preset that changes on some benchmarks only has a
revision for each of them, and one for "all" others. The version of the package is kept as a note;
new versions, options and metrics void nothing.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sfo
from sfo.evaluation.errors import Errors
from sfo.files import json_sha256, parse_json, write_atomically
from sfo.registry import BENCHMARKS, MODELS
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder
from sfo.training.origin import difference

FORMAT = 1
TRAINING_REVISION = 1
"""Revision of training and evaluation: raised by hand when every run would give other numbers."""
Revision = int | Mapping[str, int]
"""Of a model: the same on all benchmarks, or by benchmark, with "all" for the others."""
FIRST_REVISIONS: Mapping[str, int] = {"model": 1, "benchmark": 1, "training": 1}
"""Revisions of files that were written before there were any."""


class RecordError(ValueError):
    """A Record that is damaged, edited, or of another revision."""


def revisions(experiment: Experiment) -> dict[str, int]:
    """Today's revisions of what an experiment's numbers depend on."""
    benchmark = experiment.data.benchmark
    return {
        "model": model_revision(experiment),
        "benchmark": getattr(BENCHMARKS[benchmark], "revision", 1)
        if benchmark in BENCHMARKS
        else 1,
        "training": TRAINING_REVISION,
    }


def model_revision(experiment: Experiment) -> int:
    """Today's revision of a model with the settings of its preset on its benchmark."""
    model = experiment.model
    return on_benchmark(declared_revision(model.name, model.preset), experiment.data.benchmark)


def declared_revision(model: str, preset: str) -> Revision:
    """Today's revision of a model with the settings of a preset, as its class has it."""
    kind = MODELS[model]
    revision: Revision = getattr(kind, "revision", 1)
    if preset == "recommended":
        revision = getattr(kind, "recommended_revision", revision)
    return revision


def on_benchmark(revision: Revision, benchmark: str | None) -> int:
    """The number that counts on a benchmark.

    Example:
        >>> on_benchmark(3, "maxwell"), on_benchmark({"all": 2, "maxwell": 3}, "burgers")
        (3, 2)
    """
    if isinstance(revision, int):
        return revision
    return revision.get(benchmark or "all", revision["all"])


def outdated(experiment: Experiment, made_with: Mapping[str, int]) -> str | None:
    """Why numbers that were made with other revisions are void, as the end of a sentence."""
    names = {"model": experiment.model.name, "benchmark": experiment.data.benchmark}
    for kind, now in revisions(experiment).items():
        then = made_with.get(kind, 1)
        if then != now:
            return (
                f"was made with revision {then} of the {kind} {names.get(kind, 'loop')}, this is "
                f"revision {now}: its numbers would differ today"
            )
    return None


@dataclass(frozen=True)
class Record:
    """What a run measured. It holds no times and no machine: the same run gives the same bytes.

    Args:
        experiment: What was done.
        errors: Errors on the test samples, with the weights of the best epoch.
        parameters: Number of learned numbers of the model; a complex number counts once.
        best_epoch: The epoch with the lowest validation error.
        validation: That error.
        epochs: Epochs that were trained.
        version: Version of the package that trained, as a note.
        revisions: Revisions of the model, the benchmark and the training; today's if left out.
    """

    experiment: Experiment
    errors: Errors
    parameters: int
    best_epoch: int
    validation: float
    epochs: int
    version: str = sfo.__version__
    revisions: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.revisions:
            object.__setattr__(self, "revisions", revisions(self.experiment))

    def to_json(self) -> str:
        """As text, sealed."""
        entries = {
            "version": self.version,
            "revisions": dict(self.revisions),
            "experiment": self.experiment.model_dump(mode="json"),
            "parameters": self.parameters,
            "best_epoch": self.best_epoch,
            "validation": self.validation,
            "epochs": self.epochs,
            "errors": dict(self.errors),
        }
        return seal(entries)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """The Record that `to_json` wrote."""
        entries = {"revisions": FIRST_REVISIONS, **unseal(text)}
        errors = Errors(**entries.pop("errors"))
        return cls(**{**entries, "experiment": Experiment(**entries["experiment"])}, errors=errors)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, whole or not at all."""
        write_atomically(Path(path), self.to_json().encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Record":
        """Read one, or say what is wrong with it."""
        try:
            return cls.from_json(Path(path).read_text(errors="replace"))
        except RecordError as error:
            raise RecordError(f"{path} {error}.") from error
        # Sealed again by whoever edited it.
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"{path} holds what no Record does: {error}.") from error


def run_record(folder: RunFolder) -> Record:
    """The Record of a finished run, found to be its own."""
    path = folder.path / "record.json"
    return check_own(Record.load(path), path, folder)


def check_own(record: Record, path: Path, folder: RunFolder) -> Record:
    """Refuse a Record of another run than that in whose folder it lies."""
    experiment, rows = folder.experiment(), folder.history()
    way = "Put back the file that belongs here."
    if record.experiment != experiment:
        raise RecordError(
            f"{path} is of another run than experiment.json: "
            f"{difference(record.experiment, experiment)}. {way}"
        )
    best = [row["validation"] for row in rows if row["epoch"] == record.best_epoch]
    if rows and (len(rows) != record.epochs or best != [record.validation]):
        raise RecordError(
            f"{path} is of another run than metrics.jsonl, which has {len(rows)} epochs, not "
            f"{record.epochs}, or another error in the best one. {way}"
        )
    return record


@dataclass(frozen=True)
class Analysis:
    """What else was measured on a trained model, beyond its errors.

    Args:
        experiment: What was trained.
        kind: What was measured, a name in `sfo.experiments.analyses`.
        values: The numbers.
        version: Version of the package that measured, as a note.
        revisions: As a Record has them.
    """

    experiment: Experiment
    kind: str
    values: dict[str, Any]
    version: str = sfo.__version__
    revisions: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.revisions:
            object.__setattr__(self, "revisions", revisions(self.experiment))

    def to_json(self) -> str:
        """As text, sealed."""
        return seal({**vars(self), "experiment": self.experiment.model_dump(mode="json")})

    @classmethod
    def from_json(cls, text: str) -> "Analysis":
        """The analysis that `to_json` wrote."""
        entries = {"revisions": FIRST_REVISIONS, **unseal(text)}
        return cls(**{**entries, "experiment": Experiment(**entries["experiment"])})


def seal(entries: dict[str, Any]) -> str:
    """JSON with a SHA-256 of the rest, so that an edit shows."""
    entries = _json_safe({"format": FORMAT, **entries})
    return json.dumps({**entries, "sha256": json_sha256(entries)}, indent=1, allow_nan=False) + "\n"


def unseal(text: str) -> dict[str, Any]:
    """What `seal` was given, or a `RecordError` that ends a sentence about the file."""
    try:
        entries = parse_json(text)
        seal = entries.pop("sha256")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise RecordError("is not a Record") from error
    if entries.get("format") != FORMAT:
        raise RecordError(f"has the format {entries.get('format')}, not {FORMAT}")
    if json_sha256(entries) != seal:
        raise RecordError("was changed after it was written: its SHA-256 does not match")
    del entries["format"]
    return _numbers(entries)


def _json_safe(value: Any) -> Any:
    """Infinities and NaN as text, because JSON has none."""
    if isinstance(value, dict):
        return {k: _json_safe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _numbers(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
