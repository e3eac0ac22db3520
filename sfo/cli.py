"""The `sfo` command: parses, calls, prints."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

import sfo
from sfo.registry import BASES, MODELS


def demo(out: Path = Path("runs/demo"), epochs: int = 150, seed: int = 0) -> None:
    """Learn Burgers' equation in about a minute and draw prediction, truth and error.

    Example: sfo demo --out runs/demo

    Args:
        out: Folder for the pictures and the trained model.
        epochs: Passes over the 256 training samples.
        seed: Of data, weights and sample order.
    """
    from sfo import demo as module

    module.run(out, epochs=epochs, seed=seed)


def theory(out: Path = Path("runs/theory"), quick: bool = False) -> None:
    """Print the theory's tables and write its figures.

    Green's kernels, their expansion in every basis, the bound, the constructed solver and the
    linearised benchmarks; about a minute. Example: sfo theory --out docs/theory

    Args:
        out: Folder for the figures and `tables.md`.
        quick: Small sizes, a few seconds.
    """
    from sfo.theory import report

    report.run(out, quick=quick, console=Console())
    print(f"Figures and tables.md: {out}")


def modes(
    n: int = 256, n_modes: int = 6, basis: str = "usb", out: Path = Path("runs/modes.png")
) -> None:
    """Draw the leading modes of a basis.

    Example: sfo modes --n 1024 --n-modes 8 --basis usb

    Args:
        n: Grid points.
        n_modes: How many modes.
        basis: usb, usb_dense, hankel, fourier, chebyshev or random.
        out: The picture to write.
    """
    from sfo import plot

    figure = plot.modes(n, n_modes, basis)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=130)
    print(f"Modes: {out}")


def names() -> None:
    """List the bases and models that can be chosen by name."""
    print(f"sfo {sfo.__version__}")
    print(f"bases:  {', '.join(BASES.names())}")
    print(f"models: {', '.join(MODELS.names())}")


COMMANDS: dict[str, Callable[..., Any]] = {
    "demo": demo,
    "theory": theory,
    "modes": modes,
    "list": names,
}


def main(arguments: list[str] | None = None) -> None:
    """Run a command; what is wrong with its input is said in one line, with exit code 2."""
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="sfo",
            description="The Spectral Filtering Operator. Add --debug to see a full traceback.",
            args=arguments or ["--help"],
        )
    except (ValueError, OSError) as error:
        if debug:
            raise
        print(f"sfo: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
