import subprocess
import sys

import pytest

from sfo.registry import BASES, MODELS, Registry


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(
        ValueError, match=r"Unknown basis 'ubs'; known: .*usb.* Did you mean 'usb'\?"
    ):
        BASES["ubs"]


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="model 'sfo' is registered already"):
        MODELS.register("sfo")(MODELS["fno"])


def test_what_is_defined_again_takes_its_own_place():
    """As a cell of a notebook that is run twice."""
    registry = Registry("colour")
    for value in (1, 2):

        @registry.register("red")
        def red(value=value):
            return value

    assert registry["red"]() == 2


@pytest.mark.new_interpreter
def test_the_package_s_own_are_found_whatever_was_imported_before():
    """In an interpreter that imported nothing else."""
    code = """
import sys
from sfo.registry import BASES, BENCHMARKS, METRICS, MODELS, STUDIES
BASES["usb"], MODELS["sfo"], BENCHMARKS["allen_cahn"], METRICS["relative_l2"]
assert "sfo.experiments.studies" not in sys.modules
STUDIES["main"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "look",
    [lambda r: r["red"], lambda r: "red" in r, list, Registry.names, Registry.in_order],
    ids=["by name", "in", "list", "names", "in_order"],
)
def test_every_look_into_a_registry_imports_its_home(look, tmp_path, monkeypatch):
    registry = Registry("colour", home="colours_of_a_test")
    monkeypatch.setattr(sys, "registry_of_a_test", registry, raising=False)
    (tmp_path / "colours_of_a_test.py").write_text(
        "import sys\nsys.registry_of_a_test.register('red')(print)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert look(registry)
    del sys.modules["colours_of_a_test"]
