"""A long training holds no more memory and no more files at its end than early on."""

import importlib.util
from pathlib import Path

import pytest
from training.small_runs import ended, in_child

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


def five_thousand_steps(folder):
    spec = importlib.util.spec_from_file_location("soak", SOAK)
    soak = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(soak)
    rows = soak.soak(5_000, folder)
    assert rows[-1]["step"] == 5_000
    grown = soak.growth(rows)
    assert max(grown.values()) < soak.ALLOWED, (grown, rows)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_memory_and_open_files_stay(tmp_path):
    """A twentieth of `benchmarks/soak.py`, in a process of its own."""
    assert ended(in_child(five_thousand_steps, tmp_path / "run"), 800) == 0
