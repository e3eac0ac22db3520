"""Every example runs as its docstring says."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
PLUGINS = ("plugin",)
"""Passed to commands, not run: tests/test_plugins.py does that."""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, tmp_path):
    assert len(path.read_text().splitlines()) <= 80
    command = [sys.executable, str(path)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert bool(result.stdout) == (path.stem not in PLUGINS)
