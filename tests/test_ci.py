"""Which slow tests belong to a change."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def changed_tests():
    path = ROOT / ".ci" / "changed_tests.py"
    spec = importlib.util.spec_from_file_location("changed_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tests_of(changed_tests):
    return changed_tests.tests_of


def test_a_package_has_the_folder_of_its_name_and_the_contracts(tests_of, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert tests_of(["sfo/models/fno.py", "sfo/models/uno.py"]) == [
        "tests/models",
        "tests/contracts",
    ]
    assert tests_of(["sfo/fft.py"]) == ["tests/test_fft.py"]


def test_a_file_within_a_folder_that_is_tested_anyway_is_left_out(tests_of, monkeypatch):
    monkeypatch.chdir(ROOT)
    files = ["tests/models/test_fno.py", "tests/test_cli.py", "tests/installed.py"]
    assert tests_of(files) == ["tests/models/test_fno.py", "tests/test_cli.py"]
    assert tests_of([*files, "sfo/models/fno.py"]) == [
        "tests/test_cli.py",
        "tests/models",
        "tests/contracts",
    ]


def test_what_has_no_tests_asks_for_none(tests_of, monkeypatch):
    """Documents, results, files that are gone, and a commit that is not known here."""
    monkeypatch.chdir(ROOT)
    gone = ["README.md", "results/desk/report.md", "tests/test_nothing.py"]
    assert tests_of(gone) == []
    assert tests_of([]) == []


@pytest.mark.new_interpreter
def test_only_files_that_hold_slow_tests_are_named(changed_tests, monkeypatch, tmp_path):
    """pytest ended with "no tests ran" where a file had none, and the run was taken for empty."""
    monkeypatch.chdir(tmp_path)
    slow = "import pytest\n\n\n@pytest.mark.slow\ndef test_it():\n    pass\n"
    Path("tests").mkdir()
    Path("tests/test_slow.py").write_text(slow)
    Path("tests/test_quick.py").write_text("# A file that speaks of slow tests.\n" + slow[34:])
    Path("tests/test_peers.py").write_text(slow.replace("slow", "slow\n@pytest.mark.peers"))
    assert changed_tests.with_slow_tests(["tests"]) == ["tests/test_slow.py"]
    assert changed_tests.with_slow_tests(["tests/test_quick.py"]) == []
    assert changed_tests.with_slow_tests([]) == []


def test_the_decisive_steps_run_in_order_and_the_tests_last():
    """Each of them stops the run where it fails; the log ends with the summary of `make test`."""
    script = (ROOT / ".ci" / "run").read_text()
    assert "set -euo pipefail" in script
    steps = [line for line in script.splitlines() if line.startswith("make ")]
    assert steps == [
        "make .venv/.dev",
        "make test-peers",
        "make test-engines",
        "make docs",
        "make test",
    ]
    assert script.rstrip().endswith("\nmake test")
