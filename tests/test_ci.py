"""Which slow tests belong to a change."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tests_of():
    path = ROOT / ".ci" / "changed_tests.py"
    spec = importlib.util.spec_from_file_location("changed_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.tests_of


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
