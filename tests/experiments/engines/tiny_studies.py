"""Studies of runs that take a moment, and what must not depend on who did them."""

import os
from pathlib import Path

from sfo.experiments.study import Cell, Study
from sfo.training.config import Experiment

MODEL = dict(hidden_channels=8, n_modes=2, n_layers=1)


def tiny(seed=0, **train):
    """20 samples of 64 points in batches of 8."""
    train = {"epochs": 1, **train}
    return Experiment.of("allen_cahn", scale="smoke", seed=seed, settings=MODEL, train=train)


def study(runs, analyses=()):
    cells = [Cell("allen_cahn", str(k), run) for k, run in enumerate(runs)]
    return Study("mine", "", "", lambda scale, seeds: cells, analyses=analyses)


def measured(folder):
    """The bytes of all Records and findings."""
    kinds = ("records", "findings", "failures")
    paths = [path for kind in kinds for path in (folder / kind).glob("*.json")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def processes(*words, parent=None):
    """Ids of processes whose command has all these words, children of `parent` if given."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().decode(errors="replace")
            status = (path / "status").read_text()
        except OSError:
            continue
        is_child = parent is None or f"\nPPid:\t{parent}\n" in status
        mine = f"\nUid:\t{os.getuid()}\t" in status
        if mine and is_child and all(word in command for word in words):
            found.append(int(path.name))
    return found
