"""What a model costs: parameters, floating-point operations, memory and time."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from math import log2, prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from sfo import plugins
from sfo.evaluation.errors import evaluating, to_model
from sfo.shapes import Field


@dataclass(frozen=True)
class Cost:
    """The cost of a model at one batch size on one device; made by `measure_cost`.

    Attributes:
        parameters: Numbers that are learned, a complex one counting once, as the papers do.
        real_parameters: The same with a complex one counting twice.
        flops: Floating-point operations of a prediction for each sample, see `count_flops`. What a
            batch shares, such as the kernel of an SFO, is divided among its samples.
        training_flops: The same of a training step, forward and backward.
        training_memory: Bytes that a training step adds at its peak: see `training_memory`.
        training_seconds: Median time of a training step.
        samples_per_second: In prediction, by the median time of a batch.
        batch_size: Batch size of all of these.
        device: Where it was measured.
        threads: Threads of the CPU.

    Example:
        >>> layer = nn.Conv1d(1, 1, 3, padding=1)
        >>> cost = measure_cost(layer, torch.ones(2, 1, 8), torch.ones(2, 1, 8), memory=False)
        >>> cost.parameters, cost.flops, cost.batch_size
        (4, 48.0, 2)
    """

    parameters: int
    real_parameters: int
    flops: float
    training_flops: float
    training_memory: int | None
    training_seconds: float
    samples_per_second: float
    batch_size: int
    device: str
    threads: int


def measure_cost(
    model: nn.Module, a: Field, u: Field, *, repeats: int = 5, memory: bool = True
) -> Cost:
    """Everything in `Cost`, measured on copies: the model stays as it is.

    Args:
        model: On the device to measure.
        a, u: One batch of inputs and solutions. Their values do not matter.
        repeats: How often a step is timed, after one that is not.
        memory: Also measure the memory, which on a CPU starts a process and takes seconds.

    Example:
        >>> model, a = nn.Conv1d(1, 2, 3, padding=1), torch.ones(4, 1, 8)
        >>> measure_cost(model, a, torch.ones(4, 2, 8), memory=False).real_parameters
        8
    """
    if len(a) != len(u) or len(a) < 1 or repeats < 1:
        raise ValueError(
            "`a` and `u` must be one batch and `repeats` at least 1, got "
            f"{len(a)} and {len(u)} samples, repeats={repeats}."
        )
    a, u = to_model(model, a), to_model(model, u)
    copy = deepcopy(model)
    step = _training_step(deepcopy(model), a, u)
    with evaluating(copy):
        # The first call builds what is kept for the grid.
        copy(a)
        flops = count_flops(lambda: copy(a))
        seconds = _median_seconds(lambda: copy(a), repeats, a.device)
    training_seconds = _median_seconds(step, repeats, a.device)
    on_gpu = a.device.type == "cuda"
    return Cost(
        parameters=count_parameters(model),
        real_parameters=count_parameters(model, complex_counts=2),
        flops=flops / len(a),
        training_flops=count_flops(step) / len(a),
        training_memory=training_memory(model, a, u) if memory else None,
        training_seconds=training_seconds,
        samples_per_second=len(a) / seconds,
        batch_size=len(a),
        device=torch.cuda.get_device_name(a.device) if on_gpu else a.device.type,
        threads=torch.get_num_threads(),
    )


def count_parameters(model: nn.Module, complex_counts: int = 1) -> int:
    """Learned numbers; shared ones count once, complex ones `complex_counts` times.

    The papers, and most libraries, count a complex number once, although it is two real ones.

    Example:
        >>> count_parameters(nn.Linear(3, 5))
        20
    """
    return sum(p.numel() * (complex_counts if p.is_complex() else 1) for p in model.parameters())


def count_flops(run: Callable[[], object]) -> int:
    """Floating-point operations of the matrix products, convolutions and FFTs in `run()`.

        matrix product (m × k)(k × n):   2 m k n, times 4 if complex
        convolution:                     2 · (points out) · (channels in · kernel) · channels out
        FFT over N points:               5 N log₂ N if complex, half if one side is real

    It counts what is executed, operators of this package's own autograd functions and backward
    passes included. Attention and recurrent layers are counted as the matrix products they are
    made of. Pointwise functions, norms, sums, recurrences and the optimizer are not counted.

    Example:
        >>> layer, x = nn.Linear(3, 5), torch.ones(7, 3)
        >>> count_flops(lambda: layer(x)) == 2 * 7 * 3 * 5
        True
        >>> count_flops(lambda: torch.fft.fft(torch.ones(64))) == 5 * 64 * 6 // 2
        True
    """
    with ExitStack() as stack:
        # Fused attention and recurrent layers hide their products from the counter. Switching
        # oneDNN off warns about a setting of other devices.
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", UserWarning)
        stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        counter = stack.enter_context(FlopCounterMode(display=False, custom_mapping=_formulas()))
        run()
    return counter.get_total_flops()


def _formulas() -> dict[Any, Callable[..., int]]:
    """What torch's counter lacks, or counts as if complex numbers were real."""
    aten = torch.ops.aten
    formulas: dict[Any, Callable[..., int]] = {
        operator: _product(left)
        for left, operators in (
            (0, (aten.mm, aten.bmm, aten.mv, aten.dot, aten.vdot)),
            (1, (aten.addmm, aten.addmm_, aten.baddbmm, aten.baddbmm_, aten.addmv)),
        )
        for operator in operators
    }
    formulas |= dict.fromkeys((aten._fft_r2c, aten._fft_c2r, aten._fft_c2c), _transform)
    for formula in formulas.values():
        formula._get_raw = True  # type: ignore[attr-defined]  # tensors, not only shapes
    return formulas


def _product(left: int) -> Callable[..., int]:
    """Each number of the result is a sum of products along the last axis of argument `left`."""

    def flops(*arguments: Any, out_val: Tensor, **_: Any) -> int:
        multiply_add = 8 if out_val.is_complex() else 2
        return multiply_add * out_val.numel() * arguments[left].shape[-1]

    return flops


def _transform(v: Tensor, axes: list[int], *_: Any, out_val: Tensor, **__: Any) -> int:
    """5 N log₂ N for each transform of N points, the usual figure for the Cooley–Tukey FFT."""
    larger = v if v.numel() > out_val.numel() else out_val
    n = prod(larger.shape[axis] for axis in axes)
    both_complex = v.is_complex() and out_val.is_complex()
    return round((5 if both_complex else 2.5) * larger.numel() * log2(n)) if n > 1 else 0


def training_memory(model: nn.Module, a: Field, u: Field) -> int | None:
    """Bytes that a training step adds, at its peak, to the model and its batch.

    A step is forward, relative L2, backward and the first update of Adam, so activations,
    gradients, the moments of Adam and all scratch space count. On a GPU it is what torch
    allocates. On a CPU it is the growth of the resident memory of a fresh process, in which every
    tensor has pages of its own, so scratch space of other libraries counts as well and holes in
    the heap do not. None on other devices, where the system does not tell (not Linux), and, with
    a warning, for a model whose class a fresh process cannot import.

    Example:
        >>> on_meta = nn.Linear(3, 5, device="meta")
        >>> training_memory(on_meta, torch.ones(2, 3), torch.ones(2, 5)) is None
        True
    """
    a, u = to_model(model, a), to_model(model, u)
    if a.device.type == "cuda":
        step = _training_step(deepcopy(model), a, u)
        before = torch.cuda.memory_allocated(a.device)
        torch.cuda.reset_peak_memory_stats(a.device)
        step()
        return torch.cuda.max_memory_allocated(a.device) - before
    if a.device.type != "cpu" or not Path("/proc/self/clear_refs").exists():
        return None
    unknown = [type(part) for part in model.modules() if not plugins.importable(type(part))]
    if unknown:
        warnings.warn(
            f"The memory of a training step is left out: it is measured in a fresh process, where "
            f"{unknown[0].__name__} is not known because a notebook or script defines it; put it "
            "into a module or a plugin.",
            stacklevel=2,
        )
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "step.pt")
        torch.save((model, a, u, torch.get_num_threads()), path)
        program = (
            "import sys; from sfo import plugins; plugins.load_all(sys.argv[2:]); "
            "from sfo.evaluation import cost; cost._print_growth(sys.argv[1])"
        )
        environment = {
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            # Have glibc map every tensor apart and give it back when it is freed. Left alone it
            # tears holes in the heap, which made 13 fields alive look like 18 to 21.
            "MALLOC_MMAP_THRESHOLD_": "65536",
        }
        child = subprocess.run(
            [sys.executable, "-c", program, str(path), *plugins.loaded()],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
        )
    if child.returncode:
        raise RuntimeError(
            "The training step could not be repeated in a fresh process; the model's class must "
            f"be importable there, so not from a notebook. It said:\n{child.stderr[-2000:]}"
        )
    return int(child.stdout.split()[-1])


def _print_growth(path: str) -> None:
    """What the fresh process does: a training step, and the bytes by which memory grew."""
    model, a, u, threads = torch.load(path, weights_only=False)
    torch.set_num_threads(threads)
    step = _training_step(model, a, u)
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark
    step()
    print(_status("VmHWM") - before)


def _status(key: str) -> int:
    """An entry of the kernel's account of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(key + ":"))


def _training_step(model: nn.Module, a: Field, u: Field) -> Callable[[], None]:
    """Forward, relative L2, backward, Adam; it changes `model`."""
    model.train()

    def backward(a: Field, u: Field) -> None:
        size = u.flatten(1).norm(dim=1)
        ((model(a) - u).flatten(1).norm(dim=1) / size).mean().backward()

    # Once on a single sample: libraries load, and the model builds what it keeps for the grid.
    backward(a[:1], u[:1])
    model.zero_grad()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        backward(a, u)
        optimizer.step()

    return step


def _median_seconds(run: Callable[[], object], repeats: int, device: torch.device) -> float:
    """Median time of `run()`, after once without the clock."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        run()
        if device.type != "cpu":
            torch.accelerator.synchronize(device)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])
