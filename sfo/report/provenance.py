"""Where each number comes from: the run, its Record, and the command that trains just that run."""

import json
import shlex
from typing import Any

from sfo.experiments.blocks import Details, Entry, Row, Table, Text
from sfo.experiments.results import name
from sfo.experiments.study_results import StudyResults, trusted
from sfo.training.config import Experiment

DATA_FLAGS = {
    "samples": "samples",
    "train_samples": "train-samples",
    "seed": "data-seed",
    "scheme": "scheme",
    "stride": "stride",
    "time_stride": "time-stride",
    "file": "file",
}
"""Options of `sfo train` for the fields of `DataConfig`."""


def train_command(experiment: Experiment) -> str:
    """`sfo train` with the options that make this experiment; what is usual is left out.

    Data of the user's own are FILE, because a run does not say where they are.

    Example:
        >>> train_command(Experiment.of("maxwell", "fno", scale="smoke", train=dict(clip=1.0)))
        'sfo train --benchmark maxwell --model fno --scale smoke --seed 0 --clip 1.0'
    """
    data, model = experiment.data, experiment.model
    if data.arrays is not None:
        return f"{_whole(experiment)} --data FILE"
    usual = Experiment.of(data.benchmark, model.name, scale=data.scale)
    changed = {
        flag: getattr(data, key)
        for key, flag in DATA_FLAGS.items()
        if getattr(data, key) != getattr(usual.data, key)
    }
    changed |= {
        key.replace("_", "-"): value
        for key, value in experiment.train
        if value != getattr(usual.train, key)
    }
    if None in changed.values():
        # An option can be set but not unset; a whole configuration says it all.
        return _whole(experiment)
    words = ["sfo", "train", "--benchmark", data.benchmark, "--model", model.name]
    if model.preset != usual.model.preset:
        words += ["--preset", model.preset]
    words += ["--scale", data.scale, "--seed", str(experiment.seed)]
    for flag, value in changed.items():
        words += [f"--{flag}", str(value)]
    for flag, values in (("--setting", model.settings), ("--option", data.options)):
        for key, value in values.items():
            words += [flag, f"{key}={_text(value)}"]
    return shlex.join(words)


def _whole(experiment: Experiment) -> str:
    """`sfo train` with the whole configuration as text."""
    text = json.dumps(experiment.model_dump(mode="json", exclude_defaults=True))
    return f"sfo train --config <(echo {shlex.quote(text)})"


def _text(value: Any) -> str:
    """A value as `sfo train` reads it: JSON, or text that could not be JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except json.JSONDecodeError:
            return value
    return json.dumps(value)


def provenance(results: StudyResults) -> Details:
    """Every run behind a study's numbers, folded."""
    lines = []
    for (row, column), f in results.cells.items():
        title = results.title(row)
        for trial in f.cell.trials():
            record = trusted(results.results.record, trial)
            if record is not None:
                text = f"{100 * record.validation:.6g} (validation)"
                lines.append(_line(title, f"{results.plain_title(column)}, trial", trial, text))
        for record in f.records:
            text = f"{record.errors.percent:.6g}"
            lines.append(_line(title, results.plain_title(column), record.experiment, text))
    columns = ("", "column", "seed", "error, %", "Record", "command for this run alone")
    about = Text(
        "The Record holds the whole configuration under `experiment`, which `sfo train --config` "
        "also takes. Options that the command leaves out are those of the benchmark's protocol.",
        kind="note",
    )
    table = Table("", columns, tuple(lines), kind="words")
    return Details(f"Where the numbers come from: {len(lines)} runs", (about, table))


def _line(title: str, column: str, run: Experiment, text: str) -> Row:
    own = name(run)
    texts = (column, str(run.seed), text, f"records/{own}.json", train_command(run))
    return Row(title, tuple(Entry(text, runs=(own,)) for text in texts))
