"""Make the pretrained models of the package: train, measure, and write weights and card."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from sfo import zoo
from sfo.data.benchmarks import Benchmark
from sfo.data.pairs import split
from sfo.evaluation.cost import count_parameters
from sfo.evaluation.errors import evaluate
from sfo.experiments.run import run, run_pairs
from sfo.experiments.surrogate import Solver, error_on_finer_grid, speed
from sfo.files import write_atomically
from sfo.models.operator import Operator
from sfo.models.pretrained import RUN_MODEL
from sfo.registry import BENCHMARKS, unknown_name
from sfo.training.config import Experiment
from sfo.training.folder import RunFolder

FINE_SAMPLES = 16
"""Test samples that are solved again, on twice the points and on ever coarser grids."""


@dataclass(frozen=True)
class Recipe:
    """How much data and training a pretrained model gets.

    Args:
        samples: Samples in all, of which eight tenths train.
        epochs: Passes over them.
        batch_size: Samples per step.
        learning_rate: Peak of the one-cycle schedule, for Muon. Over 140,000 steps 1e-2 diverges.
    """

    samples: int
    epochs: int
    batch_size: int
    learning_rate: float = 1e-2


RECIPES: dict[str, Recipe] = {
    "allen_cahn": Recipe(10_000, 40, 4, 4e-3),
    "burgers": Recipe(2500, 25, 4),
    "cahn_hilliard": Recipe(5000, 100, 4, 4e-3),
    "darcy": Recipe(1250, 15, 2),
    "diffusion_reaction": Recipe(2500, 25, 4),
    "diffusion_sorption": Recipe(2500, 25, 4),
    "kuramoto_sivashinsky": Recipe(10_000, 30, 4, 4e-3),
    "maxwell": Recipe(1250, 8, 1),
    "navier_stokes": Recipe(500, 20, 1),
    "shallow_water": Recipe(500, 20, 1),
}
"""Two to sixteen times the desk scale's samples."""


def experiment_of(name: str, recipe: Recipe | None = None) -> Experiment:
    """The run that gives a pretrained model: SFO as recommended, by Muon."""
    if recipe is None:
        if name not in RECIPES:
            raise ValueError(unknown_name("pretrained model", name, sorted(RECIPES)))
        recipe = RECIPES[name]
    return Experiment.of(
        name,
        "sfo",
        preset="recommended",
        scale="desk",
        data=dict(samples=recipe.samples),
        train=dict(
            epochs=recipe.epochs,
            batch_size=recipe.batch_size,
            optimizer="muon",
            learning_rate=recipe.learning_rate,
            schedule="one_cycle",
            clip=1.0,
        ),
    )


def pretrain(
    name: str,
    folder: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    experiment: Experiment | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Train a model to its end, or continue a run that was started, and add it to the package.

    Args:
        name: Name of the pretrained model and its benchmark.
        folder: The run's folder.
        out: Folder of the weights and the card; None: the package's own.
        experiment: The run; None: the package's.
        how: Goes to `run` (progress, accelerator, …).

    Returns:
        The card.
    """
    experiment = experiment or experiment_of(name)
    target = Path(out) if out is not None else zoo.FOLDER / name
    if not (Path(folder) / "record.json").exists():
        run(experiment, folder, resume="auto", **how)
    known = RunFolder(folder).experiment()
    if known != experiment:
        raise ValueError(
            f"{folder} holds another run than the one that makes {name!r}; choose another folder "
            "with --run, or delete it."
        )
    model = Operator.from_pretrained(Path(folder) / RUN_MODEL).eval()
    timing = [json.loads(line) for line in (Path(folder) / "timing.jsonl").read_text().splitlines()]
    # The quickest epoch is the one that other work on the machine disturbed least.
    seconds = experiment.train.epochs * min(row["seconds"] for row in timing)
    model.save_pretrained(target)
    return write_card(name, model, experiment, target, seconds)


def measure_again(name: str) -> dict[str, Any]:
    """Measure a pretrained model of the package again, and write its card."""
    card = zoo.card(name)
    experiment = Experiment(**card["experiment"])
    model = zoo.load_pretrained(name)
    return write_card(name, model, experiment, zoo.folder(name), card["training_seconds"])


def write_card(
    name: str, model: Operator, experiment: Experiment, target: Path, training_seconds: float
) -> dict[str, Any]:
    """Measure a model and write what there is to say of it beside its weights."""
    benchmark: Benchmark = BENCHMARKS[name]
    scale = benchmark.scale(experiment.data.scale)
    samples = experiment.data.samples or scale.samples
    parts = split(samples, experiment.data.scheme)
    points = scale.n // (scale.stored * scale.stride)
    solver = Solver(benchmark, scale, experiment.data.seed, parts.test[:FINE_SAMPLES])
    test = evaluate(model, run_pairs(experiment))
    with torch.no_grad():
        half = evaluate(model, run_pairs(experiment, points=points // 2))
        twice = error_on_finer_grid(model, solver)
    one_chunk = Solver(benchmark, scale, experiment.data.seed, parts.test[: benchmark.chunk])
    measured = speed(model, one_chunk, test.percent / 100, solver.coarse_errors())
    spent = training_seconds + len(parts.train) * measured["finest_solver_seconds"]
    saved = measured["solver_seconds"] - measured["operator_seconds"]
    card = {
        "name": name,
        "benchmark": name,
        "title": benchmark.title,
        "command": f"sfo pretrain {name}",
        "check": f"sfo pretrain {name} --measure-only",
        "experiment": experiment.model_dump(mode="json"),
        "train_samples": len(parts.train),
        "test_samples": len(parts.test),
        "parameters": count_parameters(model),
        "grid": [points] * model.n_dim,
        "test_error_percent": test.percent,
        "half_grid_error_percent": half.percent,
        "double_grid_error_percent": twice,
        "double_grid_samples": None if twice is None else len(solver.ids),
        "training_seconds": training_seconds,
        "speed": measured,
        "pays_off_after_solves": round(spent / saved) if saved > 0 else None,
    }
    write_atomically(target / zoo.CARD, json.dumps(card, indent=1).encode() + b"\n")
    return card
