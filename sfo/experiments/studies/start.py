"""What of SFO's lead is its start: other models from the same guess, and SFO without it."""

from collections.abc import Mapping
from typing import Any

from sfo.data.benchmarks import ScaleName
from sfo.experiments.blocks import Block, Bullets
from sfo.experiments.studies.cells import MAIN_MODELS, MODEL_TITLES, PAPER_BENCHMARKS
from sfo.experiments.studies.main import COSTLY_MUON, main_experiment, small_batches
from sfo.experiments.study import Cell, Study, with_changes
from sfo.experiments.study_results import StudyResults
from sfo.registry import STUDIES
from sfo.titles import unbroken

OTHERS = ("fno", "neuralop_fno", "uno")
"""Models that start from SFO's guess too."""
GUESSED = "with the guess"
BARE: Mapping[str, Any] = dict(standardise=False, output_skip=False)
"""The recommended SFO on raw data, without a guess and without a linear path to the output."""


def start_cells(scale: ScaleName, seeds: int) -> list[Cell]:
    """Each model with and without the guess, by the protocol that most models choose."""
    cells = []
    for benchmark in PAPER_BENCHMARKS:
        train = small_batches(benchmark, scale)

        def cell(
            column: str,
            name: str,
            settings: Mapping[str, Any] | None = None,
            *,
            benchmark: str = benchmark,
            **train: Any,
        ) -> Cell:
            model, preset = MAIN_MODELS[name]
            run = main_experiment(benchmark, model, scale, preset, settings)
            return Cell(benchmark, column, with_changes(run, **train), seeds)

        cells.append(cell("sfo_recommended", "sfo_recommended", **train))
        cells.append(cell("sfo_bare", "sfo_recommended", BARE, **train))
        for name in OTHERS:
            if (name, benchmark) not in COSTLY_MUON:
                cells.append(cell(f"{name} {GUESSED}", name, normaliser="first_guess", **train))
                cells.append(cell(name, name, **train))
    return cells


def summarise_start(found: StudyResults) -> list[Block]:
    """On how many benchmarks SFO has the lowest error if other models start as it does."""
    means = {
        place: interval.mean
        for place, cell in found.cells.items()
        if (interval := cell.interval()) is not None
    }
    compared: list[tuple[str, float, str, float]] = []
    started: dict[str, None] = {}
    for row in found.rows:
        ours = means.get((row, "sfo_recommended"))
        others = {name: means.get((row, f"{name} {GUESSED}")) for name in OTHERS}
        known = {name: error for name, error in others.items() if error is not None}
        if ours is not None and known:
            best = min(known, key=known.__getitem__)
            compared.append((row, ours, best, known[best]))
            started |= dict.fromkeys(known)
    if not compared:
        return []
    places = "; ".join(
        f"{found.title(row)} {ours:.3g} against {error:.3g} % of {unbroken(MODEL_TITLES[best])}"
        for row, ours, best, error in compared
    )
    first = sum(ours <= error for _, ours, _, error in compared)
    names = ", ".join(unbroken(MODEL_TITLES[name]) for name in OTHERS if name in started)
    text = (
        f"Where other models start from the same first guess (study `start`, {names}), SFO as "
        f"recommended has the lowest error on {first} of {len(compared)} benchmarks: {places}."
    )
    guessed = [place for place in found.cells if place[1].endswith(GUESSED)]
    missing = [
        f"{unbroken(MODEL_TITLES[column.removesuffix(GUESSED).strip()])} on {found.title(row)}"
        for row, column in guessed
        if (row, column) not in means
    ]
    if missing:
        text += f" Not run yet: {', '.join(missing)}."
    return [Bullets((text,))]


STUDIES.register("start")(
    Study(
        "start",
        "The start: the same first guess for other models, %",
        "The recommended SFO starts from a least squares guess: each frame as a multiple of the "
        "input at the same point plus an offset, and learns what that leaves, scaled to the size "
        "of 1. Here other models start from it too (`--normaliser first_guess`), and SFO without "
        "(`standardise=false output_skip=false`). All by Muon at 1e-2 with 2/5 of the batch.",
        start_cells,
        titles={
            "sfo_recommended": f"{MODEL_TITLES['sfo_recommended']} (has the guess)",
            "sfo_bare": "without",
            **{name: "without" for name in OTHERS},
            **{f"{name} {GUESSED}": f"{MODEL_TITLES[name]} {GUESSED}" for name in OTHERS},
        },
        summary=summarise_start,
        least_columns=2,
    )
)
