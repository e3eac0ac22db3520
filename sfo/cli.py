"""The `sfo` command: parses, calls, prints."""

import inspect
import os
import select
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

import sfo
from sfo import plugins, zoo
from sfo.commands import data, exporting, playing, pretraining, studies, training
from sfo.commands.help import parsed, with_resolved_defaults
from sfo.data.benchmarks import ScaleName
from sfo.files import is_full
from sfo.registry import BASES, BENCHMARKS, MODELS


def demo(
    out: Path = Path("runs/demo"), epochs: int = 20, samples: int = 300, seed: int = 0
) -> None:
    """Generate Allen–Cahn data, train SFO and FNO for a few minutes, and write a report page.

    Example: sfo demo --out runs/demo

    Args:
        out: Folder for the runs and demo.html.
        epochs: Passes over the training data of each model.
        samples: Number of samples.
        seed: Seed of data, weights and sample order.
    """
    import webbrowser

    from sfo import demo as module

    module.run(out, epochs=epochs, samples=samples, seed=seed)
    # In the environment of `make`, the command is not on the path.
    command = "sfo" if shutil.which("sfo") else sys.argv[0]
    print(f"Draw a state yourself and see what each model makes of it: {command} play {out}")
    if sys.stdout.isatty():
        webbrowser.open((out / "demo.html").absolute().as_uri())


def theory(out: Path = Path("runs/theory"), quick: bool = False) -> None:
    """Print the theory's tables and write its figures.

    Green's kernels, their expansion in every basis, the bound, the constructed solver and the
    linearised benchmarks; about a minute. Example: sfo theory --out docs/theory

    Args:
        out: Folder for the figures and `tables.md`.
        quick: Use small sizes, which take a few seconds.
    """
    from sfo.report import theory as report

    report.run(out, quick=quick, console=Console())
    print(f"Figures and tables.md: {out}")


def modes(
    n: int = 256, n_modes: int = 6, basis: str = "usb", out: Path = Path("runs/modes.png")
) -> None:
    """Draw the leading modes of a basis.

    Example: sfo modes --n 1024 --n-modes 8 --basis usb

    Args:
        n: Number of grid points.
        n_modes: Number of modes.
        basis: Name of the basis: usb, usb_dense, hankel, fourier, chebyshev or random.
        out: The picture to write.
    """
    from sfo import plot
    from sfo.files import save_figure

    save_figure(plot.modes(n, n_modes, basis), out, dpi=130)
    print(f"Modes: {out}")


def show(
    target: Annotated[str, tyro.conf.Positional],
    scale: ScaleName = "smoke",
    samples: int = 4,
    seed: int = 0,
    out: Path | None = None,
    option: data.Options = [],  # noqa: B006
) -> None:
    """Draw samples of a benchmark or a data file, or say how a run went.

    For example:
    $ sfo show allen_cahn --scale desk --samples 6
    $ sfo show data.hdf5
    $ sfo show mine.npz
    $ sfo show runs/ac

    Args:
        target: A benchmark, a data file or a run's folder.
        scale: Size of a benchmark's data.
        samples: Number of samples to draw.
        seed: Seed of the benchmark's data.
        out: The picture; if left out, runs/NAME.png.
        option: An option of the benchmark or a constant of its equation, as name=value.
    """
    from sfo.commands import showing

    options = data.parse_options(option)
    showing.show(target, scale=scale, samples=samples, seed=seed, out=out, options=options)


def names(
    model: Annotated[str | None, tyro.conf.Positional] = None, pretrained: bool = False
) -> None:
    """List what can be chosen by name; of a model, list its settings.

    For example:
    $ sfo list
    $ sfo list fno
    $ sfo list --pretrained

    Args:
        model: A model whose settings to list.
        pretrained: List the pretrained models of the package, with their errors and speed.
    """
    if pretrained:
        from sfo.commands.pretraining import print_pretrained

        print_pretrained()
        return
    if model is not None:
        for parameter in inspect.signature(MODELS[model]).parameters.values():
            print(parameter)
        return
    plugins.load_installed()
    print(f"sfo {sfo.__version__}")
    print(f"bases:      {', '.join(BASES.names())}")
    print(f"models:     {', '.join(MODELS.names())}")
    print(f"benchmarks: {', '.join(BENCHMARKS.names())}")
    print(f"pretrained: {', '.join(zoo.names())}")


COMMANDS: dict[str, Callable[..., Any]] = {
    "demo": demo,
    "generate": data.generate,
    "show": show,
    "download": data.download,
    "doctor": data.doctor,
    "train": training.train,
    "resume": training.resume,
    "evaluate": training.evaluate,
    "predict": training.predict,
    "export": exporting.export,
    "pretrain": pretraining.pretrain,
    "play": playing.play,
    "reproduce": studies.reproduce,
    "report": studies.report,
    "theory": theory,
    "modes": modes,
    "list": names,
}


def model_settings(arguments: list[str]) -> list[str]:
    """`--model.n-modes 16` as `--setting n_modes=16`, because the settings differ between models.

    Example:
        >>> model_settings(["train", "--model.n-modes", "16", "--model.basis=fourier"])
        ['train', '--setting', 'n_modes=16', '--setting', 'basis=fourier']
    """
    out, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--model."):
            out.append(word)
            continue
        name, equals, value = word.removeprefix("--model.").partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ValueError(f"`{word}` needs a value, as in {word} 16 or {word} true.")
            value = rest.pop(0)
        out += ["--setting", f"{name.replace('-', '_')}={value}"]
    return out


def plugin_options(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The values of `--plugin`, an option of every command, and the other arguments.

    Example:
        >>> plugin_options(["train", "--plugin", "mine.py", "--seed", "1", "--plugin=other"])
        (['mine.py', 'other'], ['train', '--seed', '1'])
    """
    found, others, rest = [], [], list(arguments)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if name != "--plugin":
            others.append(word)
            continue
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise ValueError("`--plugin` needs a Python file or a module, as --plugin mine.py.")
            value = rest.pop(0)
        found.append(value)
    return found, others


def _reader_is_gone() -> bool:
    """Whether whoever read our output has closed it, as `sfo list | head -1` does."""
    if not hasattr(select, "poll"):  # Windows ends programs otherwise.
        return False
    watcher = select.poll()
    # No event but the end of its other side, which is always reported.
    watcher.register(sys.stdout.fileno(), 0)
    if not watcher.poll(0):
        return False
    # What is left in the buffer goes nowhere, so that the interpreter ends without a word.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True


def main(arguments: list[str] | None = None) -> None:
    """Run a command; what is wrong with its input is said in one line, with exit code 2.

    A closed pipe ends it without a word and with the exit code 141, as it does other programs.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    arguments = [a for a in arguments if a != "--debug"]
    if arguments == ["--version"]:
        print(f"sfo {sfo.__version__}")
        return
    try:
        named, arguments = plugin_options(arguments)
        plugins.load_all(named)
        commands = {name: with_resolved_defaults(command) for name, command in COMMANDS.items()}
        words = model_settings(arguments) or ["--help"]
        call = parsed(
            lambda: tyro.extras.subcommand_cli_from_dict(
                commands,
                prog="sfo",
                description="The Spectral Filtering Operator. Every command takes --plugin FILE or "
                "MODULE, which registers models, benchmarks and bases of your own, and --debug, to "
                "see a full traceback.",
                args=words,
            )
        )
        call()
        # Here, and not when the interpreter ends, whose error nobody could catch.
        sys.stdout.flush()
    except (ValueError, OSError) as error:
        if debug:
            raise
        if isinstance(error, BrokenPipeError) and _reader_is_gone():
            sys.exit(128 + signal.SIGPIPE)
        hint = " Make room, or choose another place." if is_full(error) else ""
        print(f"sfo: {error}{hint}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:
        if debug:
            raise
        print(f"sfo: there is not enough memory: {error or 'nothing is free'}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
