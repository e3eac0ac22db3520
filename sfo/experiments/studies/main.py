"""The main table: all models on all benchmarks; and two of them by the paper's own protocol."""

from sfo.experiments import paper
from sfo.experiments.blocks import Block, Bullets, pictures
from sfo.experiments.present import usual_blocks
from sfo.experiments.studies.cells import (
    MAIN_MODELS,
    MODEL_TITLES,
    PAPER_BENCHMARKS,
    printed_in,
)
from sfo.experiments.study import Cell, Protocol, Study
from sfo.experiments.study_results import StudyResults
from sfo.registry import STUDIES
from sfo.training.config import Experiment, Scale

MAIN_PROTOCOLS: tuple[Protocol, ...] = (
    dict(schedule="one_cycle", learning_rate=4e-3, clip=1.0),
    dict(schedule="one_cycle", learning_rate=1e-3, clip=1.0),
    dict(schedule="step", learning_rate=1e-3, clip=1.0),
)
"""From which every model and benchmark alike takes the one with the lowest validation error."""


def main_cells(scale: Scale, seeds: int) -> list[Cell]:
    """All models on all benchmarks, each with the protocol that suits it."""
    return [
        Cell(
            row=benchmark,
            column=column,
            experiment=Experiment.of(benchmark, model, preset=preset, scale=scale),
            seeds=seeds,
            # At the paper's scale its own protocol; at the smallest, numbers mean nothing.
            protocols=MAIN_PROTOCOLS if scale == "desk" else (),
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


def present_main(found: StudyResults) -> list[Block]:
    """The errors, the chosen protocols, and the errors as pictures."""
    from sfo.experiments.studies.main_figures import main_figure, parameter_figure

    drawn = pictures(
        (
            "main",
            main_figure(found),
            "The main table: our means with 95 % intervals over the seeds, and the paper's means, "
            "on logarithmic axes.",
        ),
        (
            "parameters",
            parameter_figure(found),
            "The same errors against the number of parameters of each model.",
        ),
    )
    return [*usual_blocks(found), *drawn]


def summarise_main(found: StudyResults) -> list[Block]:
    """How often SFO is best, its place, and sample by sample against the best other model."""
    from sfo.experiments.studies.verdict import paired_table, place_table, sentences

    tables = [t for t in (place_table(found), paired_table(found)) if t.rows]
    return [Bullets(tuple(sentences(found))), *tables]


def main_limits(found: StudyResults) -> list[str]:
    """That the paper has one protocol for all, where ours are chosen."""
    tuned = [f.cell for f in found.cells.values() if f.cell.tuned]
    if not tuned:
        return []
    cell = tuned[0]
    return [
        f"Protocol: in the main table, for each model and benchmark the best of "
        f"{len(cell.protocols)} by trials over 1/{cell.trial_share} of the epochs, at least "
        f"{cell.trial_least}; the paper has one for all. The other studies have the paper's, "
        "shortened."
    ]


STUDIES.register("main")(
    Study(
        "main",
        "Main table: mean relative L2 error, %",
        "Nine models of the paper, SFO also with our recommended settings, and neuraloperator's "
        "FNO. The same epochs for all. At the desk scale, for every model and benchmark alike, the "
        "schedule and the learning rate are those of three protocols with the lowest validation "
        "error after a sixth of the epochs, at least two; at others they are the paper's.",
        main_cells,
        printed_in(paper.MAIN),
        titles=MODEL_TITLES,
        present=present_main,
        summary=summarise_main,
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
