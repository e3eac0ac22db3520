"""The main tables: all models on all benchmarks; and two of them by the paper's own protocol."""

from collections.abc import Mapping
from typing import Any

from sfo.data.benchmarks import ScaleName
from sfo.experiments import paper
from sfo.experiments.blocks import Block, Bullets, Entry, Row, Table, pictures, ranked
from sfo.experiments.present import usual_blocks
from sfo.experiments.seconds import run_seconds
from sfo.experiments.studies.cells import (
    MAIN_MODELS,
    MODEL_TITLES,
    PAPER_BENCHMARKS,
    printed_in,
)
from sfo.experiments.study import Cell, Protocol, Study
from sfo.experiments.study_results import CellResults, StudyResults
from sfo.models.build import Preset
from sfo.registry import STUDIES
from sfo.training.config import Experiment
from sfo.training.protocols import protocol

ADAM_PROTOCOLS: tuple[Protocol, ...] = (
    dict(schedule="one_cycle", learning_rate=4e-3, clip=1.0),
    dict(schedule="one_cycle", learning_rate=1e-3, clip=1.0),
    dict(schedule="step", learning_rate=1e-3, clip=1.0),
)
"""From which every model and benchmark alike takes the one with the lowest validation error."""
ADAM_MODELS: dict[str, tuple[str, Preset]] = {
    **MAIN_MODELS,
    "sfo_recommended": ("sfo", "recommended-0.3"),
}
EPOCHS = 20
"""Epochs of the main table on one axis; on more, as many as the desk scale has."""
COSTLY_MUON = {("uno", "shallow_water"), ("uno", "maxwell")}
"""Where a step with Muon takes more than three times Adam's: millions of weights per layer."""


def main_protocols(benchmark: str, model: str, scale: ScaleName) -> tuple[Protocol, ...]:
    """Ways to train, from which every model and benchmark alike takes the best on validation.

    Adam, and Muon at two rates, with the scale's batch; and Muon with 2/5 of it, at least 1.
    """
    if scale != "desk":
        # At the paper's scale its own protocol; at the smallest, numbers mean nothing.
        return ()
    cycle: dict[str, Any] = dict(schedule="one_cycle", clip=1.0)
    adam = dict(cycle, learning_rate=4e-3)
    if (model, benchmark) in COSTLY_MUON:
        return (adam,)
    muon = dict(cycle, optimizer="muon", learning_rate=1e-2)
    found = [adam, muon, dict(muon, learning_rate=3e-3)]
    batch = protocol(benchmark, scale)["batch_size"]
    if batch > 1:
        found.append(dict(muon, batch_size=max(1, 2 * batch // 5)))
    return tuple(found)


def main_experiment(
    benchmark: str,
    model: str,
    scale: ScaleName,
    preset: Preset = "paper",
    settings: Mapping[str, Any] | None = None,
) -> Experiment:
    """A run of the main table, its protocol still open."""
    train = dict(epochs=EPOCHS) if scale == "desk" and _is_1d(benchmark) else {}
    return Experiment.of(
        benchmark, model, preset=preset, scale=scale, settings=dict(settings or {}), train=train
    )


def small_batches(benchmark: str, scale: ScaleName) -> dict[str, Any]:
    """The protocol that most trials of the main table choose: Muon with 2/5 of the batch."""
    batch = Experiment.of(benchmark, scale=scale).train.batch_size
    return dict(
        schedule="one_cycle",
        clip=1.0,
        optimizer="muon",
        learning_rate=1e-2,
        batch_size=max(1, 2 * batch // 5),
    )


def _is_1d(benchmark: str) -> bool:
    return benchmark in PAPER_BENCHMARKS[:4]


def main_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """All models on all benchmarks, each with the protocol that suits it."""
    return [
        Cell(
            benchmark,
            column,
            main_experiment(benchmark, model, scale, preset),
            seeds,
            protocols=main_protocols(benchmark, model, scale),
            trial_share=4,
            trial_least=3,
        )
        for benchmark in PAPER_BENCHMARKS
        for column, (model, preset) in MAIN_MODELS.items()
    ]


def main_adam_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """The main table of version 0.3."""
    return [
        Cell(
            benchmark,
            column,
            Experiment.of(benchmark, model, preset=preset, scale=scale),
            seeds,
            protocols=ADAM_PROTOCOLS if scale == "desk" else (),
        )
        for benchmark in PAPER_BENCHMARKS
        for column, (model, preset) in ADAM_MODELS.items()
    ]


def fixed_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """SFO and FNO by the paper's protocol."""
    return [
        Cell(benchmark, model, Experiment.of(benchmark, model, scale=scale), seeds)
        for benchmark in PAPER_BENCHMARKS
        for model in ("sfo", "fno")
    ]


def present_main(results: StudyResults) -> list[Block]:
    """The errors, the seconds, the chosen protocols, and the errors as a picture."""
    from sfo.experiments.studies.main_figures import main_figure

    errors, *protocols = usual_blocks(results)
    seconds = seconds_table(results)
    drawn = pictures(
        (
            "main",
            main_figure(results),
            "The main table: our means with 95 % intervals over the seeds, and the paper's means, "
            "on logarithmic axes.",
        ),
    )
    return [errors, *([seconds] if seconds.rows else []), *protocols, *drawn]


def present_main_adam(results: StudyResults) -> list[Block]:
    """The errors, the chosen protocols, and the errors as pictures."""
    from sfo.experiments.studies.main_figures import main_figure, parameter_figure

    drawn = pictures(
        (
            "main-adam",
            main_figure(results),
            "The main table of version 0.3: our means with 95 % intervals over the seeds, and the "
            "paper's means, on logarithmic axes.",
        ),
        (
            "parameters",
            parameter_figure(results),
            "The same errors against the number of parameters of each model.",
        ),
    )
    return [*usual_blocks(results), *drawn]


def seconds_table(results: StudyResults) -> Table:
    """Training seconds of the runs on one thread, and as multiples of neuraloperator's FNO."""
    measured = results.measured("seconds")
    lines = []
    for row in results.rows:
        seconds = {
            column: value
            for column in results.columns
            if (cell := results.cells.get((row, column)))
            and (value := cell_seconds(cell, measured)) is not None
        }
        if not seconds:
            continue
        unit = seconds.get("neuralop_fno")
        entries = [
            Entry("–")
            if (value := seconds.get(column)) is None
            else Entry(f"{value:.3g}" + (f" ({value / unit:.2g}×)" if unit else ""), value)
            for column in results.columns
        ]
        lines.append(Row(results.title(row), tuple(ranked(entries))))
    note = (
        "Seconds of the training steps of one run with the chosen protocol, on one thread; in "
        "brackets, as a multiple of neuraloperator's FNO on the same benchmark. Measured by "
        "`sfo reproduce seconds`: steps that take turns with neuraloperator's."
    )
    columns = ("", *map(results.title, results.columns))
    return Table("Training seconds", columns, tuple(lines), (note,))


def cell_seconds(cell: CellResults, measured: Mapping[str, Any] | None) -> float | None:
    """Training seconds of a cell's first run."""
    return run_seconds(cell.runs[0], measured) if cell.runs and cell.records else None


def summarise_main(results: StudyResults) -> list[Block]:
    """How often SFO is best, its place, and sample by sample against the best other model."""
    from sfo.experiments.studies.verdict import paired_table, rank_table, sentences

    tables = [t for t in (rank_table(results), paired_table(results)) if t.rows]
    return [Bullets(tuple(sentences(results))), *tables]


def main_limits(results: StudyResults) -> list[str]:
    """That the paper has one protocol for all, where ours are chosen."""
    tuned = [f.cell for f in results.cells.values() if f.cell.tuned]
    if not tuned:
        return []
    cell = tuned[0]
    return [
        f"Protocol: in the study {results.study.name}, for each model and benchmark the best of "
        f"{len(cell.protocols)} by trials over 1/{cell.trial_share} of the epochs, at least "
        f"{cell.trial_least}; the paper has one for all. The ablations have the paper's, "
        "shortened."
    ]


STUDIES.register("main")(
    Study(
        "main",
        "Main table: mean relative L2 error, %",
        "Nine models of the paper, SFO also with our recommended settings, and neuraloperator's "
        f"FNO. The same epochs for all: {EPOCHS} on one axis and 10 on more at the desk scale. "
        "There, for every model and benchmark alike, the protocol is the one of four with the "
        "lowest validation error after a quarter of the epochs: Adam at 4e-3, Muon at 1e-2 and "
        "3e-3, and Muon at 1e-2 with 2/5 of the batch. Left out is Muon for UNO on two and three "
        "axes, where its step takes more than three times Adam's.",
        main_cells,
        printed_in(paper.MAIN),
        titles=MODEL_TITLES,
        present=present_main,
        summary=summarise_main,
        limits=main_limits,
    )
)
STUDIES.register("main-adam")(
    Study(
        "main-adam",
        "The main table with Adam: mean relative L2 error, %",
        "The main table of version 0.3, with the settings that it recommended for SFO and three "
        "times the epochs on one axis. At the desk scale, for every model and benchmark alike, the "
        "schedule and the learning rate are those of three protocols with the lowest validation "
        "error after a sixth of the epochs, at least two; at others they are the paper's.",
        main_adam_cells,
        printed_in(paper.MAIN),
        titles=MODEL_TITLES,
        present=present_main_adam,
        limits=main_limits,
    )
)
STUDIES.register("fixed")(
    Study(
        "fixed",
        "The paper's fixed protocol: SFO and FNO, %",
        "Adam at 1e-3, halved every fifth of the run, no clipping: what the paper does, shortened.",
        fixed_cells,
        printed_in(paper.MAIN),
        titles=MODEL_TITLES,
    )
)
