"""What the paper's studies have in common: its benchmarks and models, and cells of its SFO.

Cells of different studies that ask for the same experiment share its Record.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfo.data.benchmarks import ScaleName
from sfo.experiments import paper
from sfo.experiments.study import Cell
from sfo.models.build import Preset
from sfo.models.presets import paper_settings
from sfo.models.sfo import SFO
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment

PAPER_BENCHMARKS = (
    "allen_cahn",
    "diffusion_sorption",
    "diffusion_reaction",
    "cahn_hilliard",
    "shallow_water",
    "maxwell",
)
"""The paper's benchmarks, in the order of its tables."""

MAIN_MODELS: dict[str, tuple[str, Preset]] = {
    "sfo": ("sfo", "paper"),
    "sfo_recommended": ("sfo", "recommended"),
    "svd_no": ("svd_no", "paper"),
    "fno": ("fno", "paper"),
    "mno": ("mno", "paper"),
    "uno": ("uno", "paper"),
    "pino": ("pino", "paper"),
    "mpnn": ("mpnn", "paper"),
    "transolver": ("transolver", "paper"),
    "deeponet": ("deeponet", "paper"),
    "neuralop_fno": ("neuralop_fno", "paper"),
}
"""Columns of the main table: model and preset. The last is the FNO that users would pick."""

MODEL_TITLES = {
    "sfo": "SFO",
    "sfo_recommended": "SFO recom\u00admended",
    "svd_no": "SVD-NO",
    "fno": "FNO",
    "mno": "MNO",
    "uno": "UNO",
    "pino": "PINO",
    "mpnn": "MPNN",
    "transolver": "Transolver",
    "deeponet": "DeepONet",
    "neuralop_fno": "neural\u00adoperator FNO",
}
"""Titles of these columns. A soft hyphen is where a narrow column may break one."""


def points(benchmark: str, scale: ScaleName) -> int:
    """Points along the shortest axis of what a model sees."""
    kind = BENCHMARKS[benchmark]
    size = kind.scale(scale)
    return min(kind.stored(size)[0].subsample(size.stride).shape)


Settings = Mapping[str, Any]
AS_PAPER: Settings = {}
RANKS = (4, 8, 12, 16, 20, 24, 32)
WIDTHS = (32, 64, 128)


def sfo_cells(
    columns: Mapping[str, Settings], benchmarks: Iterable[str] = PAPER_BENCHMARKS
) -> Callable[[ScaleName, int], list[Cell]]:
    """The paper's SFO by the paper's protocol, with some settings changed in each column.

    A column with more modes than an axis has points is left out. What the preset says anyway is
    not said again, so that columns of different studies share a run.
    """

    def cells(scale: ScaleName, seeds: int) -> list[Cell]:
        found = []
        for benchmark in benchmarks:
            preset = _preset(benchmark, scale)
            for column, settings in columns.items():
                if settings.get("n_modes", 0) <= points(benchmark, scale):
                    news = {k: v for k, v in settings.items() if preset[k] != v}
                    experiment = Experiment.of(benchmark, scale=scale, settings=news)
                    found.append(Cell(benchmark, column, experiment, seeds))
        return found

    return cells


def _preset(benchmark: str, scale: ScaleName) -> dict[str, Any]:
    """The paper's SFO for a benchmark, on the grid of a scale."""
    arguments = inspect.signature(SFO).parameters
    shape = [points(benchmark, scale)]
    settings = SFO.on_grid(paper_settings(SFO, benchmark), shape)
    return {k: v.default for k, v in arguments.items()} | settings


def printed_in(
    table: Mapping[str, Mapping[Any, Any]], columns: Mapping[str, Any] | None = None
) -> Callable[[str, str], paper.Published | None]:
    """Look up one of the paper's tables; `columns` gives its name of ours."""

    def published(row: str, column: str) -> paper.Published | None:
        key = column if columns is None else columns.get(column)
        value = table.get(row, {}).get(key)
        return paper.Published(value) if isinstance(value, float) else value

    return published
