"""Modules of the user's own: registered by name, by a run, and by installed packages."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from installed import EXAMPLES, site

import sfo
from sfo import plugins
from sfo.cli import main
from sfo.data import load_benchmark
from sfo.experiments.record import Record
from sfo.registry import BASES, BENCHMARKS, MODELS, STUDIES

EXAMPLE = EXAMPLES / "plugin.py"


@pytest.fixture
def forgotten(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(plugins, "_by_name", {})
    for registry in (BASES, BENCHMARKS, MODELS, STUDIES):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))


def refusal(line, capsys):
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    return capsys.readouterr().err.strip().splitlines()[-1]


def test_the_example_solves_its_equation_and_has_a_basis(forgotten, tmp_path):
    plugins.load(EXAMPLE)
    pairs = load_benchmark("advection", "smoke", "all", samples=4, folder=tmp_path, nu=0.0)
    # Without viscosity a wave has gone once round by t = 1/c, and half way by t = 1/2.
    u = pairs.trajectory()[:, :, 0]
    torch.testing.assert_close(u[:, -1], u[:, 0], rtol=0, atol=1e-5)
    phi = BASES["cosine"](16, 6)
    torch.testing.assert_close(phi @ phi.T, torch.eye(6, dtype=torch.float64))


def test_the_example_trains_resumes_and_is_evaluated(forgotten, tmp_path, monkeypatch, capsys):
    """A run knows its plugin; the model is no `Operator` and has no preset."""
    from sfo.training import checkpoint

    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    plugin, out = tmp_path / "mine.py", tmp_path / "run"
    shutil.copy(EXAMPLE, plugin)
    line = f"train --plugin {plugin} --benchmark advection --model convnet --scale smoke"
    save = checkpoint.save

    def stops(*arguments, **options):
        save(*arguments, **options)
        raise RuntimeError("as if killed")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", stops)
        with pytest.raises(RuntimeError, match="as if killed"):
            main(f"{line} --model.width 8 --samples 10 --out {out}".split())
    assert json.loads((out / "sources.json").read_text()) == {"plugins": [str(plugin)]}
    forget()
    main(["resume", str(out)])
    record = Record.load(out / "record.json")
    assert record.experiment.model.preset == "recommended"
    assert record.parameters == 8 * (15 + 1) + 6 * (8 * 15 + 1)
    forget()
    main(["evaluate", str(out), "--json-out", str(tmp_path / "errors.json")])
    errors = json.loads((tmp_path / "errors.json").read_text())
    assert errors["per_sample"] == record.errors.per_sample
    forget()
    plugin.unlink()
    assert "No plugin: the file" in refusal(f"evaluate {out}", capsys)
    with pytest.raises(ValueError, match="No plugin"):
        sfo.load_run(out)


def forget():
    """As another process, which has not seen the plugin."""
    for name in list(plugins._by_name):
        sys.modules.pop(plugins._by_name.pop(name).__name__, None)
    for registry, name in ((MODELS, "convnet"), (BENCHMARKS, "advection"), (BASES, "cosine")):
        registry._entries.pop(name, None)


def test_a_function_that_gives_a_module_is_a_model(forgotten, tmp_path):
    """It is told what it asks for, here neither axes nor grid."""

    @MODELS.register("pointwise")
    def pointwise(in_channels: int, out_channels: int, gain: float = 1.0):
        layer = torch.nn.Conv1d(in_channels, out_channels, 1)
        torch.nn.init.constant_(layer.weight, gain)
        return layer

    a = np.random.default_rng(0).normal(size=(12, 1, 8)).astype("f4")
    run = sfo.fit(a, 3 * a, model="pointwise", epochs=60, learning_rate=0.05, out=tmp_path / "r")
    assert run.errors.relative_l2 < 0.05
    with pytest.raises(ValueError, match="`gain` of pointwise must be a valid number, got 'much'"):
        sfo.fit(a, a, model="pointwise", settings=dict(gain="much"))
    with pytest.raises(ValueError, match="The paper has no pointwise, so it has no settings"):
        sfo.fit(a, a, model="pointwise", preset="paper")


NOTEBOOK = """
import json, sys, warnings
import numpy as np, torch
import sfo
from sfo.cli import main

@sfo.MODELS.register("mine")
class Mine(torch.nn.Conv1d):
    def __init__(self, in_channels, out_channels, n_dim):
        super().__init__(in_channels, out_channels, 3, padding=1)

if "train" in sys.argv:
    a = np.random.default_rng(0).normal(size=(12, 1, 8)).astype("f4")
    np.savez("mine.npz", a=a, u=2 * a)
    main("train --data mine.npz --model mine --epochs 1 --memory --out run".split())
"""


def test_a_model_of_a_notebook_trains_to_its_end(forgotten, tmp_path, capsys):
    """Its memory is not measured, which is said; elsewhere the run asks for the model."""
    (tmp_path / "notebook.py").write_text(textwrap.dedent(NOTEBOOK))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "notebook.py", "train"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "memory of a training step is left out" in done.stderr
    cost = json.loads((tmp_path / "run" / "cost.json").read_text())
    assert cost["training_memory"] is None
    assert cost["training_seconds"] > 0
    text = refusal(f"evaluate {tmp_path}/run", capsys)
    assert "needs the model 'mine', which a notebook or script defined" in text


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this"),
        ("x = 1 +", "SyntaxError: invalid syntax"),
        ("raise RuntimeError('first line\\nsecond')", "RuntimeError: first line."),
        ("from sfo import MODELS\nMODELS.register('sfo')(int)", "ValueError: model 'sfo' is regi"),
    ],
)
def test_a_plugin_that_fails_to_import(source, reason, forgotten, tmp_path, capsys):
    (tmp_path / "broken.py").write_text(source)
    text = refusal(f"train --plugin {tmp_path}/broken.py --out {tmp_path}/run", capsys)
    assert text.startswith(f"sfo: The plugin {tmp_path}/broken.py fails to import: {reason}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("plugin", "sentence"),
    [
        ("nowhere.py", "No plugin: the file nowhere.py does not exist."),
        ("no.such.module", "The plugin no.such.module fails to import: ModuleNotFoundError"),
    ],
)
def test_a_plugin_that_is_not_there(plugin, sentence, forgotten, capsys):
    assert sentence in refusal(f"list --plugin {plugin}", capsys)
    assert "needs a Python file or a module" in refusal("list --plugin", capsys)


def test_installed_plugins_are_found_by_their_entry_point(tmp_path):
    program = """
        import warnings, sfo
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            print(sfo.BENCHMARKS["advection"].title, sfo.MODELS["convnet"].__name__)
        print([str(w.message) for w in told if "plugin" in str(w.message)])
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(site(tmp_path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    title, told = done.stdout.splitlines()
    assert title == "1D advection–diffusion ConvNet"
    assert "The installed plugin bad (broken_plugin) fails to import and is left out" in told


def test_the_study_of_the_example_is_run_and_reported(forgotten, tmp_path, monkeypatch):
    """Two models on an equation that the package does not know, by worker processes."""
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    out = tmp_path / "results"
    words = ["--plugin", str(EXAMPLE)]
    main(["reproduce", "drift", "--scale", "smoke", "--out", str(out), "--workers", "1", *words])
    assert len(list((out / "records").glob("advection-*.json"))) == 2
    main(["report", str(out), *words])
    text = (out / "report.md").read_text()
    assert "## Two models on advection–diffusion, %" in text
    assert "| 1D advection–diffusion |" in text
    assert "convnet" in text
