"""What people expect of a package: its wheel, its version, its help, its image."""

import json
import re
import zipfile
from pathlib import Path

import pytest

import sfo
from sfo.cli import COMMANDS, main

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    from hatchling.builders.wheel import WheelBuilder

    folder = tmp_path_factory.mktemp("dist")
    (path,) = WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"])
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_with_its_types(wheel):
    """Every file of sfo/, py.typed among them, and nothing of tests, results or docs."""
    packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
    ours = {p.relative_to(ROOT).as_posix() for p in (ROOT / "sfo").rglob("*") if p.is_file()}
    assert packed == {name for name in ours if "__pycache__" not in name}
    assert "sfo/py.typed" in packed


def test_the_wheel_says_what_it_is(wheel):
    (name,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
    metadata = wheel.read(name).decode()
    assert f"Version: {sfo.__version__}\n" in metadata
    assert "Classifier: Typing :: Typed\n" in metadata
    assert "Project-URL" not in metadata, "left out until there are some"


def test_one_version_everywhere(capsys):
    assert f"version: {sfo.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    main(["--version"])
    assert capsys.readouterr().out == f"sfo {sfo.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command, capsys):
    """A command line that can be typed, not only the usage."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    usage, rest = capsys.readouterr().out.split("\n", 1)
    assert re.search(rf"(Example: |\$ )(torchrun .* -m )?sfo {command}\b", rest), rest[:300]
    assert usage.startswith("usage: sfo")


def test_the_image_is_built_from_what_is_there():
    """What the Dockerfile copies and calls exists, and its command is one of the two."""
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    assert steps[0] == ["FROM", "python:3.12-slim"]
    (command,) = (json.loads(value) for key, value in steps if key == "CMD")
    assert command == ["make", "demo"]
    made = re.findall(r"^([\w./-]+):", (ROOT / "Makefile").read_text(), re.M)
    called = re.findall(r"\bmake ([\w./-]+)", " ".join(v for k, v in steps if k == "RUN"))
    assert set(called) - {"git"} <= set(made)
    assert {"demo", "test"} <= set(made)
    files = re.findall(r"-r (\S+)", " ".join(value for _, value in steps))
    assert all((ROOT / file).exists() for file in files)
