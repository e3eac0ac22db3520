"""Print the files with slow tests that belong to what has changed since a commit.

tests/ mirrors sfo/: a change of sfo/models/ is a matter of tests/models/, a change of sfo/fft.py of
tests/test_fft.py. The contracts run over all registries, so they belong to every package. Of these
only files that hold a slow test are named: pytest fails where it is left without any test.

    python .ci/changed_tests.py HEAD~1
"""

import subprocess
import sys
from pathlib import Path

SLOW = "slow and not peers and not engines"


def tests_of(changed: list[str]) -> list[str]:
    """The tests of changed files that exist, each once."""
    found: dict[str, None] = {}
    for name in changed:
        parts = Path(name).parts
        if parts[:1] == ("tests",) and Path(name).name.startswith("test_"):
            candidates = [name]
        elif parts[:1] == ("sfo",) and len(parts) > 2:
            candidates = [f"tests/{parts[1]}", "tests/contracts"]
        elif parts[:1] == ("sfo",):
            candidates = [f"tests/test_{parts[1]}"]
        else:
            candidates = []
        found.update(dict.fromkeys(c for c in candidates if Path(c).exists()))
    folders = [f for f in found if Path(f).is_dir()]
    return [
        f for f in found if Path(f).is_dir() or not any(Path(d) in Path(f).parents for d in folders)
    ]


def with_slow_tests(tests: list[str]) -> list[str]:
    """The files among these folders and files in which pytest finds a slow test."""
    if not tests:
        return []
    asked = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", SLOW, *tests],
        capture_output=True,
        text=True,
    )
    # Each line that names a test is `file::name`, or `file: count` where pytest is quieter.
    names = (line.split("::" if "::" in line else ": ")[0] for line in asked.stdout.splitlines())
    return list(dict.fromkeys(n for n in names if n.endswith(".py") and Path(n).is_file()))


def main() -> None:
    """Print them in one line; nothing if the commit is not known here."""
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD~1"
    asked = subprocess.run(
        ["git", "diff", "--name-only", base, "HEAD"], capture_output=True, text=True
    )
    print(*with_slow_tests(tests_of(asked.stdout.splitlines())))


if __name__ == "__main__":
    main()
