"""The folder of a run: what is in it, and how each file is written so that a kill leaves it whole.

experiment.json   the resolved configuration
sources.json      where the data of the user's own and the plugins were, if there are any
data.json         channels, grid, times, and the ids of the samples of each part
environment.json  versions, machine, command
metrics.jsonl     one line per epoch, the same bytes whether or not the run was interrupted
timing.jsonl      one line per epoch as it went by: seconds and samples per second
checkpoints/      the last ones and the best
tensorboard/      the curves of metrics.jsonl, where TensorBoard is installed
record.json       what was measured in the end
model/            the best model, as `save_pretrained` writes it
"""

import json
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import torch

import sfo
from sfo import plugins
from sfo.data.pairs import Pairs
from sfo.files import (
    lock_path,
    locked,
    read_json,
    read_json_lines,
    remove_unfinished,
    write_atomically,
)
from sfo.machine import usable_cores
from sfo.registry import BENCHMARKS, MODELS
from sfo.training.config import Experiment
from sfo.training.origin import difference
from sfo.training.prepare import DataShape

BEFORE_TRAINING = ("environment.json", "sources.json", "data.json")
"""Files that a run writes before it trains."""
WRITTEN = (
    "experiment.json",
    *BEFORE_TRAINING,
    "metrics.jsonl",
    "timing.jsonl",
    "cost.json",
    "record.json",
)
"""Files that `RunFolder.write` replaces in one step."""
COLUMNS = {
    "epoch": (int,),
    "loss": (int, float),
    "validation": (int, float, type(None)),
}
"""What rows of metrics.jsonl hold at least."""
REGISTRIES = {"model": MODELS, "benchmark": BENCHMARKS}
LOCK_TIMEOUT = 2.0
"""Seconds to wait for the lock: a process that was killed takes a moment to go."""


class RunFolder:
    """Paths and files of one run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "experiment.json").exists()

    @contextmanager
    def opened(
        self,
        experiment: Experiment,
        resume: bool | Literal["auto"],
        sources: dict[str, Any] | None = None,
    ) -> Iterator[bool]:
        """Hold the folder while training: two processes must not write into one run.

        A run that fails before its first checkpoint leaves the folder as free as it was.

        Args:
            experiment: What to do.
            resume: True: continue the run that is there; False: start one in an empty folder;
                "auto": whichever the folder calls for.
            sources: Where data and plugins are, for those who continue the run.

        Yields:
            Whether a run is there to continue.
        """
        self._is_resuming(experiment, resume)  # Before anything is written into a folder of others.
        with ExitStack() as stack:
            with _explained(self.path):
                self.path.mkdir(parents=True, exist_ok=True)
                busy = f"{self} is in use: another process is training there."
                lock = locked(lock_path(self.path), timeout=LOCK_TIMEOUT, busy=ValueError(busy))
                stack.enter_context(lock)
            for name in WRITTEN:
                remove_unfinished(self.path / name)
            is_resuming = self._is_resuming(experiment, resume)
            sources = {**(sources or {}), **_from_notebook(experiment)}
            if sources:
                self.write("sources.json", json.dumps(sources, indent=2) + "\n")
            if not is_resuming:
                self.write("environment.json", json.dumps(environment(), indent=2) + "\n")
                # Last, because it makes this folder a run.
                self.write("experiment.json", experiment.to_json())
            try:
                yield is_resuming
            except Exception as error:
                # A full disk is no fault of the run, which continues when there is room.
                if not is_resuming and not isinstance(error.__cause__, OSError):
                    self._forget_failed_start()
                raise

    def _forget_failed_start(self) -> None:
        """Remove what was written here, if nothing was trained: it must not block the folder."""
        if self.checkpoints.exists() and any(self.checkpoints.iterdir()):
            return
        for name in ("experiment.json", *BEFORE_TRAINING, "metrics.jsonl", "timing.jsonl"):
            (self.path / name).unlink(missing_ok=True)

    def sources(self) -> dict[str, Any]:
        """Where data of the user's own and plugins were when the run was begun."""
        return self.read("sources.json") if (self.path / "sources.json").exists() else {}

    def _is_resuming(self, experiment: Experiment, resume: bool | Literal["auto"]) -> bool:
        """Whether the run that is to be is there already; refuse a folder that is another's."""
        if resume is True or (resume == "auto" and self.exists):
            found = self.experiment()
            if found.data != experiment.data and found.data.arrays is not None:
                raise ValueError(
                    f"The data are not those that {self} was begun with: "
                    f"{difference(found.data, experiment.data, 'data.')}. Resume it with the "
                    "same data, or choose another folder with out= (on the command line: --out)."
                )
            if found != experiment:
                raise ValueError(
                    f"{self} was begun with other settings: {difference(found, experiment)}. "
                    "Resume it as it is, or choose another folder with out= (on the command line: "
                    "--out)."
                )
            return True
        if self.exists:
            raise ValueError(
                f"{self} holds a run already. Continue it with `sfo resume {self}`, or choose "
                "another folder with out= (on the command line: --out)."
            )
        if self.path.exists() and (not self.path.is_dir() or self._foreign_files()):
            raise ValueError(
                f"{self} exists and is not empty; choose another folder with out= (on the command "
                "line: --out)."
            )
        return False

    def _foreign_files(self) -> list[str]:
        """Files besides those that a run leaves when it is killed as it begins."""
        names = [path.name for path in self.path.iterdir()]
        # Without the lock that a run leaves, files of these names are somebody else's.
        own = BEFORE_TRAINING if ".lock" in names else ()
        return [name for name in names if name[0] != "." and name not in own]

    def experiment(self) -> Experiment:
        """The configuration of the run, whose plugins are loaded."""
        if not self.exists:
            raise ValueError(f"{self} is not a run: it has no experiment.json. See `sfo train`.")
        sources = self.sources()
        plugins.load_all(sources.get("plugins", []))
        for kind, name in sources.get("notebook", {}).items():
            if name not in REGISTRIES[kind]:
                raise ValueError(
                    f"{self} needs the {kind} {name!r}, which a notebook or script defined: "
                    "register it again first, or put it into a file and pass --plugin FILE."
                )
        return Experiment.load(self.path / "experiment.json")

    def write(self, name: str, text: str) -> None:
        """Replace a file, whole or not at all."""
        with _explained(self.path / name):
            write_atomically(self.path / name, text.encode())

    def read(self, name: str) -> Any:
        """A JSON file of the run."""
        path = self.path / name
        if not path.exists():
            raise ValueError(f"{self} has no {name}; is the run finished? See `sfo resume`.")
        return read_json(path)

    def write_metrics(self, history: list[dict[str, Any]]) -> None:
        """All epochs so far."""
        self.write("metrics.jsonl", "".join(json.dumps(row) + "\n" for row in history))

    def history(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl, one per epoch; none before the first."""
        path = self.path / "metrics.jsonl"
        rows = read_json_lines(path)
        for line, row in enumerate(rows, start=1):
            wrong = [key for key, kinds in COLUMNS.items() if type(row.get(key)) not in kinds]
            if wrong:
                raise ValueError(
                    f"{path}, line {line}, is damaged: `{wrong[0]}` must be a number, got "
                    f"{row.get(wrong[0])!r:.80}. Remove the file, or copy it again."
                )
        return rows

    def cost(self) -> dict[str, Any] | None:
        """What cost.json says, if it was measured."""
        return self.read("cost.json") if (self.path / "cost.json").exists() else None

    def append(self, name: str, row: dict[str, Any]) -> None:
        """One line more, in one step."""
        path = self.path / name
        lines = path.read_text() if path.exists() else ""
        self.write(name, lines + json.dumps(row) + "\n")

    def describe_data(self, train: Pairs, validation: Pairs, *, begun: bool) -> None:
        """Write data.json; of a run that was begun, refuse other data than it began with."""
        shape = DataShape.of(train).to_dict()
        ids = dict(train=train.ids, validation=validation.ids)
        text = json.dumps(dict(shape=shape, ids=ids)) + "\n"
        path = self.path / "data.json"
        if not begun or not path.exists():
            self.write(path.name, text)
        elif path.read_text() != text:
            raise ValueError(
                f"The data are not those that {self} was begun with: their shape, their grid or "
                f"their samples differ from {path.name}. Resume it with the same data."
            )

    def data_shape(self) -> DataShape:
        """Of the data that the run was trained on."""
        try:
            return DataShape.from_dict(self.read("data.json")["shape"])
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(
                f"{self.path / 'data.json'} is damaged: {error!r:.80}. Copy it again."
            ) from None


def environment() -> dict[str, Any]:
    """Where and with what a run was made."""
    return dict(
        sfo=sfo.__version__,
        torch=torch.__version__,
        python=platform.python_version(),
        system=platform.platform(),
        processor=platform.processor() or platform.machine(),
        cores=usable_cores(),
        threads=torch.get_num_threads(),
        cuda=torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        command=sys.argv,
    )


def new_folder(experiment: Experiment) -> Path:
    """A folder that is not there yet, in runs/."""
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{experiment.data.benchmark}-{experiment.model.name}-{experiment.seed}-{stamp}"
    return Path("runs") / name


def _from_notebook(experiment: Experiment) -> dict[str, Any]:
    """What a run needs that only this process knows, for `sources.json`."""
    needed = {"model": MODELS[experiment.model.name]}
    if experiment.data.arrays is None:
        needed["benchmark"] = type(BENCHMARKS[experiment.data.benchmark])
    names = {"model": experiment.model.name, "benchmark": experiment.data.benchmark}
    unknown = {k: names[k] for k, entry in needed.items() if not plugins.importable(entry)}
    return {"notebook": unknown} if unknown else {}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Say what cannot be written, and how to continue."""
    try:
        yield
    except OSError as error:
        raise ValueError(
            f"Cannot write {path}: {error.strerror or error}. Make room or choose another folder; "
            "a run that was started continues from its last checkpoint with `sfo resume`."
        ) from error
