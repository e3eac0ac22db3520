"""Which run a checkpoint is of: the experiment and the data, so that none is taken for another."""

from pathlib import Path
from typing import Any

from sfo.files import parse_json, sha256
from sfo.training.config import Experiment
from sfo.training.strict import Config
from sfo.training.tree import CheckpointError


def origin(experiment: Experiment, folder: Path) -> dict[str, str]:
    """What goes into a checkpoint of a run: its experiment, and a SHA-256 of its data.json."""
    return dict(experiment=experiment.to_json(), data=_digest(folder))


def check_origin(state: dict[str, Any], experiment: Experiment, folder: Path) -> None:
    """Refuse a checkpoint of another run, or one whose experiment or data were edited since.

    Weights of another seed or of other data fit a model as well, and answer otherwise. The file
    that the data are read from may have moved. Checkpoints of version 0.3 do not say what they
    are of, and are accepted.

    Args:
        state: The state that the checkpoint holds.
        experiment: The experiment of the run.
        folder: The run's folder.
    """
    found = state.get("origin")
    if found is None:
        return
    try:
        then = Experiment(**parse_json(found["experiment"]))
        data = found["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"A checkpoint in {folder} is of an unknown run: {error}.") from None
    way = "Put back the file that belongs here; a changed experiment is a new run, `sfo train`."
    if _without_file(then) != _without_file(experiment):
        what = difference(_without_file(then), _without_file(experiment))
        raise CheckpointError(
            f"A checkpoint in {folder} is not of the experiment in its experiment.json: {what}. "
            f"{way}"
        )
    if data != _digest(folder):
        raise CheckpointError(
            f"A checkpoint in {folder} is not of the data in its data.json, or that was changed. "
            f"{way}"
        )


def difference(found: Config, wanted: Config, prefix: str = "") -> str:
    """The first key in which two configurations differ, and both values."""
    for key in type(found).model_fields:
        a, b = getattr(found, key), getattr(wanted, key)
        if a != b and isinstance(a, Config) and isinstance(b, Config):
            return difference(a, b, f"{prefix}{key}.")
        if a != b:
            return f"`{prefix}{key}` is {a!r:.80} there, not {b!r:.80}"
    return "nothing"


def _without_file(experiment: Experiment) -> Experiment:
    data = experiment.data.model_copy(update=dict(file=None))
    return experiment.model_copy(update=dict(data=data))


def _digest(folder: Path) -> str:
    path = folder / "data.json"
    return sha256(path.read_bytes()) if path.is_file() else "none"
