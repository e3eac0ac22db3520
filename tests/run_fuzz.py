"""Run folders that were edited, damaged or mixed up, and what commands must do with them.

A case is its number. It changes a copy of a tiny finished run, or of one that was stopped, and
runs a command on it in a forked process. The command must end in one sentence, or answer as it
does on the untouched run: byte for byte, with no file of the folder changed.
"""

import copy
import json
import os
import random
import shutil
from pathlib import Path

from fuzz import JUNK, SECONDS, TRAIN, fingerprints, quietly, run_words
from training.small_runs import ended, in_child

COMMANDS = {
    "evaluate": "evaluate RUN --json-out OUT/errors.json",
    "predict": "predict RUN input.npy --out OUT/u.npy",
    "show": "show RUN",
    "export": "export RUN --format pretrained --out OUT/model",
    "report": "report RUN --out OUT/report",
    "resume": "resume RUN",
    "model": "export RUN/model --format pretrained --out OUT/model",
}
NOTES = ("metrics.jsonl", "timing.jsonl", "cost.json")
"""Files with numbers to look at, which nothing vouches for: what they hold is shown."""
OTHERS = ("other-seed", "other-data", "other-model")
"""Runs whose files are put into the one here; the first two have weights of the same shapes."""


def folders(here: Path) -> None:
    """A finished run, the same run stopped, and finished ones of another seed, data and model."""
    quietly(f"{TRAIN} --out {here}/run")
    quietly(f"{TRAIN} --seed 1 --out {here}/other-seed")
    quietly(f"{TRAIN} --data-seed 1 --out {here}/other-data")
    quietly(f"{TRAIN.replace('n_modes=4', 'n_modes=5')} --out {here}/other-model")
    shutil.copytree(here / "run", here / "stopped")
    for name in ("record.json", "cost.json"):
        (here / "stopped" / name).unlink()


def files_of(run: Path) -> list[str]:
    """The files that commands read."""
    unread = ("predictions.png", "environment.json", ".lock")
    found = (p.relative_to(run) for p in sorted(run.rglob("*")) if p.is_file())
    return [str(p) for p in found if p.name not in unread and p.parts[0] != "tensorboard"]


def damage(run: Path, others: Path, rng: random.Random) -> str:
    """Change one file of a run, as editors, disks and hands do; what was done."""
    name = rng.choice(files_of(run))
    path, what = run / name, rng.random()
    if path.suffix in (".json", ".jsonl") and what < 0.65:
        return f"{name}: {edit(path, rng)}"
    kind = rng.choice(["cut", "empty", "folder", "gone", "bit", "text", "swap", "swap"])
    content = path.read_bytes()
    if kind == "swap":
        other = rng.choice(OTHERS)
        source = others / other / name
        if name.startswith("model/weights"):
            source = next((others / other / "model").glob("weights*"))
        kind = f"of {other}"
        path.unlink()
        shutil.copy(source, path)
    elif kind == "bit":
        at = rng.randrange(len(content))
        path.unlink()
        path.write_bytes(
            content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        )
    else:
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind != "gone":
            made = dict(cut=content[: rng.randrange(len(content))], empty=b"", text=b"hello\n")
            path.write_bytes(made[kind])
    return f"{name}: {kind}"


def edit(path: Path, rng: random.Random) -> str:
    """Replace, remove or add one entry, at any depth."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    at = rng.randrange(len(lines))
    place = entries = json.loads(lines[at])
    trail = []
    while True:
        keys = sorted(place) if isinstance(place, dict) else list(range(len(place)))
        key = rng.choice(keys)
        trail.append(key)
        inner = place[key]
        if not isinstance(inner, (dict, list)) or not inner or rng.random() < 0.1:
            break
        place = inner
    how = rng.random()
    if how < 0.15:
        del place[key]
        done = "removed"
    elif how < 0.25 and isinstance(place, dict):
        place[f"{key}s"] = done = rng.choice(JUNK)
    else:
        numbers = [inner + 1, inner * 2, -inner] if type(inner) in (int, float) else []
        place[key] = done = copy.deepcopy(rng.choice([*JUNK, *numbers, *numbers]))
    lines[at] = json.dumps(entries)
    path.unlink()
    path.write_text("\n".join(lines) + "\n")
    return f"{trail} {done!r}"


def answer(command: str, run: Path, out: Path) -> tuple[int, str, dict[str, str]]:
    """Exit code, what was said, and what was written by a command."""
    words = COMMANDS[command].replace("RUN", str(run)).replace("OUT", str(out)).split()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    log = out.parent / "run-log.txt"
    code = ended(in_child(run_words, words, log), SECONDS)
    said = log.read_text(errors="replace").replace(str(run), "RUN")
    return code, said, fingerprints(out)


def problem_of_run(number: int, command: str, here: Path, truth: tuple) -> str | None:
    """What is wrong with how a command takes a damaged run, if anything."""
    rng = random.Random(f"{command} {number}")
    source = "stopped" if command == "resume" else "run"
    # The name of the folder is in what is printed and in reports.
    room = here / "rooms"
    shutil.rmtree(room, ignore_errors=True)
    run = room / "run"
    shutil.copytree(here / source, run)
    done = damage(run, here, rng)
    before = fingerprints(run)
    os.chdir(here)
    try:
        code, said, made = answer(command, run, here / "out")
    except AssertionError as error:
        return f"{done}: {error}"
    if "Traceback" in said:
        return f"{done}: a traceback: {said[-900:]}"
    if code == 2:
        if not said.strip():
            return f"{done}: exit code 2 without a word"
    elif code != 0:
        return f"{done}: exit code {code}: {said[-500:]}"
    elif command == "resume":
        record = json.loads((run / "record.json").read_text())
        return None if record == truth[2] else f"{done}: another Record without a word: {said}"
    elif (said, made) != truth[1:] and not done.startswith(NOTES):
        return f"{done}: another answer without a word: {said[-900:]}"
    after = fingerprints(run)
    # A run that goes on adds to its list of times, whatever comes of it.
    kept = {k: v for k, v in before.items() if command != "resume" or k != "timing.jsonl"}
    lost = [name for name, digest in kept.items() if after.get(name) != digest]
    return f"{done}: lost or changed: {', '.join(lost)}" if lost else None


def truth_of(command: str, here: Path) -> tuple:
    """What a command answers on the untouched run."""
    room = here / "rooms"
    shutil.rmtree(room, ignore_errors=True)
    shutil.copytree(here / ("stopped" if command == "resume" else "run"), room / "run")
    os.chdir(here)
    code, said, made = answer(command, room / "run", here / "out")
    assert code == 0, said
    if command == "resume":
        return code, said, json.loads((room / "run" / "record.json").read_text())
    return code, said, made
