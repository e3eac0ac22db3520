"""Error against the number of training samples, with a fitted power law."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfo.data.benchmarks import ScaleName
from sfo.experiments import paper
from sfo.experiments.blocks import Block, Bullets, Entry, Row, Table, pictures
from sfo.experiments.present import usual_blocks
from sfo.experiments.pretraining import experiment_of
from sfo.experiments.studies.cells import MAIN_MODELS, MODEL_TITLES
from sfo.experiments.studies.main import EPOCHS
from sfo.experiments.study import Cell, Study
from sfo.experiments.study_results import StudyResults
from sfo.registry import STUDIES
from sfo.training.config import Experiment

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BENCHMARKS = {"allen_cahn": 10_000, "cahn_hilliard": 5_000}
"""Samples that are generated, of which eight tenths train."""
SMOKE_SAMPLES, SMOKE_SIZES = 40, (8, 16, 32)
MODELS = ("sfo_recommended", "fno", "neuralop_fno")
SIZES = (125, 250, 500, 1000, 2000, 4000)
ALL_SAMPLES = 8000
"""All training samples of 10,000, for SFO alone."""
PAPER_SAMPLES = 9000
"""Training samples of the paper."""
DESK_SAMPLES = 500
"""Training samples of the desk scale: with fewer, there are as many steps as with these."""
LONG_BENCHMARK, LONG = "allen_cahn", "long"
"""Where SFO also trains on as many samples for longer, and the name of that column."""


def data_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """Three models on growing parts of one set, by Muon at 1e-2 and batches of 4."""
    cells = []
    for benchmark, samples in BENCHMARKS.items():
        for column in MODELS:
            model, preset = MAIN_MODELS[column]
            is_full = column == "sfo_recommended" and samples * 8 // 10 >= ALL_SAMPLES
            sizes: tuple[int, ...] = (*SIZES, ALL_SAMPLES) if is_full else SIZES
            if scale == "smoke":
                samples, sizes = SMOKE_SAMPLES, SMOKE_SIZES
            for n in sizes:
                experiment = Experiment.of(
                    benchmark,
                    model,
                    preset=preset,
                    scale=scale,
                    data=dict(samples=samples, train_samples=n),
                    train=dict(
                        epochs=2 if scale == "smoke" else EPOCHS * max(1, DESK_SAMPLES // n),
                        batch_size=4,
                        optimizer="muon",
                        learning_rate=1e-2,
                        schedule="one_cycle",
                        clip=1.0,
                    ),
                )
                row = f"{benchmark}, {MODEL_TITLES[column]}"
                cells.append(Cell(row, f"n={n}", experiment, seeds))
    if scale == "desk":
        row = f"{LONG_BENCHMARK}, {MODEL_TITLES['sfo_recommended']}"
        cells.append(Cell(row, LONG, long_experiment()))
    return cells


def long_experiment() -> Experiment:
    """The run of the pretrained Allen–Cahn, on as many samples as the paper's."""
    return experiment_of(LONG_BENCHMARK)


def long_published(row: str, column: str) -> paper.Published | None:
    """The paper's error beside that of the long run."""
    return paper.MAIN[LONG_BENCHMARK]["sfo"] if column == LONG else None


def power_law(sizes: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """c and p of the power law error = c · n^(−p) that fits best on logarithmic axes.

    Example:
        >>> c, p = power_law([100, 400], [8.0, 4.0])
        >>> round(c, 6), round(p, 6)
        (80.0, 0.5)
    """
    x, y = [math.log(n) for n in sizes], [math.log(e) for e in errors]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum(
        (a - mean_x) ** 2 for a in x
    )
    return math.exp(mean_y - slope * mean_x), -slope


def summarise_data(results: StudyResults) -> list[Block]:
    """The error at the paper's data size beside the paper's."""
    cell = next((f for (_, column), f in results.cells.items() if column == LONG), None)
    interval = cell.interval() if cell else None
    if cell is None or interval is None:
        return []
    run, printed = cell.cell.experiment, paper.MAIN[LONG_BENCHMARK]["sfo"]
    text = (
        f"SFO as recommended has {interval.mean:.2g} % on {results.plain_title(LONG_BENCHMARK)} "
        f"with {ALL_SAMPLES:,} training samples after {run.train.epochs} epochs "
        f"(`sfo pretrain {LONG_BENCHMARK}`); the paper prints {printed.mean:g} % for its SFO with "
        f"{PAPER_SAMPLES:,} samples after 500 epochs, on data of its own."
    )
    return [Bullets((text,))]


def curves(results: StudyResults) -> dict[str, dict[int, float]]:
    """Errors in percent by the number of training samples, for every row."""
    out: dict[str, dict[int, float]] = {}
    for (row, column), cell in results.cells.items():
        interval = cell.interval()
        if interval is not None and column != LONG:
            out.setdefault(row, {})[int(column.removeprefix("n="))] = interval.mean
    return out


def law_table(results: StudyResults) -> Table:
    """The fitted power law of every curve, and what it says for the paper's samples."""
    lines = []
    for row, curve in curves(results).items():
        if len(curve) < 3:
            continue
        c, p = power_law(list(curve), list(curve.values()))
        benchmark = row.split(",")[0]
        column = "sfo" if "SFO" in row else "fno"
        printed = paper.MAIN[benchmark].get(column)
        entries = (
            Entry(f"{p:.2f}"),
            Entry(
                f"{c * PAPER_SAMPLES**-p:.2g}",
                published="" if printed is None else f"{printed.mean:g}",
            ),
        )
        lines.append(Row(results.plain_title(row), entries))
    columns = ("", "exponent p", f"at {PAPER_SAMPLES:,} samples, %")
    note = (
        "error ≈ c n^(−p), fitted on logarithmic axes. The paper trains on 9,000 samples for 500 "
        f"epochs, these curves for {EPOCHS} epochs."
    )
    return Table("Power laws", columns, tuple(lines), (note,))


def data_figure(results: StudyResults) -> "Figure | None":
    """A panel per benchmark, a curve per model."""
    from sfo.plot.colours import COLOURS
    from sfo.plot.panels import MARKERS, legend, log_axes, panels

    drawn = {row: curve for row, curve in curves(results).items() if len(curve) > 1}
    if not drawn:
        return None
    benchmarks = list(dict.fromkeys(row.split(",")[0] for row in drawn))
    figure, axes = panels(benchmarks)
    for benchmark, one in axes.items():
        own = {row: curve for row, curve in drawn.items() if row.split(",")[0] == benchmark}
        for k, (row, curve) in enumerate(own.items()):
            label = results.plain_title(row).split(", ")[1]
            sizes = sorted(curve)
            style = dict(color=COLOURS[k], marker=MARKERS[k], ms=4, lw=1.2, label=label)
            one.plot(sizes, [curve[n] for n in sizes], **style)  # type: ignore[arg-type]
        one.set(xlabel="training samples", ylabel="error, %")
        log_axes(one, "xy")
    legend(figure, axes)
    return figure


def present_data(results: StudyResults) -> list[Block]:
    """Errors, power laws, and the curves."""
    laws = law_table(results)
    drawn = pictures(
        (
            "data",
            data_figure(results),
            "Test error against the number of training samples, on logarithmic axes.",
        )
    )
    return [*usual_blocks(results), *([laws] if laws.rows else []), *drawn]


STUDIES.register("data")(
    Study(
        "data",
        "Error against the number of training samples, %",
        "SFO as recommended and the two FNOs on growing parts of one set, with the same test "
        f"samples: {EPOCHS} epochs, and with fewer than {DESK_SAMPLES} samples as many steps as "
        f"with {DESK_SAMPLES}. Muon at 1e-2, batches of 4. The last column is SFO at about the "
        f"paper's data size and for longer, the run of `sfo pretrain {LONG_BENCHMARK}`.",
        data_cells,
        published=long_published,
        summary=summarise_data,
        titles={LONG: f"n={ALL_SAMPLES}, {long_experiment().train.epochs} epochs"},
        present=present_data,
        compared=False,
    )
)
