"""torch.compile and torch.export, in a process of their own: the shape checks that the other
tests switch on are not traceable."""

import json
import subprocess
import sys

import pytest

PRELUDE = """
import json, sys, traceback, torch
from sfo import SFO
torch.set_num_threads(1)
small = dict(n_modes=4, hidden_channels=16, n_layers=2)

def compile_model(backend, fullgraph):
    torch.compiler.reset()
    model = SFO(1, 2, **small)
    a = torch.randn(2, 1, 16)
    if fullgraph: model(a)  # The modes of a new grid are built outside of the graph.
    compiled = torch.compile(model, backend=backend, fullgraph=fullgraph)
    torch.testing.assert_close(compiled(a), model(a))
    grads = []
    for function in (compiled, model):
        model.zero_grad()
        function(a).square().sum().backward()
        grads.append(model.layers[0].kernel.theta.grad.clone())
    torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)

def export_model(make, path):
    model = make(1, 2, 2, **small).eval()  # Never called: the modes are built by the export.
    a = torch.randn(2, 1, 8, 8)
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (a,), dynamic_shapes=({0: batch},))
    torch.export.save(program, path)
    loaded = torch.export.load(path).module()
    b = torch.randn(5, 1, 8, 8)
    torch.testing.assert_close(loaded(b), model(b))

errors = {}
for line in sys.argv[1:]:
    torch.manual_seed(0)
    try:
        exec(line)
        errors[line] = ""
    except Exception:
        errors[line] = traceback.format_exc()
print(json.dumps(errors))
"""


def run(*lines):
    """What went wrong in each line, run one after the other in one process."""
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE, *lines]
    result = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.slow
def test_compiles_without_a_graph_break():
    line = "compile_model('aot_eager', fullgraph=True)"
    assert not run(line)[line]


@pytest.mark.slow
@pytest.mark.parametrize("make", ["SFO", "SFO.recommended"])
def test_exports_with_a_dynamic_batch(make, tmp_path):
    """Quickly tested with test_export.py, on a line."""
    line = f"export_model({make}, {str(tmp_path / 'sfo.pt2')!r})"
    assert not run(line)[line]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiles_from_cold(backend):
    """The modes are built between two graphs, and are not compiled themselves."""
    line = f"compile_model({backend!r}, fullgraph=False)"
    assert not run(line)[line]
