"""torch.compile and torch.export, in a process of their own: the shape checks that the other
tests switch on are not traceable."""

import subprocess
import sys

import pytest

PRELUDE = """
import sys, torch
from sfo import SFO
torch.set_num_threads(1)
torch.manual_seed(0)
small = dict(n_modes=4, hidden_channels=16, n_layers=2)
"""

COMPILE = """
model = SFO(1, 2, **small)
a = torch.randn(2, 1, 16)
if FULL: model(a)  # the modes of a new grid are built outside of the graph
compiled = torch.compile(model, backend=BACKEND, fullgraph=FULL)
torch.testing.assert_close(compiled(a), model(a))
grads = []
for function in (compiled, model):
    model.zero_grad()
    function(a).square().sum().backward()
    grads.append(model.layers[0].kernel.theta.grad.clone())
torch.testing.assert_close(*grads, rtol=1e-4, atol=1e-5)
"""

EXPORT = """
for make in (SFO, SFO.recommended):
    model = make(1, 2, 2, **small).eval()  # Never called: the modes are built while it is exported.
    a = torch.randn(2, 1, 8, 8)
    batch = torch.export.Dim("batch")
    program = torch.export.export(model, (a,), dynamic_shapes=({0: batch},))
    torch.export.save(program, sys.argv[1])
    loaded = torch.export.load(sys.argv[1]).module()
    b = torch.randn(5, 1, 8, 8)
    torch.testing.assert_close(loaded(b), model(b))
"""


def run(script, *arguments):
    command = [sys.executable, "-W", "ignore", "-c", PRELUDE + script, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert result.returncode == 0, result.stderr[-3000:]


def test_compiles_without_a_graph_break():
    run("BACKEND, FULL = 'aot_eager', True" + COMPILE)


@pytest.mark.slow
def test_compiles_with_inductor_from_cold():
    run("BACKEND, FULL = 'inductor', False" + COMPILE)


def test_exports_with_a_dynamic_batch(tmp_path):
    run(EXPORT, str(tmp_path / "sfo.pt2"))
