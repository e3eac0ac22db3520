"""The commands of the pages run: each page's blocks in order, in an empty folder, at small size.

A `bash` block is typed line by line, through the same function that the `sfo` command calls; the
Python blocks of the page run between them. `SMALLER` says what is typed instead, so that a page
takes seconds; `NOT_RUN` which commands are left out, and why.
"""

import re
import shlex
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from pages import OWN, PAGES, REPORT, TUTORIALS, blocks, briefly, lines, name_of

from sfo import cli

SMALLER = {
    r"--scale (desk|paper)": "--scale smoke",
    r'scale="desk"': 'scale="smoke"',
    r"results/desk": "results/smoke",
    r"--epochs \d+": "--epochs 1",
    r"--seeds \d+": "--seeds 1",
    r"(?<=generate )(.*)--samples \d+": r"\1--samples 4",
    r"^(sfo theory .*)": r"\1 --quick",
    # What is left out is the desk scale, and as many epochs as it has.
    r"^(sfo (generate|reproduce|train --benchmark) (?!.*--scale).*)": r"\1 --scale smoke",
    r"^(sfo train (?!.*--epochs).*)": r"\1 --epochs 1",
    # One benchmark of six, one process; measurements take no rows.
    r"^(sfo reproduce (?!params|runtime|seconds|index|.*--benchmark).*)": (
        r"\1 --benchmark allen_cahn --workers 1"
    ),
    r"^(sfo reproduce index .*)": r"\1 --benchmark shallow_water --workers 1",
}
"""Patterns in a block, and what stands in their place."""

_INSTALLS = "installs; tests/test_wheel.py and tests/test_packaging.py install"
_GPU = "needs GPUs"
_CLUSTER = "needs a cluster; tests/experiments/engines has a stand-in of one"
_FETCHES = "fetches a file of gigabytes from its publisher; tests/data has a stand-in of it"
_SAYS_WHERE = "only a browser gets the file: it says where and ends with 2; tests/test_cli_data.py"
_SERVES = "answers until it is stopped; tests/play starts it"
_MEASURES = "measures for minutes at the paper's sizes"
NOT_RUN = {
    "make demo": "makes an environment; tests/test_demo.py runs what it calls",
    "make test": "would run this test",
    "pip install .": _INSTALLS,
    "pip install '.[play]'": _INSTALLS,
    "pip install '.[export]'": _INSTALLS,
    "sfo play": _SERVES,
    "sfo play runs/demo": _SERVES,
    "sfo play allen_cahn runs/mine --port 8080 --no-browser": _SERVES,
    "sfo play runs/mine --data mine.npz": _SERVES,
    "sfo download allen_cahn": _SAYS_WHERE,
    "sfo download cahn_hilliard": _SAYS_WHERE,
    "sfo download maxwell": _SAYS_WHERE,
    "sfo download diffusion_reaction --out data": _FETCHES,
    "sfo download diffusion_sorption --out data": _FETCHES,
    "sfo download shallow_water --out data": _FETCHES,
    "sfo reproduce main --accelerator cuda --devices 0,1,2,3": _GPU,
    "sfo train --benchmark maxwell --accelerator cuda --devices 2": _GPU,
    "sfo evaluate runs/mine --accelerator cuda --devices 1,": _GPU,
    "sfo reproduce main --engine slurm --workers 32 --slurm slurm_partition=cpu "
    "--slurm timeout_min=240 --slurm mem_gb=4": _CLUSTER,
    "pip install '.[slurm]'": _INSTALLS,
    "pip install '.[ray]'": _INSTALLS,
    "export RAY_AUTH_MODE=token": _CLUSTER,
    "ray get-auth-token --generate": _CLUSTER,
    "mkdir -p ~/.ray; scp head:.ray/auth_token ~/.ray/": _CLUSTER,
    "ray status": _CLUSTER,
    "ray stop": _CLUSTER,
    "ray start --head --port 6379": _CLUSTER,
    "ray start --address head:6379": _CLUSTER,
    "sfo reproduce main --engine ray --address head:6379": _CLUSTER,
    "torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint first:29500 "
    "--max-restarts 3 -m sfo train --benchmark shallow_water --scale paper --out runs/water": (
        _CLUSTER
    ),
    "python benchmarks/streaming.py": _MEASURES,
    "python benchmarks/models.py --json benchmarks/models.json": _MEASURES,
    "python benchmarks/models.py --json benchmarks/models.json --show": _MEASURES,
}
"""Commands as a page shows them, and why they are not run."""

PUBLISHED = {
    "1D_Allen-Cahn_0.0001_5.hdf5": "allen_cahn",
    "1D_Cahn-Hilliard_10e-6_0.01.hdf5": "cahn_hilliard",
    "3D_Maxwell_10_1.h5": "maxwell",
    "data/1D_diff-sorp_NA_NA.h5": "diffusion_sorption_rk45",
    "data/ReacDiff_Nu0.5_Rho1.0.hdf5": "diffusion_reaction_f32",
    "data/2D_rdb_NA_NA.h5": "shallow_water_rdb",
}
"""Files that a reader would have downloaded, and the benchmark of which one is made instead."""

QUICK = ("docs/guides/own_data.md",)
"""Pages that run with every `make test`; so does the README's code, in tests/test_documents.py."""
WITH_COMMANDS = [
    pytest.param(page, id=name_of(page), marks=[pytest.mark.slow] * (name_of(page) not in QUICK))
    for page in [*OWN, REPORT]
    if any(kind == "bash" for kind, _ in blocks(page))
]


def type_in(line):
    """Call `sfo` as the shell would; it must end well."""
    program, *arguments = shlex.split(line)
    assert program == "sfo", f"Neither a command of sfo nor named in NOT_RUN: {line}"
    code = 0
    try:
        cli.main(arguments)
    except SystemExit as stop:
        code = stop.code
    # The doctor's 1 says that it found something: published files are as they are.
    well = (0, 1, None) if arguments[:1] == ["doctor"] and arguments[1] in PUBLISHED else (0, None)
    assert code in well, f"{line} ended with {code}"


def smaller(text):
    for pattern, replacement in SMALLER.items():
        text = re.sub(pattern, replacement, text)
    return text


def give(text):
    """Make what the text reads and nothing has made so far: the reader's arrays, or a file."""
    a = np.random.default_rng(0).normal(size=(20, 1, 32)).astype("float32")
    if "mine.npz" in text and not Path("mine.npz").exists():
        np.savez("mine.npz", a=a, u=np.cumsum(a, axis=-1))
    if "input.npy" in text:
        np.save("input.npy", a[:2])
    for name, benchmark in PUBLISHED.items():
        if name in text and not Path(name).exists():
            Path(name).parent.mkdir(exist_ok=True)
            type_in(f"sfo generate {benchmark} --scale smoke --samples 4 --out {name}")


def together(commands):
    """Studies that are reproduced one after the other with the same options, in one command.

    It starts its worker once: the report's page has twenty, and each took four seconds to start.
    """
    start, joined = "sfo reproduce ", []
    for command in commands:
        studies, *options = command.split(" --", 1)
        before, *their_options = joined[-1].split(" --", 1) if joined else [""]
        if studies.startswith(start) and before.startswith(start) and options == their_options:
            joined[-1] = " --".join([f"{before} {studies.removeprefix(start)}", *options])
        else:
            joined.append(command)
    return joined


def test_studies_are_typed_together():
    """Only those with the same options, and in the order of the page."""
    page = ["sfo reproduce a --seeds 1", "sfo reproduce b --seeds 1", "sfo reproduce c", "sfo list"]
    assert together(page) == ["sfo reproduce a b --seeds 1", "sfo reproduce c", "sfo list"]
    assert together(["sfo reproduce a-b", "sfo reproduce c d"]) == ["sfo reproduce a-b c d"]


@pytest.mark.timeout(1800)  # The report's page takes minutes; a busy machine takes more.
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_run(page, tmp_path, monkeypatch, registries):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    names = {"__name__": "__main__"}
    for kind, part in groupby(blocks(page), lambda block: block[0]):
        texts = [text for _, text in part]
        if kind == "python" and page.parent != TUTORIALS:
            for text in texts:
                if "np.savez" not in text:
                    give(text)
                exec(compile(briefly(smaller(text)), page.name, "exec"), names)
        elif kind == "bash":
            typed = [line for text in texts for line in lines(text) if line not in NOT_RUN]
            for line in together(map(smaller, typed)):
                give(line)
                type_in(line)


def test_what_is_not_run_is_on_a_page():
    """The list does not outlive the pages."""
    shown = {line for page in PAGES for kind, text in blocks(page) if kind == "bash"
             for line in lines(text)}  # fmt: skip
    assert set(NOT_RUN) <= shown, set(NOT_RUN) - shown


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_says_what_it_is(page):
    """`python` and `bash` run; `text` is output; a title says why a block does neither."""
    for kind, text in blocks(page):
        assert kind in ("python", "bash", "text"), text[:200]
