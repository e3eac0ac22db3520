"""Own Darcy data at 32², from an installed package in an empty folder."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from installed import EXAMPLES, site


def load_example():
    import importlib.util

    spec = importlib.util.spec_from_file_location("own_data", EXAMPLES / "own_data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_pressure_solves_its_equation():
    """For k = 1 it is Poisson's: u(½, ½) = Σ 16 sin sin / (π⁴ m n (m² + n²)) over odd m, n."""
    n = 24
    u = load_example().pressure(np.ones((n, n)))
    odd = np.arange(1, 200, 2)
    x = (np.arange(n) + 0.5) / n
    sines = np.sin(np.pi * odd[:, None] * x)
    weight = 16 / (np.pi**4 * odd[:, None] * odd * (odd[:, None] ** 2 + odd**2))
    exact = sines.T @ weight @ sines
    assert np.abs(u - exact).max() < 0.02 * exact.max()


@pytest.mark.slow
def test_killed_and_started_again_to_the_same_bits(tmp_path):
    """SIGKILL once a checkpoint is there; the same command then ends with the same files."""
    (tmp_path / "site").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site(tmp_path / "site"))}
    command = [sys.executable, "own_data.py", "--samples", "30", "--epochs", "6", "--out", "run"]
    folders = [tmp_path / "whole", tmp_path / "killed"]
    for folder in folders:
        folder.mkdir()
        shutil.copy(EXAMPLES / "own_data.py", folder)
    killed = subprocess.Popen(command, cwd=folders[1], env=environment)
    limit = time.monotonic() + 300
    while not list(folders[1].glob("run/checkpoints/step-*")) and time.monotonic() < limit:
        time.sleep(0.02)
    killed.kill()
    killed.wait()
    assert not (folders[1] / "run" / "record.json").exists()
    for folder in folders:
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        assert (folder / "darcy.png").read_bytes().startswith(b"\x89PNG")
    for name in ("metrics.jsonl", "record.json", "data.json", "checkpoints/best.safetensors"):
        one, other = ((folder / "run" / name).read_bytes() for folder in folders)
        assert one == other, name
