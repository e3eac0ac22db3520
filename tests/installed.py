"""A folder as pip leaves it: the package without its repository, and one with a plugin."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import sfo

REPOSITORY = Path(__file__).parents[1]
EXAMPLES = REPOSITORY / "examples"


def site(folder):
    """A copy of the package, and a plugin that works and one that does not, with entry points."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(sfo.__file__).parent, folder / "sfo", ignore=ignored)
    shutil.copy(EXAMPLES / "plugin.py", folder / "installed_plugin.py")
    (folder / "broken_plugin.py").write_text("1 / 0")
    info = folder / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    entries = "[sfo.plugins]\nmine = installed_plugin\nbad = broken_plugin\n"
    (info / "entry_points.txt").write_text(entries)
    return folder


def build_wheel(folder):
    """The wheel that a user would install, built from the repository."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    # The repository is a folder of its own to the builder, not an installed package.
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = Path(folder).glob("*.whl")
    return wheel


def install_wheel(wheel, folder):
    """Install the wheel alone; what it needs is there already."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [*install, "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def environment(folder, **more):
    """What a process needs to import what is installed in a folder, and nothing else."""
    return {**os.environ, "PYTHONPATH": str(folder), **more}


def start_and_kill(command, folder, env, sign):
    """Start a command, and kill it as soon as a file that fits the pattern `sign` is there."""
    process = subprocess.Popen(command, cwd=folder, env=env, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 300
    while not list(folder.glob(sign)) and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.005)
    process.kill()
    process.wait()
