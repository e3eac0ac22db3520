"""What a data file is, what the loader makes of it, and what is wrong with it."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import torch
from scipy.integrate import trapezoid

from sfo.data.hdf5 import AXES, DataFile, DataFileError
from sfo.data.load import load_file
from sfo.data.opening import damage, open_hdf5
from sfo.data.pairs import field_widths
from sfo.data.published import PUBLISHED
from sfo.pdes import DiffusionSorption
from sfo.registry import BENCHMARKS

MAX_LISTED = 5
REPEATS = "the same as an earlier one"


@dataclass
class Report:
    """Lines about a file: `facts` as they are, and `problems`."""

    path: Path
    facts: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = f"{len(self.problems)} found" if self.problems else "none found"
        lines = [str(self.path), *(f"  {fact}" for fact in self.facts), f"  Problems: {verdict}"]
        return "\n".join([*lines, *(f"  - {problem}" for problem in self.problems)])


def examine(
    path: str | os.PathLike[str], progress: Callable[[int, int], None] | None = None
) -> Report:
    """Read a whole file, sample by sample, and report.

    Args:
        path: Path of any file; one that is not there is an error, not a problem.
        progress: Called with the samples done and the samples in all.
    """
    report = Report(Path(path))
    try:
        file = load_file(path)
    except DataFileError as error:
        if not report.path.is_file():
            raise
        report.problems.append(_without_path(str(error), report.path))
        return report
    try:
        with damage(str(path)):
            _describe(file, report)
            _check_identity(file, report)
            with open_hdf5(path) as opened:
                _check_contents(file, opened, report)
                _check_storage(file, opened, report)
            _check_samples(file, report, progress or (lambda done, total: None))
    except DataFileError as error:
        report.problems.append(_without_path(str(error), report.path))
    return report


def _describe(file: DataFile, report: Report) -> None:
    header, known = file.header, _known(file)
    title = f"{known.title} ({file.benchmark})" if known else file.benchmark
    shape, points = (" × ".join(map(str, g.shape)) for g in (header.grid, file.grid))
    box = zip(AXES, header.grid.lower, header.grid.upper, strict=False)
    report.facts += [
        f"What it is: {title}, {len(file)} samples, layout `{file.layout}`",
        f"Stored: {shape} points on {', '.join(f'{a:g} < {x} < {b:g}' for x, a, b in box)}, "
        f"{len(header.times)} frames, t = {header.times[0]:g} … {header.times[-1]:g}, "
        f"fields {', '.join((*header.names, *header.static_names))}",
    ]
    if known:
        widths = field_widths(known.inputs, header.names, n_input=known.n_input)
        every = "all" if file.stride == 1 else f"every {file.stride}th"
        report.facts.append(
            f"The loader gives: a of {sum(widths.values())} channels ({', '.join(known.inputs)}), "
            f"u of {len(header.names) * len(file.times)}, on {points} points ({every})"
        )
    if "misfit" in header.source:
        report.facts.append(
            "Recognised by its equation, which carries the first frames to the second but for "
            f"{header.source['misfit']:.1e} of the change"
        )
    seal = "SHA-256 of every sample" if file.sealed else "none: not written by sfo"
    report.facts.append(f"Checksums: {seal}")


def _check_identity(file: DataFile, report: Report) -> None:
    """It must be one of the benchmarks, and the one that its name and its equation promise."""
    known = _known(file)
    if known is None and not file.sealed:
        report.problems.append(
            "It has the layout of a benchmark's file, but what it holds solves none of their "
            "equations."
        )
    for name, value in file.header.source.get("equation", {}).items():
        stated = getattr(known.pde, name)
        if value != stated:
            report.problems.append(
                f"It solves its equation with {name} = {value:g}; the paper states {stated:g}."
            )
    for published in PUBLISHED.values():
        if published.file_name != file.path.name:
            continue
        if known is None or known.paper_name != published.name:
            report.problems.append(f"Its name is that of the published {published.name} file.")
        elif fault := published.fault(file.path):
            report.problems.append(f"It {fault}: it is a subset or was changed.")


def _check_contents(file: DataFile, opened: h5py.File, report: Report) -> None:
    """All arrays of the layout must be there, and the coordinates be the header's."""
    grid, times = file.header.grid, np.asarray(file.header.times)
    lines = dict(zip(AXES, (x.numpy() for x in grid.coordinates()), strict=False), t=times)
    if file.layout == "tensor":
        arrays = {f"{axis}-coordinate": line for axis, line in lines.items()}
        for name, line in arrays.items():
            if wrong := _wrong_line(opened, name, line):
                report.problems.append(f"`{name}` {wrong}.")
        return
    arrays = {f"grid/{axis}": line for axis, line in lines.items()}
    faults_found: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(file.keys):
        for name, line in arrays.items():
            if wrong := _wrong_line(opened[key], name, line):
                faults_found[f"`{name}` {wrong}"].append(index)
    for what, indices in faults_found.items():
        report.problems.append(f"{_samples(indices, len(file))}: {what}.")


def _wrong_line(group: h5py.Group, name: str, line: np.ndarray) -> str | None:
    if name not in group:
        return "is missing"
    # The published Diffusion–Reaction file has one time too many.
    stored = group[name][: len(line)]
    # One frame, of a steady solution, has no spacing.
    spacing = np.diff(line).min() if len(line) > 1 else 1.0
    if stored.shape != line.shape or not np.allclose(stored, line, rtol=1e-6, atol=spacing / 100):
        return "is not as long as the data, or holds other numbers than the rest of the file"
    return None


def _check_storage(file: DataFile, opened: h5py.File, report: Report) -> None:
    """Parts that were never written read as zeros."""
    if file.layout == "tensor":
        empty = _unwritten_rows(opened["tensor"])
    else:
        names = ("data", "static")
        empty = [
            index
            for index, key in enumerate(file.keys)
            if any(_unwritten_rows(opened[key][name]) for name in names if name in opened[key])
        ]
    if empty:
        report.problems.append(
            f"{_samples(empty, len(file))}: parts were never written and read as zeros."
        )


def _unwritten_rows(dataset: h5py.Dataset) -> list[int]:
    """Where along the first axis some of the array has no place in the file."""
    if dataset.chunks is None:
        stored = dataset.id.get_storage_size() >= dataset.nbytes
        return [] if stored else list(range(len(dataset)))
    depth, *sides = dataset.chunks
    needed = prod(-(-n // side) for n, side in zip(dataset.shape[1:], sides, strict=True))
    found: Counter[int] = Counter()
    dataset.id.chunk_iter(lambda chunk: found.update([chunk.chunk_offset[0] // depth]))
    return [row for row in range(len(dataset)) if found[row // depth] < needed]


def _check_samples(file: DataFile, report: Report, progress: Callable[[int, int], None]) -> None:
    faults_found: dict[str, list[int]] = defaultdict(list)
    first_seen: dict[bytes, int] = {}
    complete = []
    for index in range(len(file)):
        progress(index, len(file))
        try:
            sample = file.raw(index)
        except DataFileError as error:
            faults_found[_without_path(str(error), file.path, index)].append(index)
            continue
        fields = [sample.data] if sample.static is None else [sample.data, sample.static]
        faults = list(_faults(file.benchmark, fields))
        for what in faults:
            faults_found[what].append(index)
        if first_seen.setdefault(sample.fingerprint(), index) != index:
            faults_found[REPEATS].append(index)
        if not faults:
            complete.append(index)
    progress(len(file), len(file))
    _report_repeats(faults_found.pop(REPEATS, []), len(first_seen), file, report)
    for what, indices in faults_found.items():
        report.problems.append(f"{_samples(indices, len(file))}: {what}.")
    known = _known(file)
    if known is not None and complete:
        _check_solution(known.paper_name, file, complete, report)


def _faults(benchmark: str, fields: list[np.ndarray]) -> Iterator[str]:
    """What is wrong with one sample, of data and perhaps static fields."""
    if not all(np.isfinite(f).all() for f in fields):
        yield "numbers that are not finite (NaN or infinite)"
        return
    data = fields[0]
    frames = data.reshape(len(data), -1)
    if not frames.any():
        yield "zero everywhere"
        return
    if not frames.any(axis=1).all():
        yield "some frames are zero everywhere"
    if len(frames) > 1 and (frames == frames[0]).all():
        yield "no change in time, all frames are equal"
    if benchmark.startswith("diffusion_sorption") and np.ptp(frames[0]) > 1e-5:
        yield "the first frame is not constant, as it is in Diffusion–Sorption"
    if benchmark.startswith("diffusion_") and (frames.min() < -0.01 or frames.max() > 1.01):
        yield "numbers outside 0 … 1, the range of a concentration"
    if benchmark.startswith("shallow_water") and data[..., 0].min() < 0:
        yield "depths below zero"


def _report_repeats(repeated: list[int], differ: int, file: DataFile, report: Report) -> None:
    if not repeated:
        return
    text = (
        f"{_samples(repeated, len(file))}: {REPEATS}. Only {differ} differ; use the split scheme "
        "`deduplicated`."
    )
    # The radii of the published dams are rounded to cells, so that this must be so.
    if file.benchmark == "shallow_water_rdb":
        report.facts.append(f"As published: {text}")
    else:
        report.problems.append(text)


def _check_solution(paper_name: str, file: DataFile, complete: list[int], report: Report) -> None:
    """Two of the published files do not solve their equations; those made like them are known."""
    if paper_name == "diffusion_reaction":
        defect, cause = _stagnation(file, complete), "made in float32"
    elif paper_name == "diffusion_sorption":
        defect, cause = _deviation(file, complete[0]), "made by RK45 at default tolerances"
    else:
        return
    if defect and file.benchmark != paper_name:
        report.facts.append(f"As published: {defect}.")
    elif defect:
        variant = next(name for name in BENCHMARKS if name.startswith(f"{paper_name}_"))
        report.problems.append(
            f"It does not solve its equation: {defect}, as in the published file, which was "
            f"{cause}. Generate `{paper_name}` for data that do, or `{variant}` for more like "
            "these."
        )


def _stagnation(file: DataFile, indices: list[int]) -> str | None:
    """Means must grow by ρ ∫ mean(u (1 − u)) dt; the published ones stop, at 0.56 instead of 0.73.

    A hundred samples will do: all stop alike.
    """
    some = indices[:: -(-len(indices) // 100)]
    grown = asked = 0.0
    for index in some:
        u = file.raw(index).data.reshape(len(file.header.times), -1).astype(np.float64)
        rate = _constants(file).get("rho", 1.0) * (u * (1 - u)).mean(axis=1)
        grown += (u[-1].mean() - u[0].mean()) / len(some)
        asked += trapezoid(rate, file.header.times) / len(some)
    # Between coarse frames the trapezoidal rule is off by 0.01.
    if asked - grown < 0.05:
        return None
    return f"the reaction stagnates, means grow by {grown:.2f} instead of {asked:.2f}"


def _deviation(file: DataFile, index: int) -> str | None:
    """How far a sample is from the accurate solution of its equation, on the solver's cells."""
    if not file.header.grid.offset:
        return None  # Nodes, not cells: nobody knows what solver made them.
    u = file.raw(index).data[..., 0].astype(np.float64)
    stride = round(0.5 / file.header.grid.offset)
    start = torch.full((1, 1, stride * u.shape[-1]), u[0].mean(), dtype=torch.float64)
    equation = DiffusionSorption(**_constants(file))
    solved = equation.solve(start, np.asarray(file.header.times))[0, :, 0, ::stride]
    distance = np.linalg.norm(u - solved.numpy()) / np.linalg.norm(u)
    if distance < 5e-4:
        return None
    return f"sample {index} is {100 * distance:.2g} % from the solution"


def _known(file: DataFile) -> Any:
    """The benchmark, if it is one of ours."""
    if file.benchmark in BENCHMARKS:
        return BENCHMARKS[file.benchmark]
    return None


def _constants(file: DataFile) -> dict[str, Any]:
    """Of the equation, as recognised or as the header has them."""
    source = file.header.source
    return source.get("equation") or source.get("options", {}).get("pde", {})


def _samples(indices: list[int], total: int) -> str:
    if len(indices) == total:
        return f"All {total} samples"
    shown = ", ".join(map(str, indices[:MAX_LISTED])) + (", …" if len(indices) > MAX_LISTED else "")
    noun = "sample" if len(indices) == 1 else "samples"
    return f"{len(indices)} {noun} ({shown})"


def _without_path(text: str, path: Path, index: int | None = None) -> str:
    where = str(path) if index is None else f"{path}, sample {index}"
    return text.removeprefix(where).strip().rstrip(".")
