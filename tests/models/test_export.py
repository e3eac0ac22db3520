"""Exported files, made in processes of their own: the shape checks that the other tests switch on
are not traceable."""

import re
import subprocess
import sys

import pytest
import torch

from sfo import SFO
from sfo.cli import main
from sfo.models import export
from sfo.models.export import export_model

EXPORT = """
import sys, onnx, onnxruntime, torch
from sfo.models.build import build_model
from sfo.models.export import export_model, read_metadata
from sfo.models.units import Units
from sfo.files import sha256
from sfo.models.pretrained import weight_bytes
torch.set_num_threads(1)
torch.manual_seed(0)
folder, name, grids, presets, settings = sys.argv[1], *map(eval, sys.argv[2:])
BENCHMARKS = ["allen_cahn", "shallow_water", "maxwell"]

for grid in grids:
    for preset in presets:
        model = build_model(name, benchmark=BENCHMARKS[len(grid) - 1], preset=preset,
                            train_shape=grid, **settings)
        channels = model.in_channels, model.out_channels
        model.units = Units(*channels, len(grid))
        for values in model.units.buffers():
            values.uniform_(0.5, 2)
        model(torch.randn(1, channels[0], *grid))
        model.eval()
        facts = dict(model=name, in_channels=channels[0], out_channels=channels[1],
                     grid=list(grid), dtype="float32", sha256=sha256(weight_bytes(model)), note="å")
        for kind in ("onnx", "pt2"):
            path = f"{folder}/{len(grid)}.{kind}"
            done = export_model(model, path, format=kind, metadata=dict(note="å", grid=[1]),
                                grid=None if name == "sfo" else grid)
            assert done.difference < 1e-5, done
            assert read_metadata(path) == facts
            assert name != "sfo" or model.modes.transform == "fft"
        graph = onnx.load(f"{folder}/{len(grid)}.onnx").graph
        types = {t.data_type for t in graph.initializer} | {
            v.type.tensor_type.elem_type for v in graph.value_info}
        complex_types = {onnx.TensorProto.COMPLEX64, onnx.TensorProto.COMPLEX128}
        assert not types & complex_types
        assert not {"DFT", "STFT"} & {node.op_type for node in graph.node}
        session = onnxruntime.InferenceSession(f"{folder}/{len(grid)}.onnx")
        assert session.get_inputs()[0].shape == ["batch", channels[0], *grid]
        assert session.get_outputs()[0].shape == ["batch", channels[1], *grid]
        for batch in (1, 4, 7):
            a = torch.randn(batch, channels[0], *grid)
            with torch.no_grad():
                u = model(a)
            (found,) = session.run(["u"], {"a": a.numpy()})
            assert torch.dist(torch.from_numpy(found), u) <= 1e-5 * u.norm(), (grid, preset)
        torch.save((a, u), f"{folder}/{len(grid)}.expected")
"""

LOAD = """
import sys, torch
program = torch.export.load(sys.argv[1])
a, u = torch.load(sys.argv[2])
for node in program.graph.nodes:
    value = node.meta.get("val")
    assert not (isinstance(value, torch.Tensor) and value.is_complex()), node
    assert "fft" not in str(node.target), node
for n in (1, len(a)):
    assert torch.dist(program.module()(a[:n]), u[:n]) <= 1e-5 * u[:n].norm()
assert not [m for m in sys.modules if m == "sfo" or m.startswith("sfo.")]
"""


def run(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


def test_files_equal_the_model(tmp_path):
    """The recommended model on a line, in units of its own, with any batch."""
    settings = dict(hidden_channels=8, n_layers=1, n_modes=4, out_channels=3)
    run(EXPORT, tmp_path, "'sfo'", [(24,)], ["recommended"], settings)


@pytest.mark.slow
@pytest.mark.parametrize("grid", [(256,), (24, 20), (8, 6, 8)])
def test_presets_equal_the_model_and_pt2_needs_no_sfo(tmp_path, grid):
    run(EXPORT, tmp_path, "'sfo'", [grid], ["paper", "recommended"], {})
    run(LOAD, tmp_path / f"{len(grid)}.pt2", tmp_path / f"{len(grid)}.expected")


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, dict(n_modes=80)])
def test_fno_equals_the_model(tmp_path, settings):
    """Also with so many modes that FNO itself would take FFT."""
    run(EXPORT, tmp_path, "'fno'", [(200,)], ["recommended"], settings)


def model():
    return SFO(1, 2, n_modes=4, hidden_channels=8, n_layers=1, train_shape=(16,))


def test_pretrained_is_the_folder_of_save_pretrained(tmp_path):
    first = model()
    export_model(first, tmp_path / "out", format="pretrained")
    a = torch.randn(1, 1, 16)
    assert torch.equal(SFO.from_pretrained(tmp_path / "out")(a), first(a))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "tflite"], "`format` must be one of"),
        (["--grid", "8", "8"], "`grid` must have as many numbers as the model has axes, 1"),
        (["--grid", "dynamic"], r"fixed numbers of points.*constants of the file"),
        (["--grid", "0"], "fixed numbers of points"),
        (["--out", "FILE/below.onnx"], "Cannot write"),
        (["--out", "."], "it is a folder"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    tmp_path, monkeypatch, capsys, options, message
):
    monkeypatch.chdir(tmp_path)
    model().save_pretrained("saved")
    (tmp_path / "FILE").write_text("")
    with pytest.raises(SystemExit) as exit_code:
        main(["export", "saved", *options])
    assert exit_code.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(message, said)


@pytest.mark.parametrize("target", ["nothing-here", "."])
def test_a_missing_run_is_said_in_one_line(tmp_path, monkeypatch, capsys, target):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_code:
        main(["export", target])
    assert exit_code.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"ONNX needs onnx, .*pip install '\.\[export\]'"):
        export_model(model(), tmp_path / "a.onnx")


def test_models_must_say_grid_and_channels(tmp_path):
    with pytest.raises(ValueError, match=r"`grid` is needed: sfo does not know"):
        export_model(SFO(1, 1, n_modes=2, hidden_channels=8), tmp_path / "a.pt2", format="pt2")
    layer = torch.nn.Conv1d(1, 1, 3)
    del layer.in_channels
    with pytest.raises(ValueError, match=r"`in_channels` is needed: Conv1d"):
        export_model(layer, tmp_path / "a.pt2", format="pt2", grid=(8,))
    with pytest.raises(ValueError, match=r"Conv1d has no `save_pretrained`"):
        export_model(layer, tmp_path / "a", format="pretrained")


def test_a_file_that_is_not_the_model_is_not_written(tmp_path):
    a, u = torch.randn(3, 1, 8), torch.ones(3, 1, 8)
    with pytest.raises(ValueError, match=r"differs by .*Nothing was written"):
        export._difference(lambda a: a, a, u, "sfo")
    with pytest.raises(ValueError, match="Nothing was written"):
        export._difference(lambda a: a * torch.nan, a, u, "sfo")


def test_a_model_that_is_not_there_is_answered_with_those_that_are(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["export", "alen_cahn"])
    said = capsys.readouterr().err
    assert "There is no run or saved model 'alen_cahn' here." in said
    assert "Did you mean 'allen_cahn'?" in said
