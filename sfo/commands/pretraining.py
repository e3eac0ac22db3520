"""The command that makes the package's pretrained models, and their list."""

from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from sfo import zoo
from sfo.commands.console import plain_console


def pretrain(
    name: Annotated[list[str], tyro.conf.Positional],
    run: Path | None = None,
    out: Path | None = None,
    measure_only: bool = False,
) -> None:
    """Train and measure pretrained models, and write weights and cards into the package.

    A run that was stopped continues. The data are generated from the equation.

    For example:
    $ sfo pretrain allen_cahn
    $ sfo pretrain allen_cahn shallow_water --out my_models
    $ sfo pretrain allen_cahn --measure-only

    Args:
        name: Names of pretrained models, or all.
        run: Folder of the runs; if left out, runs/pretrained.
        out: Folder for a folder of weights and card per model; if left out, the package's own.
        measure_only: Do not train; measure the package's weights again and write their cards.
    """
    from sfo.experiments import pretraining
    from sfo.experiments.progress import training_bar
    from sfo.machine import keep_freed_blocks

    keep_freed_blocks()
    wanted = sorted(pretraining.RECIPES) if name == ["all"] else name
    if not wanted:
        raise ValueError(f"Name a pretrained model: {', '.join(pretraining.RECIPES)}, or all.")
    for one in wanted:
        pretraining.experiment_of(one)
    for one in wanted:
        if measure_only:
            card = pretraining.measure_again(one)
        else:
            with training_bar(plain_console(stderr=True)) as show:
                card = pretraining.pretrain(
                    one,
                    (run or Path("runs/pretrained")) / one,
                    out=None if out is None else out / one,
                    progress=show,
                )
        print_cards([card])


COLUMNS = """\
test %, half grid, double  relative L2 error in percent on test samples; the last two on half and
                           on twice the points per axis
ms                         the model, for one sample of a batch, on one core
solver ms (points)         the same of the coarsest solver that is as accurate as the model
speed-up                   one over the other
pays off after             solves whose saved seconds make up for data and training
Whole cards: sfo.zoo.card(NAME). Measured again by: sfo pretrain NAME --measure-only"""


def print_pretrained() -> None:
    """A table of the pretrained models that the package has."""
    print_cards([zoo.card(name) for name in zoo.names()])
    print(COLUMNS)


def print_cards(cards: list[dict[str, Any]]) -> None:
    """A row per card."""
    table = Table()
    titles = (
        "pretrained",
        "parameters",
        "grid",
        "test %",
        "half grid",
        "double",
        "ms",
        "solver ms (points)",
        "speed-up",
        "pays off after",
    )
    for title in titles:
        table.add_column(title, justify="left" if title == "pretrained" else "right")
    for card in cards:
        speed, solves = card["speed"], card["pays_off_after_solves"]
        table.add_row(
            card["name"],
            f"{card['parameters']:,}",
            "×".join(map(str, card["grid"])),
            *(
                "–" if card[key] is None else _digits(card[key])
                for key in (
                    "test_error_percent",
                    "half_grid_error_percent",
                    "double_grid_error_percent",
                )
            ),
            _digits(1000 * speed["operator_seconds"], 2),
            f"{_digits(1000 * speed['solver_seconds'])} ({speed['solver_points']})",
            _digits(speed["speed_up"], 2),
            "never" if solves is None else f"{solves:,} solves",
        )
    plain_console(width=140).print(table)


def _digits(value: float, digits: int = 3) -> str:
    """So many digits, without an exponent.

    Example:
        >>> _digits(2647.0), _digits(0.0011067)
        ('2,650', '0.00111')
    """
    return f"{float(f'{value:.{digits}g}'):,.12g}"
