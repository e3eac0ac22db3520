"""The package from a built wheel, in an empty folder, as a user has it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from installed import EXAMPLES, build_wheel, environment, install_wheel, start_and_kill
from test_own_darcy import load_example

SIX_LINES = """
import numpy as np, sfo
with np.load("darcy.npz") as data: a, u = data["a"], data["u"]
run = sfo.fit(a, u, names=("pressure",), epochs=40, out="run")
print(run.errors.percent, sfo.__file__)
run.plot("picture.png")
run.model.save_pretrained("model")
"""
PLUGIN = EXAMPLES / "plugin.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    return install_wheel(wheel, tmp_path_factory.mktemp("site"))


def test_two_wheels_are_the_same_bytes(wheel, tmp_path):
    """So that what is published can be built again and compared."""
    assert build_wheel(tmp_path).read_bytes() == wheel.read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(1800)  # Minutes; a busy machine takes more.
def test_own_darcy_in_six_lines_killed_and_run_again_to_the_same_bits(installed, tmp_path):
    """SIGKILL once a checkpoint is there; the same lines then end with the same files."""
    assert len(SIX_LINES.strip().splitlines()) == 6
    make, rng = load_example(), np.random.default_rng(0)
    k = [make.coefficient(rng, n=32) for _ in range(24)]
    a, u = np.stack(k)[:, None], np.stack([make.pressure(field) for field in k])[:, None]
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    env = environment(installed)
    command = [sys.executable, "-c", SIX_LINES]
    for folder in (whole, killed):
        folder.mkdir()
        np.savez(folder / "darcy.npz", a=a, u=u)
    start_and_kill(command, killed, env, "run/checkpoints/step-*")
    assert not (killed / "run" / "record.json").exists()
    for folder in (whole, killed):
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        percent, where = done.stdout.split()
        assert Path(where).is_relative_to(installed)
        assert 0 < float(percent) < 60
    # The file is named after the weights in it.
    (weights,) = (path.name for path in (whole / "model").glob("weights-*.safetensors"))
    same(whole, killed, "picture.png", f"model/{weights}", *RUN)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # Minutes; a busy machine takes more.
def test_a_plugin_of_one_file_does_all(installed, tmp_path):
    """Generate, train, kill, resume, evaluate, predict, a study of two models, and the report."""
    text = PLUGIN.read_text()
    assert len(text.splitlines()) <= 80
    assert all(f"{kind}.register" in text for kind in ("BENCHMARKS", "MODELS", "BASES", "STUDIES"))
    work = tmp_path / "work"
    work.mkdir()
    (work / "mine.py").write_text(text)
    env = environment(installed, SFO_DATA=str(tmp_path / "data"))
    start = [sys.executable, "-W", "ignore", "-m", "sfo"]

    def sfo_command(line):
        done = subprocess.run(
            [*start, *line.split()], cwd=work, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    sfo_command("generate advection --scale smoke --plugin mine.py")
    (data,) = (tmp_path / "data").glob("advection-smoke-*.hdf5")
    made = data.stat().st_mtime_ns
    train = "train --plugin mine.py --benchmark advection --scale smoke --model convnet"
    train += " --epochs 60 --memory --out"
    sfo_command(f"{train} whole/run")
    cost = json.loads((work / "whole/run/cost.json").read_text())
    assert cost["training_memory"] > 0
    start_and_kill([*start, *f"{train} killed/run".split()], work, env, "killed/run/checkpoints/*")
    assert not (work / "killed/run/record.json").exists()
    sfo_command("resume killed/run")
    same(work / "whole", work / "killed", *RUN)
    errors = json.loads((work / "whole/run/record.json").read_text())["errors"]
    sfo_command("evaluate killed/run --json-out errors.json")
    assert json.loads((work / "errors.json").read_text())["per_sample"] == errors["per_sample"]
    sfo_command(
        "train --plugin mine.py --benchmark advection --scale smoke --model sfo "
        "--model.basis cosine --epochs 1 --out of_basis"
    )
    np.save(work / "a.npy", np.zeros((2, 1, 64), "f4"))
    assert "(2, 1, 64) → (2, 6, 64)" in sfo_command("predict of_basis a.npy --picture u.png")
    assert data.stat().st_mtime_ns == made, "the data were made once"
    sfo_command("reproduce drift --scale smoke --plugin mine.py --out results --workers 1")
    sfo_command("report results --plugin mine.py")
    report = (work / "results/report.md").read_text()
    table = re.search(r"\| 1D advection–diffusion \|([^|]+)\|([^|]+)\|", report)
    assert all(float(cell.strip(" *_").split()[0]) > 0 for cell in table.groups())
    sfo_command("report whole/run of_basis --plugin mine.py --out comparison")
    assert "convnet" in (work / "comparison/report.md").read_text()


RUN = [
    f"run/{n}"
    for n in ("metrics.jsonl", "record.json", "data.json", "checkpoints/best.safetensors")
]


def same(one, other, *names):
    """The files of two folders are equal to the byte."""
    for name in names:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
