"""From a benchmark's name or a file's path to pairs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfo.data.arrays import check_finite
from sfo.data.benchmarks import Benchmark, Scale
from sfo.data.generate import SampleProgress, generate
from sfo.data.hdf5 import DataFile
from sfo.data.pairs import Pairs, Scheme, Split, SplitName, pairs, split
from sfo.data.streamed import CACHE_BYTES, is_large, streamed_pairs
from sfo.files import json_sha256
from sfo.registry import BENCHMARKS

PAPER_POINTS = 256
"""What models see along the axis of the 1D files, of which 1,024 points are stored."""


def data_folder() -> Path:
    """Where generated files are kept: $SFO_DATA, or sfo/data in the user's cache folder.

    Example:
        >>> data_folder() == Path(os.environ.get("SFO_DATA", data_folder()))
        True
    """
    if "SFO_DATA" in os.environ:
        return Path(os.environ["SFO_DATA"])
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "sfo" / "data"


def benchmark_path(
    benchmark: Benchmark,
    scale: str | Scale,
    samples: int | None = None,
    seed: int = 0,
    folder: str | os.PathLike[str] | None = None,
) -> Path:
    """Where the generated file of a benchmark is kept: a name for every set of choices.

    Example:
        >>> benchmark_path(BENCHMARKS["burgers"], "smoke", seed=3, folder="data").name[:20]
        'burgers-smoke-24-see'
    """
    sizes = benchmark.scale(scale) if isinstance(scale, str) else scale
    title = scale if isinstance(scale, str) else "custom"
    mark = json_sha256([sizes.to_dict(), benchmark.options()])[:8]
    name = f"{benchmark.name}-{title}-{samples or sizes.samples}-seed{seed}-{mark}.hdf5"
    return Path(folder or data_folder()) / name


def load_benchmark(
    name: str,
    scale: str = "desk",
    split: SplitName = "train",
    *,
    scheme: Scheme = "default",
    samples: int | None = None,
    seed: int = 0,
    stride: int | None = None,
    time_stride: int = 1,
    inputs: Sequence[str] | None = None,
    n_input: int | None = None,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: SampleProgress | None = None,
    stream: bool | None = None,
    **options: Any,
) -> Pairs:
    """The pairs of one split of a benchmark, generated on first use and kept.

    Args:
        name: A benchmark, see `sfo list`.
        scale: "smoke", "desk" or "paper".
        split: "train", "validation", "test" or "all".
        scheme: How samples are divided, see `Split`; "paper" is the paper's 90/10 %.
        samples: How many in all; None: as many as the scale says.
        seed: Seed of the data.
        stride: Take every `stride`-th stored point; None: as the paper does at this scale.
        time_stride: Take every `time_stride`-th frame.
        inputs: Fields of the input; None: as the benchmark has it.
        n_input: Frames of the input; None: as the benchmark has it.
        folder: Where data files are kept; None: see `data_folder`.
        workers: Processes that generate; None: one per core.
        progress: Called with the samples done and in all while generating.
        stream: See `file_pairs`.
        options: Options of the benchmark, and constants of its equation.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     test = load_benchmark("allen_cahn", "smoke", "test", folder=folder, workers=1)
        >>> test.a.shape, test.u.shape
        (torch.Size([2, 1, 64]), torch.Size([2, 11, 64]))
    """
    file = open_benchmark(
        name,
        scale,
        samples=samples,
        seed=seed,
        stride=stride,
        time_stride=time_stride,
        folder=folder,
        workers=workers,
        progress=progress,
        **options,
    )
    return file_pairs(file, split, scheme, inputs=inputs, n_input=n_input, stream=stream)


def open_benchmark(
    name: str,
    scale: str = "desk",
    *,
    samples: int | None = None,
    seed: int = 0,
    stride: int | None = None,
    time_stride: int = 1,
    folder: str | os.PathLike[str] | None = None,
    workers: int | None = None,
    progress: SampleProgress | None = None,
    **options: Any,
) -> DataFile:
    """The data file of a benchmark, generated on first use; for arguments see `load_benchmark`."""
    benchmark = BENCHMARKS[name].with_options(**options)
    sizes = benchmark.scale(scale)
    path = benchmark_path(benchmark, scale, samples, seed, folder)
    generate(
        benchmark,
        path,
        scale=sizes,
        samples=samples,
        seed=seed,
        workers=workers,
        progress=progress,
    )
    return load_file(path, sizes.stride if stride is None else stride, time_stride)


def load_file(
    path: str | os.PathLike[str], stride: int | None = None, time_stride: int = 1
) -> DataFile:
    """Open a published or generated data file; samples are read when asked for.

    Args:
        path: Any of the benchmarks' files or a subset of one; told by its contents.
        stride: Take every `stride`-th point along each axis; None: as the paper does, every
            fourth of 1,024 points in 1D, every point otherwise.
        time_stride: Take every `time_stride`-th frame.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     test = load_benchmark("allen_cahn", "smoke", "test", folder=folder, workers=1)
        ...     file = load_file(next(Path(folder).glob("*.hdf5")))
        ...     file.benchmark, len(file), file[[0]].values.shape
        ('allen_cahn', 24, torch.Size([1, 11, 1, 64]))
    """
    if stride is None:
        shape = DataFile(path).header.grid.shape
        stride = shape[0] // PAPER_POINTS if len(shape) == 1 and shape[0] == 1024 else 1
    return DataFile(path, stride, time_stride)


def file_split(file: DataFile, scheme: Scheme = "default") -> Split:
    """How the samples of a file are divided.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     test = load_benchmark("burgers", "smoke", "test", folder=folder, workers=1)
        ...     file = load_file(next(Path(folder).glob("*.hdf5")))
        ...     file_split(file).test == test.ids
        True
    """
    digests: Sequence[bytes] = ()
    if scheme == "deduplicated":
        digests = [file.raw(i).fingerprint() for i in range(len(file))]
    return split(len(file), scheme, digests)


def file_pairs(
    file: DataFile,
    split: SplitName = "all",
    scheme: Scheme = "default",
    *,
    inputs: Sequence[str] | None = None,
    n_input: int | None = None,
    stream: bool | None = None,
) -> Pairs:
    """The pairs of one split of a file.

    Args:
        file: From `load_file`.
        split: "train", "validation", "test" or "all".
        scheme: See `Split`.
        inputs: Fields of the input; None: as the benchmark has it.
        n_input: Frames of the input; None: as the benchmark has it.
        stream: Read samples as they are asked for, instead of holding them all in memory; None:
            if they take more than 512 MB.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     test = load_benchmark("burgers", "smoke", "test", folder=folder, workers=1)
        ...     file = load_file(next(Path(folder).glob("*.hdf5")))
        ...     bool((file_pairs(file, "test").u == test.u).all())
        True
    """
    return file_splits(file, [split], scheme, inputs=inputs, n_input=n_input, stream=stream)[0]


def file_splits(
    file: DataFile,
    splits: Sequence[SplitName],
    scheme: Scheme = "default",
    *,
    inputs: Sequence[str] | None = None,
    n_input: int | None = None,
    stream: bool | None = None,
) -> list[Pairs]:
    """The pairs of some splits of a file, which is divided once; see `file_pairs`."""
    if file.benchmark in BENCHMARKS:
        known = BENCHMARKS[file.benchmark]
        inputs = known.inputs if inputs is None else inputs
        n_input = known.n_input if n_input is None else n_input
    divided = file_split(file, scheme)
    fields: dict[str, Any] = dict(inputs=inputs, n_input=n_input or 1, benchmark=file.benchmark)
    out = []
    for name in splits:
        ids = divided.ids(name)
        if is_large(file, len(ids)) if stream is None else stream:
            # What is read once, at the end of a run, is not worth its memory.
            cache_bytes = CACHE_BYTES if name in ("train", "validation") else 0
            out.append(streamed_pairs(file, ids, cache_bytes=cache_bytes, **fields))
            continue
        made = pairs(file[ids], **fields)
        # Here, and not as a loss that is no longer a number.
        for label, values in (("a", made.a), ("u", made.u)):
            check_finite(label, values, ids, file.path)
        out.append(made)
    return out
