"""The studies: every table and figure of the paper, and some beyond it, as lists of runs.

A study is a table whose rows are benchmarks. Each cell stands for one experiment over several
seeds; cells of different studies that ask for the same experiment share its Record.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sfo.experiments import paper
from sfo.experiments.study import Cell, Study
from sfo.models.build import Preset
from sfo.models.sfo import SFO
from sfo.registry import BENCHMARKS, Registry
from sfo.training.config import Experiment, Scale

PAPER_BENCHMARKS = (
    "allen_cahn",
    "diffusion_sorption",
    "diffusion_reaction",
    "cahn_hilliard",
    "shallow_water",
    "maxwell",
)
"""In the order of the paper's tables."""

STUDIES: Registry[Study] = Registry("study")

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


def points(benchmark: str, scale: Scale) -> int:
    """Points along the shortest axis of what a model sees."""
    kind = BENCHMARKS[benchmark]
    size = kind.scale(scale)
    return min(kind.stored(size)[0].subsample(size.stride).shape)


def main_cells(scale: Scale, seeds: int) -> list[Cell]:
    """All models on all benchmarks, each with the protocol that suits it."""
    return [
        Cell(
            row=benchmark,
            column=column,
            experiment=Experiment.of(benchmark, model, preset=preset, scale=scale),
            seeds=seeds,
            # At the paper's scale its own protocol; at the smallest, numbers mean nothing.
            tuned=scale == "desk",
        )
        for benchmark in PAPER_BENCHMARKS
        for column, (model, preset) in MAIN_MODELS.items()
    ]


def fixed_cells(scale: Scale, seeds: int) -> list[Cell]:
    """SFO and FNO by the paper's protocol."""
    return [
        Cell(benchmark, model, Experiment.of(benchmark, model, scale=scale), seeds)
        for benchmark in PAPER_BENCHMARKS
        for model in ("sfo", "fno")
    ]


def zero_shot_cells(scale: Scale, seeds: int) -> list[Cell]:
    """SFO and FNO by the paper's protocol, and those of the main table that users would pick."""
    picked = ("sfo_recommended", "neuralop_fno")
    return fixed_cells(scale, seeds) + [c for c in main_cells(scale, seeds) if c.column in picked]


Settings = Mapping[str, Any]


def sfo_cells(
    columns: Mapping[str, Settings], benchmarks: Iterable[str] = PAPER_BENCHMARKS
) -> Callable[[Scale, int], list[Cell]]:
    """The paper's SFO by the paper's protocol, with some settings changed in each column.

    A column with more modes than an axis has points is left out. What the preset says anyway is
    not said again, so that columns of different studies share a run.
    """

    def cells(scale: Scale, seeds: int) -> list[Cell]:
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


def _preset(benchmark: str, scale: Scale) -> dict[str, Any]:
    """The paper's SFO for a benchmark, on the grid of a scale."""
    arguments = inspect.signature(SFO).parameters
    shape = [points(benchmark, scale)]
    paper_settings = SFO.on_grid(SFO.PAPER[benchmark], shape)
    return {k: v.default for k, v in arguments.items()} | paper_settings


def subsample_cells(scale: Scale, seeds: int) -> list[Cell]:
    """Trained and tested on every s-th point; at least four of them must be left."""
    return [
        Cell(
            benchmark,
            f"s={s}",
            Experiment.of(
                benchmark,
                scale=scale,
                data={} if s == 1 else dict(stride=s * BENCHMARKS[benchmark].scale(scale).stride),
            ),
            seeds,
        )
        for benchmark in PAPER_BENCHMARKS
        for s in (1, *SUBSAMPLES)
        if points(benchmark, scale) >= 4 * s
    ]


SUBSAMPLES = (2, 4, 6, 8, 10)
RANKS = (4, 8, 12, 16, 20, 24, 32)
WIDTHS = (32, 64, 128)
AS_PAPER: Settings = {}


def _nothing(row: str, column: str) -> None:
    return None


def _table(
    table: Mapping[str, Mapping[Any, Any]], columns: Mapping[str, Any] | None = None
) -> Callable[[str, str], paper.Published | None]:
    """Look up one of the paper's tables; `columns` gives its name of ours."""

    def published(row: str, column: str) -> paper.Published | None:
        key = column if columns is None else columns.get(column)
        value = table.get(row, {}).get(key)
        return paper.Published(value) if isinstance(value, float) else value

    return published


def _add(study: Study) -> None:
    STUDIES.register(study.name)(study)


_add(
    Study(
        "main",
        "Main table: mean relative L2 error, %",
        "Nine models of the paper, SFO also with our recommended settings, and neuraloperator's "
        "FNO. The same epochs for all. At the desk scale, for every model and benchmark alike, the "
        "schedule and the learning rate are those of three protocols with the lowest validation "
        "error after a sixth of the epochs, at least two; at others they are the paper's.",
        main_cells,
        _table(paper.MAIN),
    )
)
_add(
    Study(
        "fixed",
        "The paper's fixed protocol: SFO and FNO, %",
        "Adam at 1e-3, halved every fifth of the run, no clipping: what the paper does, shortened.",
        fixed_cells,
        _table(paper.MAIN),
    )
)
_add(
    Study(
        "basis",
        "Fixed orthonormal bases, %",
        "SFO with other bases. usb_dense is the basis as the paper's own code computes it, by a "
        "dense eigensolver that returns noise beyond the first dozen modes.",
        sfo_cells(
            {
                "usb": AS_PAPER,
                "usb_dense": dict(basis="usb_dense"),
                "fourier": dict(basis="fourier"),
                "chebyshev": dict(basis="chebyshev"),
                "random": dict(basis="random"),
            }
        ),
        _table(paper.BASIS),
    )
)
_add(
    Study(
        "glu",
        "GLU against MLP, %",
        "The pointwise update of a layer.",
        sfo_cells({"mlp": AS_PAPER, "glu": dict(update="glu")}),
        _table(paper.GLU),
    )
)
_add(
    Study(
        "index",
        "Tied index against multi-index, L = 6, %",
        "L modes against L^M, where M is the number of axes.",
        sfo_cells(
            {"tied": dict(n_modes=6), "multi": dict(n_modes=6, index="multi")},
            PAPER_BENCHMARKS[4:],
        ),
        _table(paper.INDEX),
    )
)
_add(
    Study(
        "rank",
        "The number of modes L, %",
        "Ranks above the number of points along an axis are left out.",
        sfo_cells({f"L={rank}": dict(n_modes=rank) for rank in RANKS}),
        _table(paper.RANK, {f"L={rank}": rank for rank in RANKS}),
    )
)
_add(
    Study(
        "width",
        "The lifting dimension d, %",
        "All other settings as in the paper.",
        sfo_cells({f"d={width}": dict(hidden_channels=width) for width in WIDTHS}),
        _table(paper.WIDTH, {f"d={width}": width for width in WIDTHS}),
    )
)
_add(
    Study(
        "tune",
        "Grid search over L and d, %",
        "The test error of each, and the choice by validation error beside the paper's choice.",
        sfo_cells(
            {
                f"L={rank}, d={width}": dict(n_modes=rank, hidden_channels=width)
                for rank in (16, 20)
                for width in WIDTHS
            }
        ),
        _nothing,
    )
)
_add(
    Study(
        "coefficients",
        "Learned coefficients: the norm of each mode's matrix",
        "‖Θₗ‖_F of each mode, the mean over the layers.",
        sfo_cells({"sfo": AS_PAPER}),
        _nothing,
        analyses=("coefficients",),
    )
)
_add(
    Study(
        "subsample",
        "Trained on every s-th point, %",
        "Fewer modes where fewer points are left, as in the paper. Below four points an axis, "
        "no run.",
        subsample_cells,
        _table(paper.SUBSAMPLE, {f"s={s}": s for s in SUBSAMPLES}),
    )
)
_add(
    Study(
        "zero-shot",
        "Zero-shot: trained on one grid, tested on others, %",
        "The paper's SFO by its own protocol, with the modes rebuilt on the new grid, as the paper "
        "does, or those of the trained grid restricted to it, and FNO likewise; our recommended "
        "settings, which restrict, and neuraloperator's FNO as in the main table. Finer grids "
        "only where the solver has them.",
        zero_shot_cells,
        _nothing,
        analyses=("transfer",),
    )
)
_add(
    Study(
        "boundary",
        "Boundary and interior, %",
        "The error in a band of a tenth of the points along every side, and in the rest.",
        sfo_cells({"sfo": AS_PAPER, "reflect": dict(support="two_sided", boundary="reflect")}),
        _nothing,
    )
)
_add(
    Study(
        "design",
        "Beyond the paper: one change at a time, %",
        "Kernels that reach to both sides; what lies beyond the edge; a pointwise path beside "
        "the kernel; no normalisation of the lifted field; no normalisation in the layers; "
        "Maxwell's components mixed instead of apart.",
        lambda scale, seeds: [
            cell
            for benchmark in PAPER_BENCHMARKS
            for cell in sfo_cells(
                {
                    "paper": AS_PAPER,
                    "two_sided": dict(support="two_sided"),
                    "zero": dict(support="two_sided", boundary="zero"),
                    "reflect": dict(support="two_sided", boundary="reflect"),
                    "skip": dict(skip=True),
                    "no_lift_norm": dict(lift_norm=None),
                    "no_norm": dict(norm=None),
                    **({"mixed": dict(components=1)} if benchmark == "maxwell" else {}),
                },
                [benchmark],
            )(scale, seeds)
        ],
        _nothing,
    )
)
