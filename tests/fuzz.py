"""Random command lines and configurations, and what a command must never do to them.

A case is its number: the same number gives the same words. Each runs in a forked process, in a
folder with files of every kind, which must be there unchanged afterwards.
"""

import copy
import dataclasses
import hashlib
import inspect
import json
import os
import random
import sys
import traceback
import types
import typing
from pathlib import Path

import h5py
import numpy as np
import tyro
from training.small_runs import ended, in_child

from sfo import cli
from sfo.commands.training import TrainFlags
from sfo.registry import BASES, BENCHMARKS, MODELS

SECONDS = 60
"""How long a command may take on the data here."""
TINY = "--setting n_modes=4 --setting hidden_channels=8 --setting n_layers=1"
TRAIN = f"train --benchmark allen_cahn --scale smoke --samples 12 --epochs 1 {TINY}"
BASES_OF_LINES = {
    "train": [f"{TRAIN} --out NEW", "train --data mine.npz --epochs 1 --out NEW"],
    "generate": ["generate allen_cahn --scale smoke --samples 3 --workers 1 --out NEW"],
    "show": ["show run", "show mine.npz --out NEW.png", "show data.hdf5 --out NEW.png"],
    "download": ["download diffusion_sorption --address file:data.hdf5 --out NEW"],
    "doctor": ["doctor PATH"],
    "resume": ["resume run", "resume PATH"],
    "evaluate": ["evaluate run", "evaluate PATH"],
    "predict": ["predict run input.npy --out NEW.npy", "predict run PATH --out NEW.npy"],
    "export": ["export PATH --out NEW"],
    "report": ["report run --out NEW", "report PATH --out NEW"],
    "modes": ["modes --out NEW.png"],
    "list": ["list", "list NAME"],
    # With a value that ends them: what they do takes minutes, or until they are stopped.
    "demo": ["demo --out NEW --samples 0"],
    "pretrain": ["pretrain nothing"],
    "play": ["play --no-browser --port 99999999"],
    "reproduce": ["reproduce nothing --out NEW"],
    "theory": ["theory --quick NAME"],
}
WEIGHTS = {"train": 8, "generate": 4, "predict": 4, "evaluate": 3, "show": 3}
LEFT_OUT = {"memory", "debug", "engine", "workers", "browser", "pretrained"}
"""Options that start processes of their own."""
ENDING = {"demo": {"samples"}, "play": {"port"}, "download": {"address"}}
"""Options whose value ends a command, and stays."""
FEW = {"epochs", "samples", "train_samples", "n", "n_modes", "loader_workers"}
"""Numbers that may be as large as a user has time for."""
SMALL = ["1", "2", "3", "5", "8"]
BAD_NUMBERS = ["0", "-1", "ten", "nan", "inf", "1e400", "", "1.5", "0x10", "[1]", "½", "1_0"]
HUGE = ["99999999", str(2**63), str(10**30)]
WORDS = ["", "nothing", "-", "--", "ü", "a b", "[/b]", "../..", "*", "\t", "none", "0", "null"]
JUNK = [None, True, -1, 0, 1, 2.5, 1e-300, 10**30, "", "x", "1", [], [1], {}, {"a": 1}]
PATHS = [
    "run", "data.hdf5", "mine.npz", "input.npy", "nan.npy", "complex.npy", "empty.npy",
    "broken.npz", "broken.hdf5", "notes.txt", "empty", "folder", "nowhere", "nowhere/deeper",
    ".", "/dev/null", "run/experiment.json", "run/record.json", "broken-run", "link",
]  # fmt: skip


def files(folder: Path) -> None:
    """Files of every kind: good, damaged, and of others."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(20, 1, 16)).astype("f4")
    np.savez(folder / "mine.npz", a=a, u=2 * a)
    a = rng.normal(size=(2, 1, 64)).astype("f4")
    np.save(folder / "input.npy", a)
    np.save(folder / "complex.npy", a + 1j)
    np.save(folder / "empty.npy", a[:0])
    a[1, 0, 5] = np.nan
    np.save(folder / "nan.npy", a)
    (folder / "broken.npz").write_bytes((folder / "mine.npz").read_bytes()[:500])
    (folder / "notes.txt").write_text("Do not lose me.\n")
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "folder" / "kept.txt").write_text("Nor me.\n")
    os.environ["SFO_DATA"] = str(folder / "cache")
    quietly(f"generate allen_cahn --scale smoke --samples 12 --workers 1 --out {folder}/data.hdf5")
    whole = (folder / "data.hdf5").read_bytes()
    (folder / "broken.hdf5").write_bytes(whole[: len(whole) // 2])
    with h5py.File(folder / "other.hdf5", "w") as file:
        file["a"] = a
    quietly(f"{TRAIN} --out {folder}/run")
    (folder / "broken-run").mkdir()
    text = (folder / "run" / "experiment.json").read_text()
    (folder / "broken-run" / "experiment.json").write_text(text[: len(text) // 2])
    (folder / "link").symlink_to(folder / "notes.txt")


def quietly(line: str) -> None:
    process = in_child(run_words, line.split(), Path(os.devnull))
    assert ended(process, 300) == 0, line


def run_words(words: list[str], log: Path) -> None:
    """In a child: the command, with all that it prints in a file."""
    with open(log, "w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    # Not those of pytest, which keeps what is written to them.
    sys.stdout, sys.stderr = (os.fdopen(stream, "w", closefd=False) for stream in (1, 2))
    try:
        cli.main(words)
    except Exception:
        traceback.print_exc()
        raise SystemExit(1) from None
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def fingerprints(folder: Path) -> dict[str, str]:
    """The files that are there to stay, by their bytes; lock files may come."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("lock")
    }


def problem_of(words: list[str], folder: Path, before: dict[str, str]) -> str | None:
    """What is wrong with how a command ends, if anything."""
    log = folder.parent / "log.txt"
    os.chdir(folder)
    process = in_child(run_words, words, log)
    try:
        code = ended(process, SECONDS)
    except AssertionError as error:
        return str(error)
    said = log.read_text(errors="replace")
    if "Traceback" in said:
        return f"a traceback: {said[-1500:]}"
    # 1: the doctor found something.
    if code not in ((0, 1, 2) if words[:1] == ["doctor"] else (0, 2)):
        return f"exit code {code}: {said[-500:]}"
    if code == 2 and not said.strip():
        return "exit code 2 without a word"
    after = fingerprints(folder)
    lost = [name for name, digest in before.items() if after.get(name) != digest]
    return f"lost or changed: {', '.join(lost)}" if lost else None


def command_line(number: int) -> list[str]:
    """The words of one case, made of the command's own options."""
    rng = random.Random(number)
    commands = list(BASES_OF_LINES)
    name = rng.choices(commands, [WEIGHTS.get(command, 1) for command in commands])[0]
    text = rng.choice(BASES_OF_LINES[name])
    named = {"PATH": rng.choice(PATHS), "NAME": rng.choice([*MODELS.names(), *WORDS[1:3]])}
    words = [named.get(word, word).replace("NEW", f"../new/{number}") for word in text.split()]
    options = options_of(cli.COMMANDS[name])
    options = {k: v for k, v in options.items() if k not in ENDING.get(name, ())}
    for option in rng.sample(sorted(options), min(len(options), rng.choice([0, 1, 1, 2, 3]))):
        words += [f"--{option.replace('_', '-')}", *value(option, options[option], rng, number)]
    if rng.random() < 0.1:
        del words[rng.randrange(len(words))]
    if rng.random() < 0.1:
        words.insert(rng.randint(0, len(words)), rng.choice([*WORDS, "--no-such-option", "--help"]))
    return words


def options_of(command: typing.Callable) -> dict[str, object]:
    """The options of a command and their types."""
    hints = typing.get_type_hints(command)
    marks = typing.get_type_hints(command, include_extras=True)
    found = {
        name: hints[name]
        for name, parameter in inspect.signature(command).parameters.items()
        if parameter.default is not parameter.empty
        and name not in LEFT_OUT
        and tyro.conf.Positional not in typing.get_args(marks[name])
    }
    if found.pop("training", None):
        found |= {field.name: field.type for field in dataclasses.fields(TrainFlags)}
    return found


def value(option: str, kind: object, rng: random.Random, number: int) -> list[str]:
    """A good or a bad value."""
    kinds = set(flat(kind))
    choices = [str(choice) for choice in kinds if isinstance(choice, str)]
    if bool in kinds:
        return rng.choice([[], [], [], [], ["maybe"]])
    if choices:
        known = ["smoke"] if option == "scale" else choices
        return [rng.choice([*known, rng.choice(WORDS)])]
    if option == "devices":
        return [rng.choice(["1", "0", "100", "-1", "0,1", "x", "1,1", ""])]
    if option in ("out", "json_out", "picture"):
        return [rng.choice([f"../new/{number}-{option}", "notes.txt", "folder", "link", "run", ""])]
    if Path in kinds:
        return [rng.choice([*PATHS, ""])]
    if int in kinds or float in kinds:
        huge = [] if option in FEW else HUGE
        return [rng.choice([rng.choice(SMALL), rng.choice([*BAD_NUMBERS, *huge])])]
    names = [*MODELS.names(), *BENCHMARKS.names(), *BASES.names()]
    pairs = ["epsilon=abc", "epsilon=NaN", "epsilon=0.001", "n_layers=-1", "n_modes=0", "=", "x=1"]
    settings = ["hidden_channels=8.5", "n_layers=99999999", "mlp_ratio=1e300", "mlp_ratio=Infinity"]
    return [rng.choice([rng.choice(names), rng.choice(WORDS), rng.choice([*pairs, *settings])])]


def flat(kind: object) -> list[object]:
    """The types and literals that a type is made of."""
    if typing.get_origin(kind) is typing.Literal:
        return list(typing.get_args(kind))
    inside = typing.get_args(kind)
    is_whole = isinstance(kind, types.GenericAlias) or not inside
    return [kind] if is_whole else [part for one in inside for part in flat(one)]


def configuration(number: int, text: str) -> str:
    """A configuration file with one to three entries changed, or damaged as a text."""
    rng = random.Random(number)
    if rng.random() < 0.1:
        at = rng.randrange(len(text))
        return rng.choice([text[:at], text[:at] + rng.choice("{}[],:\"'x\0") + text[at + 1 :]])
    entries = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 3])):
        place = entries
        while True:
            key = rng.choice(sorted(place)) if place else "new"
            if not isinstance(place.get(key), dict) or rng.random() < 0.1:
                break
            place = place[key]
        change = rng.random()
        if change < 0.1:
            place.pop(key, None)
        elif change < 0.2:
            place[rng.choice([f"{key}s", "new", ""])] = copy.deepcopy(rng.choice(JUNK))
        else:
            possible = [j for j in JUNK if j != 10**30 or key != "epochs"]
            place[key] = copy.deepcopy(rng.choice(possible))
    return json.dumps(entries).replace("1e-300", rng.choice(["1e-300", "NaN", "Infinity", "1e400"]))
