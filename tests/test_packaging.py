"""What people expect of a package: its wheel, its version, its help, its image."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from fnmatch import fnmatch
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


def test_every_install_command_names_an_extra(wheel):
    """pip takes an extra that does not exist with a warning only, and installs nothing of it."""
    (name,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
    extras = set(re.findall(r"^Provides-Extra: (\S+)$", wheel.read(name).decode(), re.M))
    texts = [path.read_text() for path in (ROOT / "sfo").rglob("*.py")]
    texts += [path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]]
    named = re.findall(
        r"install_command\([\"'](\w+)|pip install '\.\[([\w,]+)\]'", "\n".join(texts)
    )
    asked = {extra for pair in named for extra in "".join(pair).split(",")}
    assert {"export", "hub", "loggers", "peers", "play"} <= asked
    assert asked <= extras, asked - extras


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


def docker_context(folder):
    """Copy what `docker build .` would send: the repository without what .dockerignore names."""
    patterns = (ROOT / ".dockerignore").read_text().split()
    anywhere = {p.removeprefix("**/") for p in patterns if p.startswith("**/")}
    at_the_top = {p for p in patterns if not p.startswith("**/")}

    def ignored(place, names):
        top = at_the_top if Path(place) == ROOT else set()
        return {n for n in names if n in top or any(fnmatch(n, p) for p in anywhere)}

    return Path(shutil.copytree(ROOT, folder, ignore=ignored))


def test_the_context_of_the_image_is_the_repository_alone(tmp_path):
    """No environment, history or cache of this machine, and all that installing needs."""
    context = docker_context(tmp_path / "sfo")
    names = {path.name for path in context.iterdir()}
    assert {"Makefile", "pyproject.toml", "constraints.txt", "README.md", "sfo", "tests"} <= names
    assert not names & {".venv", ".git", "runs", "build", "dist", ".pytest_cache", ".mypy_cache"}
    assert not list(context.rglob("__pycache__"))


@pytest.mark.slow
@pytest.mark.timeout(1800)  # Installs torch; a busy machine takes more than ten minutes.
def test_the_steps_of_the_image_run_in_a_folder_of_their_own(tmp_path):
    """What RUN does after apt-get, with pip in the place of uv: no registry of images is needed.

    The packages come from wherever pip gets them on this machine.
    """
    context = docker_context(tmp_path / "sfo")
    dockerfile = (context / "Dockerfile").read_text()
    assert "-r constraints.txt" in dockerfile
    assert "make .venv/.dev" in dockerfile
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}

    def run(*command):
        done = subprocess.run(command, cwd=context, env=env, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-2000:]
        return done.stdout

    run(sys.executable, "-m", "venv", ".venv")
    run("make", ".venv/.dev")
    program = str(context / ".venv" / "bin" / "sfo")
    assert run(program, "--version") == f"sfo {sfo.__version__}\n"
    assert "allen_cahn" in run(program, "list")
    where = run(str(context / ".venv/bin/python"), "-c", "import sfo; print(sfo.__file__)")
    assert Path(where.strip()).is_relative_to(context)
    pinned = dict(line.split("==") for line in (context / "constraints.txt").read_text().split()
                  if "==" in line)  # fmt: skip
    torch = run(str(context / ".venv/bin/python"), "-c", "import torch; print(torch.__version__)")
    assert torch.split("+")[0].strip() == pinned["torch"]
    assert "sfo demo" in run("make", "-n", "demo")
    assert "pytest" in run("make", "-n", "test")
