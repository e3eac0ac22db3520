"""A folder as pip leaves it: the package without its repository, and one with a plugin."""

import shutil
from pathlib import Path

import sfo

EXAMPLES = Path(__file__).parents[1] / "examples"


def site(folder):
    """Put both there; it is what PYTHONPATH must be."""
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
