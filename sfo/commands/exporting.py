"""`sfo export`: a trained model as a file that runs elsewhere."""

from pathlib import Path
from typing import Annotated, Any, cast

import tyro
from torch import nn

from sfo import zoo
from sfo.models.export import Format
from sfo.registry import unknown_name


def export(
    target: Annotated[str, tyro.conf.Positional],
    format: str = "onnx",
    grid: list[str] = [],  # noqa: B006
    out: Path | None = None,
) -> None:
    """Write a trained model to a file that runs without this package.

    The batch is dynamic, the grid is fixed. Fourier transforms become real matrix products.

    For example:
    $ sfo export runs/ac --format onnx --out ac.onnx
    $ sfo export runs/ac --format pt2 --grid 512 --out ac.pt2
    $ sfo export runs/water --format onnx --grid 64 64
    $ sfo export allen_cahn --format onnx
    $ sfo export runs/ac --format pretrained --out ac

    Args:
        target: A run's folder, one that `save_pretrained` wrote, or a pretrained model's name.
        format: pt2 for torch.export.load, onnx for onnxruntime and others, or pretrained.
        grid: Points along each axis; the training grid if left out.
        out: The file, or the folder for pretrained; if left out, NAME.pt2, NAME.onnx or NAME-model.
    """
    from sfo.checks import check_choice
    from sfo.models.export import export_model

    check_choice("format", format, Format)
    points = parse_grid(grid)
    model, known, facts = load_target(target)
    name = Path(target).resolve().name
    path = out or Path(f"{name}-model" if format == "pretrained" else f"{name}.{format}")
    done = export_model(
        model,
        path,
        format=cast(Format, format),
        grid=points or known,
        in_channels=facts.get("in_channels"),
        metadata={"data": facts} if facts else {},
    )
    if done.grid is None:
        print(f"{done.path}: for {type(model).__name__}.from_pretrained, on any grid")
        return
    size = " × ".join(map(str, done.grid))
    print(
        f"{done.path}: {done.path.stat().st_size / 1e6:.1f} MB, any batch, {size} points; its "
        f"output differs from the model's by {done.difference:.1e} in relative L2"
    )


def parse_grid(words: list[str]) -> tuple[int, ...] | None:
    """Points along each axis, from numbers or from one word such as 64x64; None: not said.

    Example:
        >>> parse_grid(["64", "64"]), parse_grid(["64x32"])
        ((64, 64), (64, 32))
    """
    numbers = [part for word in words for part in word.lower().replace("×", "x").split("x")]
    if not all(number.isascii() and number.isdigit() and int(number) > 0 for number in numbers):
        raise ValueError(
            f"`--grid` must be fixed numbers of points, as in --grid 64 64, got {' '.join(words)}: "
            "the modes and transforms of a grid are constants of the file. Export one file per "
            "grid."
        )
    return tuple(map(int, numbers)) or None


def load_target(target: str) -> tuple[nn.Module, tuple[int, ...] | None, dict[str, Any]]:
    """A model, its training grid if something besides it knows, and what is known of its data."""
    path = Path(target)
    if (path / "experiment.json").exists():
        from sfo.experiments.own import load_run

        run = load_run(path)
        return run.model, run.shape.grid.shape, run.shape.to_dict()
    if path.exists() and not (path / "config.json").exists():
        raise ValueError(
            f"{target} is no run and no saved model: it has no experiment.json and no config.json."
        )
    if not path.exists() and target in zoo.names():
        return zoo.load_pretrained(target), None, {}
    if not path.exists() and "/" not in target:
        unknown = unknown_name("pretrained model", target, zoo.names())
        raise ValueError(f"There is no run or saved model {target!r} here. {unknown}")
    from sfo.models.operator import Operator

    return Operator.from_pretrained(target), None, {}
