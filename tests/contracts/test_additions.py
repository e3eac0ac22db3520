"""A benchmark, a model, a metric and a study: a file each in the package, and an import line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sfo

FILES = {
    "data/catalogue/decay.py": '''
"""The benchmark `decay`: every wave of random numbers dies at the same rate."""

from dataclasses import dataclass

import numpy as np
import torch

from sfo.data.benchmarks import Benchmark, Scale, register, sample_rng
from sfo.grid import Grid


@register
@dataclass(frozen=True)
class Decay(Benchmark):
    """∂u/∂t = −rate u."""

    name, title, layout = "decay", "Decay", "tensor"
    scales = {"smoke": Scale(samples=12, n=16, frames=3)}
    rate: float = 1.0

    def grid(self, scale):
        return Grid((scale.n,), (0.0,), (1.0,))

    def solve(self, seed, ids, scale):
        start = np.stack([sample_rng(seed, i).normal(size=scale.n) for i in ids])
        t = np.array(self.times(scale))[:, None, None]
        return torch.from_numpy(start[:, None, None] * np.exp(-self.rate * t)), None
''',
    "models/gain.py": '''
"""The model `gain`: one number per pair of channels."""

from torch import nn

from sfo.registry import MODELS


@MODELS.register("gain")
class Gain(nn.Conv1d):
    """u = W a at every point."""

    title = "One gain"

    def __init__(self, in_channels, out_channels):
        super().__init__(in_channels, out_channels, 1)
''',
    "evaluation/bias.py": '''
"""The metric `bias`."""

from sfo.registry import METRICS


@METRICS.register("bias")
def bias(prediction, truth, context):
    """The mean error of each sample."""
    return (prediction - truth).flatten(1).mean(1)
''',
    "experiments/studies/fading.py": '''
"""The study `fading`."""

from sfo.experiments.study import Cell
from sfo.registry import STUDIES
from sfo.training.config import Experiment


@STUDIES.register("fading")
def fading(scale, seeds):
    """Two models on decay, %"""
    train = dict(epochs=1)
    runs = {m: Experiment.of("decay", m, scale=scale, train=train) for m in ("gain", "unet")}
    return [Cell("decay", model, run, seeds) for model, run in runs.items()]
''',
}
LINES = {
    "data/catalogue/__init__.py": "from sfo.data.catalogue.decay import Decay as Decay",
    "models/__init__.py": "from sfo.models.gain import Gain as Gain",
    "evaluation/__init__.py": "from sfo.evaluation import bias as bias",
    "experiments/studies/__init__.py": "from sfo.experiments.studies import fading as fading",
}
PROGRAM = """
import pathlib
import sfo.experiments.studies
from sfo.cli import main
from sfo.experiments.results import Results
from sfo.experiments.run import run
from sfo.experiments.study import as_study

results = Results(pathlib.Path("results"))
for cell in as_study("fading").cells("smoke", 1):
    for experiment in cell.runs(results):
        folder = pathlib.Path(cell.column)
        record = run(experiment, folder, cost=False, picture=False)
        results.keep(record)
        main(["evaluate", str(folder), "--json-out", f"{cell.column}.json"])
main(["report", "results"])
main(["list"])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package with the files and lines, and what it makes in an empty folder."""
    folder = tmp_path_factory.mktemp("package")
    source = Path(sfo.__file__).parent
    shutil.copytree(source, folder / "sfo", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in FILES.items():
        (folder / "sfo" / name).write_text(text.lstrip())
    for name, line in LINES.items():
        with open(folder / "sfo" / name, "a") as file:
            file.write(f"{line}\n")
    return folder


@pytest.mark.slow
def test_a_file_and_a_line_each_are_enough(package, tmp_path):
    """They are listed, trained, measured, recorded and reported; nothing else was edited."""
    env = {**os.environ, "PYTHONPATH": str(package), "SFO_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    listed = dict(line.split(":", 1) for line in done.stdout.splitlines() if ": " in line)
    assert "gain" in listed["models"]
    assert "decay" in listed["benchmarks"]
    report = (tmp_path / "results" / "report.md").read_text()
    assert "## Two models on decay, %" in report
    assert "| Decay |" in report
    assert "One gain" in report
    for model in ("gain", "unet"):
        evaluated = json.loads((tmp_path / f"{model}.json").read_text())
        recorded = json.loads((tmp_path / model / "record.json").read_text())["errors"]
        assert evaluated["bias"] == recorded["bias"] != 0
