"""Curves for TensorBoard, where it is installed."""

from pathlib import Path
from typing import Any


class Events:
    """Writes the rows of a run's history to event files; without TensorBoard, nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._writer: Any = None

    def write(self, row: dict[str, Any]) -> None:
        """Add the numbers of one epoch; after a resume they replace those of the same steps."""
        if self._writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                return
            self._writer = SummaryWriter(str(self.folder), purge_step=row["step"])
        for name in ("loss", "validation", "learning_rate"):
            if row[name] is not None:
                self._writer.add_scalar(name, row[name], row["step"])
        self._writer.flush()
