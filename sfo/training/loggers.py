"""Where the curves of a run go besides its folder: Lightning Fabric's loggers by name."""

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lightning_fabric.loggers import CSVLogger, TensorBoardLogger
from lightning_fabric.loggers.logger import Logger

from sfo.checks import check_choice, install_command
from sfo.files import sha256

Row = dict[str, Any]
LOGGED_VALUES = ("loss", "validation", "learning_rate")
PACKAGES = {"csv": None, "mlflow": "mlflow", "tensorboard": "tensorboard", "wandb": "wandb"}
"""The loggers, and what each needs to be installed."""


def check_loggers(names: Sequence[str]) -> None:
    """Refuse loggers that are not known or not installed."""
    for name in names:
        check_choice("logger", name, PACKAGES)
        package = PACKAGES[name]
        if package is not None and find_spec(package) is None:
            raise ValueError(
                f"The logger {name} needs {package}, which is not installed: "
                f"{install_command('loggers')} brings it."
            )


class Loggers:
    """Writes the rows of a run's history to all loggers; TensorBoard's where it is installed.

    They are opened at the first row, so that a run which never trains leaves nothing behind.

    Args:
        names: Loggers besides TensorBoard.
        folder: The run's folder.
        settings: The experiment in plain values.
    """

    def __init__(self, names: Sequence[str], folder: Path, settings: Row) -> None:
        self.names = ["tensorboard", *(name for name in names if name != "tensorboard")]
        self.folder, self.settings = folder, settings
        self._open: list[Logger] | None = None

    def write(self, history: Sequence[Row]) -> None:
        """Add the last epoch; after a resume it replaces what was written of the same steps."""
        row = history[-1]
        if self._open is None:
            made = [LOGGERS[name](self.folder, self.settings, history) for name in self.names]
            self._open = [logger for logger in made if logger is not None]
        for logger in self._open:
            logger.log_metrics(_numbers(row), row["step"])
            logger.save()

    def close(self, status: str = "success") -> None:
        """Finish, so that all is on the disk or sent."""
        for logger in self._open or ():
            logger.finalize(status)
        self._open = None


def _numbers(row: Row) -> dict[str, float]:
    return {name: row[name] for name in LOGGED_VALUES if row[name] is not None}


def _tensorboard(folder: Path, settings: Row, history: Sequence[Row]) -> Logger | None:
    try:
        import torch.utils.tensorboard  # noqa: F401
    except ImportError:
        return None
    first = history[-1]["step"]
    return TensorBoardLogger(folder, name="", version="tensorboard", purge_step=first)


def _csv(folder: Path, settings: Row, history: Sequence[Row]) -> Logger:
    """One file metrics.csv, written again from the first epoch on when a run is resumed."""
    (folder / "csv" / "metrics.csv").unlink(missing_ok=True)
    logger = CSVLogger(folder, name="", version="csv", flush_logs_every_n_steps=1)
    empty: Row = dict.fromkeys(LOGGED_VALUES, "")
    for row in history[:-1]:
        logger.log_metrics({**empty, **_numbers(row)}, row["step"])
    return logger


class WandbLogger(Logger):
    """Weights & Biases: one run for the folder, which a resumed run continues.

    It is offline, in the run's folder, unless WANDB_MODE says otherwise; `wandb sync` sends it.

    Args:
        folder: The run's folder.
        settings: The experiment in plain values.
    """

    def __init__(self, folder: Path, settings: Row) -> None:
        import wandb

        self._id = _identity(folder)
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "sfo"),
            name=folder.name,
            id=self._id,
            dir=folder,
            config=settings,
            resume="allow",
            mode=mode,
            settings=wandb.Settings(silent=True, console="off"),
        )

    @property
    def name(self) -> str:
        return "wandb"

    @property
    def version(self) -> str:
        return self._id

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        self._run.log({**metrics, "step": step}, step=step)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        self._run.config.update(params)

    def finalize(self, status: str) -> None:
        self._run.finish(exit_code=0 if status == "success" else 1)


class MlflowLogger(Logger):
    """MLflow: one run for the folder, in MLFLOW_TRACKING_URI or in the folder's own store.

    Args:
        folder: The run's folder.
        settings: The experiment in plain values.
    """

    def __init__(self, folder: Path, settings: Row) -> None:
        from mlflow import MlflowClient

        # Without a server or a database: MLflow asks to be told that plain files are meant.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        store = os.environ.get("MLFLOW_TRACKING_URI") or (folder / "mlflow").absolute().as_uri()
        self._client: Any = MlflowClient(tracking_uri=store)
        found = self._client.get_experiment_by_name("sfo")
        experiment_id = found.experiment_id if found else self._client.create_experiment("sfo")
        tag = _identity(folder)
        runs = self._client.search_runs([experiment_id], f"tags.sfo_run = '{tag}'", max_results=1)
        self._run: Any = (
            runs[0]
            if runs
            else self._client.create_run(experiment_id, tags={"sfo_run": tag}, run_name=folder.name)
        )
        if not runs:
            self.log_hyperparams(settings)

    @property
    def name(self) -> str:
        return "mlflow"

    @property
    def version(self) -> str:
        return self._run.info.run_id

    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        for name, value in metrics.items():
            self._client.log_metric(self.version, name, value, step=step)

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        for part, entries in params.items():
            values = entries if isinstance(entries, dict) else {"": entries}
            for name, value in values.items():
                self._client.log_param(self.version, f"{part}.{name}".rstrip("."), str(value)[:500])

    def finalize(self, status: str) -> None:
        self._client.set_terminated(self.version, "FINISHED" if status == "success" else "KILLED")


def _identity(folder: Path) -> str:
    """A name for a run that its folder keeps when it is resumed."""
    return sha256(str(folder.resolve()))[:16]


LOGGERS: dict[str, Callable[[Path, Row, Sequence[Row]], Logger | None]] = {
    "csv": _csv,
    "mlflow": lambda folder, settings, history: MlflowLogger(folder, settings),
    "tensorboard": _tensorboard,
    "wandb": lambda folder, settings, history: WandbLogger(folder, settings),
}
