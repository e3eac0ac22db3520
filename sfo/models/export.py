"""A trained model as one file that runs without this package: torch.export's archive, or ONNX.

In the file Fourier transforms are real matrix products (`transform="matmul"`), so that it needs no
FFT and no complex numbers. The batch is dynamic, the grid is fixed: the modes of a kernel, the
matrices of its transforms and the coordinates are computed for one grid and are constants of the
file. What was written is run and compared with the model before it takes its name.
"""

import importlib
import importlib.util
import io
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sfo.checks import check_choice, install_command
from sfo.files import create_folder, replacing, sha256
from sfo.models.kernel import Kernel
from sfo.models.pretrained import Pretrained, weight_bytes
from sfo.registry import MODELS
from sfo.shapes import Field

Format = Literal["pt2", "onnx", "pretrained"]
PACKAGES = ("onnx", "onnxscript", "onnxruntime")
METADATA = "sfo.json"
"""The name under which a file holds what is known of its model, as JSON."""
TOLERANCE = 1e-4
"""A file whose output is further than this from the model's, in relative L2, is not written."""
LARGEST = 2**31 - 2**20
"""Bytes of an ONNX file, which its format limits to 2 GB."""


@dataclass(frozen=True)
class Exported:
    """A file that was written.

    Attributes:
        path: The file, or the folder of the format `"pretrained"`.
        format: The format.
        grid: Points along each axis, which are fixed in the file; None: any grid.
        difference: Relative L2 distance of the file's output from the model's.
    """

    path: Path
    format: Format
    grid: tuple[int, ...] | None
    difference: float


def export_model(
    model: nn.Module,
    path: str | os.PathLike[str],
    *,
    format: Format = "onnx",
    grid: Sequence[int] | None = None,
    in_channels: int | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Exported:
    """Write a model to a file that runs elsewhere, with a dynamic batch and a fixed grid.

    Units that the model was trained in are part of the file: it takes and gives the data's own.

    Args:
        model: The model; it stays as it is.
        path: The file to write, or the folder for `"pretrained"`.
        format: `"pt2"`: torch.export's archive, for `torch.export.load`; `"onnx"`: needs the extra
            `[export]`; `"pretrained"`: what `save_pretrained` writes, for any grid.
        grid: Points along each axis; None: the model's training grid.
        in_channels: Channels of the input; None: those that the model says it has.
        metadata: What else the file should know, as JSON can hold it: names, times and so on.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from sfo.models import SFO
        >>> model = SFO(in_channels=1, out_channels=2, n_modes=4, hidden_channels=8)
        >>> with TemporaryDirectory() as folder:
        ...     export_model(model, f"{folder}/model", format="pretrained").format
        'pretrained'
    """
    check_choice("format", format, Format)
    path = Path(path)
    if format == "pretrained":
        if not isinstance(model, Pretrained):
            raise ValueError(
                f"{_name(model)} has no `save_pretrained`, so that it cannot be exported as "
                "'pretrained'; choose the format 'pt2' or 'onnx'."
            )
        _check_writable(path, folder=True)
        model.save_pretrained(path)
        return Exported(path, format, None, 0.0)
    _check_writable(path)
    if format == "onnx":
        _check_extra()
    grid, channels = _grid(model, grid), _channels(model, in_channels)
    surrogate = _Surrogate(model).eval().requires_grad_(False)
    dtype = next((p.dtype for p in model.parameters() if not p.is_complex()), torch.float32)
    generator = torch.Generator().manual_seed(0)
    # Three samples: one is a case of its own for torch, and two may be taken for a constant.
    a = torch.randn(3, channels, *grid, generator=generator, dtype=dtype)
    with torch.no_grad():
        u = deepcopy(model).cpu().eval()(a)
    facts = {
        **(metadata or {}),
        "model": _name(model),
        "in_channels": channels,
        "out_channels": u.shape[1],
        "grid": list(grid),
        "dtype": str(dtype).removeprefix("torch."),
        "sha256": sha256(weight_bytes(model)),
    }
    with _quiet():
        program = _traced(surrogate, a[:2], _name(model))
        content, run = (_to_onnx if format == "onnx" else _to_pt2)(program, facts)
        difference = _difference(run, a, u, _name(model))
    with replacing(path) as made:
        made.write_bytes(content)
    return Exported(path, format, grid, difference)


class _Surrogate(nn.Module):
    """A copy of the model without FFT, whose input is called a."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = deepcopy(model).cpu()
        for module in self.model.modules():
            if isinstance(module, Kernel):
                module.modes.transform = "matmul"

    def forward(self, a: Field) -> Field:
        return self.model(a)


Runner = Callable[[Tensor], Tensor]


def _traced(surrogate: nn.Module, a: Tensor, name: str) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=1)
    try:
        program = torch.export.export(surrogate, (a,), dynamic_shapes=({0: batch},), strict=False)
    except Exception as error:  # Whatever a model does that cannot be traced.
        raise ValueError(f"The model {name} cannot be exported: {_first_line(error)}.") from error
    for node in program.graph.nodes:
        if "fft" in str(node.target):
            raise ValueError(
                f"The model {name} cannot be exported: it computes Fourier transforms by "
                f"{node.target}, and only this package's own layers have them as matrix products."
            )
    return program


def _to_pt2(
    program: torch.export.ExportedProgram, facts: Mapping[str, Any]
) -> tuple[bytes, Runner]:
    file = io.BytesIO()
    torch.export.save(program, file, extra_files={METADATA: json.dumps(facts)})
    content = file.getvalue()
    return content, torch.export.load(io.BytesIO(content)).module()


def _to_onnx(
    program: torch.export.ExportedProgram, facts: Mapping[str, Any]
) -> tuple[bytes, Runner]:
    import onnx
    import onnxruntime

    try:
        made = torch.onnx.export(
            program, dynamo=True, input_names=["a"], output_names=["u"], verbose=False
        )
        assert made is not None
        proto = made.model_proto
    except Exception as error:
        raise ValueError(
            f"The model {facts['model']} has operators that ONNX does not: {_first_line(error)}. "
            "Choose the format 'pt2'."
        ) from error
    if proto.ByteSize() > LARGEST:
        raise ValueError(
            f"The ONNX file would have {proto.ByteSize() / 1e9:.1f} GB, its format allows 2; "
            "choose a coarser grid or the format 'pt2'."
        )
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "batch"
    # What torch noted of its own graph names files of this machine.
    for entry in (*proto.graph.node, *proto.graph.input, *proto.graph.output, proto.graph, proto):
        del entry.metadata_props[:]
    onnx.helper.set_model_props(proto, {METADATA: json.dumps(facts)})
    content = proto.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # Its exceptions have no common class but this.
        raise ValueError(
            f"onnxruntime does not take the model {facts['model']} in {facts['dtype']}: "
            f"{_first_line(error)}. Choose the format 'pt2', or convert with model.float()."
        ) from error
    return content, lambda a: torch.from_numpy(session.run(None, {"a": a.numpy()})[0])


def _difference(run: Runner, a: Tensor, u: Tensor, name: str) -> float:
    """How far the file is from the model on one sample and on several."""
    with torch.no_grad():
        parts = [torch.dist(run(a[:n]), u[:n]) / u[:n].norm() for n in (1, len(a))]
    difference = float(torch.stack(parts).max())
    if not difference <= TOLERANCE:
        raise ValueError(
            f"The exported {name} is not the model: its output differs by {difference:.1e} in "
            f"relative L2, where {TOLERANCE} is allowed. Nothing was written."
        )
    return difference


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `export_model` wrote into a pt2 or ONNX file besides the graph."""
    path = Path(path)
    if path.suffix == ".onnx":
        _check_extra()
        import onnx

        entries = onnx.load(path, load_external_data=False).metadata_props
        return json.loads({entry.key: entry.value for entry in entries}[METADATA])
    files = {METADATA: ""}
    torch.export.load(path, extra_files=files)
    return json.loads(files[METADATA])


def _grid(model: nn.Module, grid: Sequence[int] | None) -> tuple[int, ...]:
    if grid is None:
        grid = training_grid(model)
    if grid is None:
        raise ValueError(
            f"`grid` is needed: {_name(model)} does not know the grid that it was trained on."
        )
    grid = tuple(grid)
    if not grid or not all(isinstance(n, int) and n > 0 for n in grid):
        raise ValueError(
            f"`grid` must be fixed numbers of points, at least 1 along each axis, got {grid}: the "
            "modes and transforms of a grid are constants of the file. Export one file per grid."
        )
    n_dim = getattr(model, "n_dim", len(grid))
    if len(grid) != n_dim:
        raise ValueError(
            f"`grid` must have as many numbers as the model has axes, {n_dim}, got {grid}."
        )
    return grid


def training_grid(model: nn.Module) -> tuple[int, ...] | None:
    """The grid that a model was trained on, if it knows."""
    for module in model.modules():
        if isinstance(module, Kernel) and module.modes.train_shape is not None:
            return module.modes.train_shape
    shape = getattr(model, "arguments", {}).get("train_shape")
    return None if shape is None else tuple(shape)


def _channels(model: nn.Module, in_channels: int | None) -> int:
    channels = in_channels if in_channels is not None else getattr(model, "in_channels", None)
    if channels is None:
        raise ValueError(f"`in_channels` is needed: {_name(model)} does not say how many it takes.")
    return int(channels)


def _name(model: nn.Module) -> str:
    """The name that a model is registered under, or else its class's."""
    for name in MODELS:
        if MODELS[name] is type(model):
            return name
    return type(model).__name__


def _check_writable(path: Path, *, folder: bool = False) -> None:
    """Refuse a place where nothing can be written, before anything is computed."""
    try:
        create_folder(path if folder else path.parent)
    except OSError as error:
        raise ValueError(f"Cannot write {path}: {error.strerror}.") from None
    if not folder and path.is_dir():
        raise ValueError(f"Cannot write {path}: it is a folder; name a file.")
    if not os.access(path if folder else path.parent, os.W_OK):
        raise ValueError(f"Cannot write {path}: Permission denied.")


def _check_extra() -> None:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise ValueError(
            f"ONNX needs {', '.join(missing)} to be installed: {install_command('export')}."
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from warning about what is of no concern to the user, such as torchvision."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".")
