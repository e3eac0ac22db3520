"""Settings for all tests: shape annotations are checked, one thread a process, fixed seeds.

At the end of a run, tests that are not marked slow and took more than `LONG` seconds of CPU time
are listed, so that `make test` stays short.
"""

import base64
import os
import subprocess
from pathlib import Path

import forked
import pytest
import torch
from jaxtyping import install_import_hook

# Not the modules whose own checks are tested with bad arguments: those must answer first.
CHECKED = ["sfo.bases", "sfo.fft", "sfo.spectral_mix", "sfo.models.blocks"]
with install_import_hook(CHECKED, "beartype.beartype"):
    import sfo  # noqa: F401
    from sfo.files import replacing

torch.set_num_threads(1)
EMPTY_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
"""A PNG of one point."""
LONG = 5.0
"""Seconds of CPU time, of a test and the processes that it has started and waited for."""
BEGUN = pytest.StashKey[float]()
long_tests: dict[str, float] = {}

collect_ignore = ["contracts/fake_cuda.py"]
"""A program that a test runs in a process of its own."""


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def is_marked(test, *names):
    """Whether it has one of these marks; its keywords are also the folders that it is in."""
    return any(test.get_closest_marker(name) for name in names)


@pytest.fixture(autouse=True)
def _forked(request, monkeypatch):
    """Programs that quick tests start are forked, except where a new interpreter is the point."""
    if not is_marked(request.node, "slow", "peers", "engines", "new_interpreter"):
        monkeypatch.setattr(subprocess, "Popen", forked.Popen)


@pytest.fixture(autouse=True)
def _small_pictures(request, monkeypatch):
    """Drawing its predictions takes nine tenths of a small run: quick tests get an empty picture,
    but for those that look at it."""
    if is_marked(request.node, "slow", "peers", "engines", "pictures"):
        return

    def save_empty(figure, path, dpi=110):
        with replacing(path) as made:
            made.write_bytes(EMPTY_PICTURE)
        return Path(path)

    monkeypatch.setattr("sfo.experiments.run.save_figure", save_empty)


def cpu_seconds():
    """CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[BEGUN] = cpu_seconds()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "teardown" and BEGUN in item.stash:
        # A property of the report reaches the process that prints, also with pytest-xdist.
        report.user_properties.append(("cpu", cpu_seconds() - item.stash[BEGUN]))
    return report


def pytest_runtest_logreport(report):
    seconds = dict(report.user_properties).get("cpu", 0.0)
    if seconds > LONG and not {"slow", "peers"} & set(report.keywords):
        long_tests[report.nodeid] = seconds


def pytest_terminal_summary(terminalreporter):
    if not long_tests:
        return
    terminalreporter.section(f"over {LONG:g} s of CPU time and not marked slow")
    for name, seconds in sorted(long_tests.items(), key=lambda pair: -pair[1]):
        terminalreporter.write_line(f"{seconds:6.1f} s {name}")


@pytest.fixture
def registries():
    """What a test registers is forgotten after it."""
    import sfo.evaluation
    import sfo.experiments.studies  # noqa: F401
    from sfo.registry import BASES, BENCHMARKS, METRICS, MODELS, STUDIES

    every = (BASES, BENCHMARKS, METRICS, MODELS, STUDIES)
    before = [dict(registry._entries) for registry in every]
    yield
    for registry, entries in zip(every, before, strict=True):
        registry._entries = entries
