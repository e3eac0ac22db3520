"""Models on a device that is not the CPU, checked without one."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_models import NAMES

from sfo.training.devices import Devices

COMPILER = shutil.which("g++") or shutil.which("clang++")
HERE = Path(__file__).parent


@pytest.mark.skipif(
    COMPILER is None, reason="needs a C++ compiler, because torch without CUDA has no such device"
)
@pytest.mark.new_interpreter
def test_all_of_every_model_is_on_its_device(pytestconfig, tmp_path):
    """Forward and backward on fake CUDA tensors: a tensor left on the CPU is refused by torch."""
    source = HERE / "fake_cuda.cpp"
    of_this = hashlib.sha256(source.read_bytes() + torch.__version__.encode()).hexdigest()[:16]
    library = pytestconfig.cache.mkdir("fake_cuda") / f"{of_this}.so"
    if not library.exists():
        compile_fake(source, tmp_path / "fake_cuda.so")
        shutil.copy(tmp_path / "fake_cuda.so", library)
    found = subprocess.run(
        [sys.executable, str(HERE / "fake_cuda.py"), str(library), *NAMES],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, sys.path)])},
    )
    assert found.stdout == "checked\n", found.stderr[-2000:]


def compile_fake(source, library):
    """Half of the test's time, so the result is kept."""
    folder = Path(torch.__file__).parent
    words = f"-O0 -std=c++20 -shared -fPIC -I{folder}/include -L{folder}/lib -lc10 -ltorch_cpu"
    places = [str(source), "-o", str(library), f"-Wl,-rpath,{folder}/lib"]
    subprocess.run([COMPILER, *places, *words.split()], check=True)


@pytest.mark.parametrize(
    ("accelerator", "devices", "said"),
    [
        ("cuda", None, "torch finds no CUDA device"),
        ("auto", "0,1", "torch finds no CUDA device"),
        ("cpu", "0,1", "`devices` must be a number of processes on the accelerator cpu"),
        ("tpu", None, "`accelerator` must be one of 'auto', 'cpu', 'cuda', 'mps', got 'tpu'"),
        ("cpu", "two", "`devices` must be a number, or a list"),
        ("cpu", "0", "`devices` must be at least 1, got 0"),
        ("cuda", "0,0", "a list such as 0,1 of different ones"),
    ],
)
def test_devices_that_are_not_there_are_refused_in_a_sentence(
    accelerator, devices, said, monkeypatch
):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(ValueError, match=r".") as refused:
        Devices.of(accelerator, devices)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_of_two_devices_a_third_is_refused(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    for devices in ("0,2", "3"):
        with pytest.raises(ValueError, match=rf"CUDA devices 0, 1 that are here, got {devices}"):
            Devices.of("cuda", devices)
    assert Devices.of("gpu", "1,").one() == torch.device("cuda", 1)
    assert Devices.of("cuda", "0,1").count() == 2
    assert Devices.of("cuda", 2).number == 2
    with pytest.raises(ValueError, match="must name one device here"):
        Devices.of("cuda", "0,1").one()


def test_devices_of_a_cluster_are_not_looked_for_here(monkeypatch):
    """A login node has no GPU."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    there = Devices.elsewhere("gpu")
    assert (there.kind, there.count()) == ("cuda", None)
    with pytest.raises(ValueError, match="`devices` must be left out where a cluster does the run"):
        Devices.elsewhere("cuda", "0,1")
    with pytest.raises(ValueError, match="`accelerator` must be one of"):
        Devices.elsewhere("tpu")
