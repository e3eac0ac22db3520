"""Make a benchmark's data file: on all cores, resumable, the same bytes whatever the workers.

Samples are solved in chunks of a fixed size; sample i depends on the seed and on i alone. Each
finished chunk is a small file beside the one to come, moved into place when it is whole and
carrying its own checksum. After a kill the same call continues with the chunks that are missing.
"""

import hashlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Lock

import numpy as np
import torch

from sfo import plugins
from sfo.checks import check_at_least
from sfo.data.benchmarks import Benchmark, Scale
from sfo.data.hdf5 import DataFile, DataFileError, Header, Sample, write
from sfo.files import lock_path, locked, remove_unfinished, resolved, unfinished
from sfo.machine import usable_cores

SampleProgress = Callable[[int, int], None]
"""Called with the samples done and the samples in all."""
START_SECONDS = 1.5
"""CPU time, about what it takes until a worker process has imported what it needs."""
PART = re.compile(r"\d{6,}|\.\d{6,}\.[0-9a-f]+")
"""Names of chunks, finished and not."""


@dataclass(frozen=True)
class Recipe:
    """All that the numbers of a data set depend on."""

    benchmark: Benchmark
    scale: Scale
    seed: int

    def source(self) -> dict[str, object]:
        """In plain values, for a file's header."""
        return dict(
            benchmark=self.benchmark.name,
            seed=self.seed,
            scale=self.scale.to_dict(),
            options=self.benchmark.options(),
        )

    def chunk(self, number: int) -> range:
        """The samples of one chunk."""
        size = self.benchmark.chunk
        return range(number * size, (number + 1) * size)

    def header(self, n_samples: int) -> Header:
        """Of the file with `n_samples` samples."""
        kind = self.benchmark
        grid, times = kind.stored(self.scale)
        return Header(
            kind.name, n_samples, grid, times, kind.names, kind.static_names, self.source()
        )


def generate(
    benchmark: Benchmark,
    path: str | os.PathLike[str],
    *,
    scale: str | Scale = "desk",
    samples: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: SampleProgress | None = None,
) -> Path:
    """Make the file `path`, complete one that was interrupted, or find that it is complete.

    Args:
        benchmark: What to make, with its options.
        path: The file; chunks wait in the folder `path` + ".parts" until it is whole.
        scale: "smoke", "desk", "paper", or sizes of your own.
        samples: How many; None: as many as the scale says.
        seed: Seed of the initial states. Published variants count their seeds from here.
        workers: Processes; None: one per core, and none for what is solved before they could start.
        progress: Called as samples are done.
    """
    if isinstance(scale, str):
        scale = benchmark.scale(scale)
    samples = scale.samples if samples is None else samples
    check_at_least(1, samples=samples, workers=workers)
    check_at_least(0, seed=seed)
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the file to write in it.")
    recipe = Recipe(benchmark, scale, seed)
    # A finished file needs no lock: it may lie in a folder that nobody can write to.
    if not _is_complete(path, recipe, samples):
        try:
            _make(recipe, resolved(path), samples, workers, progress)
        except DataFileError:
            raise
        except OSError as error:
            raise DataFileError(
                f"Cannot write {path}: {error.strerror or error}. Make room or choose another "
                "place, with --out or, for the data of runs, $SFO_DATA; the same command continues "
                "with the samples that are finished."
            ) from error
    return path


def _make(
    recipe: Recipe, path: Path, samples: int, workers: int | None, progress: SampleProgress | None
) -> None:
    """Solve what is missing and write the file, as the only process that does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(lock_path(path)):
        # While this process waited, another may have made it.
        if _is_complete(path, recipe, samples):
            return
        remove_unfinished(path)
        parts = path.with_name(path.name + ".parts")
        _own_folder(parts)
        _solve_missing(recipe, parts, samples, workers, progress)
        maxima = None
        if recipe.benchmark.stores_maxima:
            rows = (np.abs(s.data) for s in _samples(recipe, parts, samples))
            maxima = np.max([row.max(axis=tuple(range(row.ndim - 1))) for row in rows], axis=0)
        found = _samples(recipe, parts, samples)
        write(path, recipe.header(samples), found, recipe.benchmark.layout, maxima)
        _remove_parts(parts)


def _own_folder(parts: Path) -> None:
    """Make the folder of chunks, or refuse one that holds anything else."""
    parts.mkdir(exist_ok=True)
    others = [entry.name for entry in parts.iterdir() if not PART.fullmatch(entry.name)]
    if others:
        raise DataFileError(
            f"{parts} is to hold unfinished samples, but has other files ({others[0]}); move it "
            "away, or choose another file with --out."
        )


def _remove_parts(parts: Path) -> None:
    """Remove the chunks, and the folder if nothing else is in it."""
    for entry in parts.iterdir():
        if PART.fullmatch(entry.name):
            entry.unlink(missing_ok=True)
    # A worker whose parent was killed may still be writing its last chunk: then it stays.
    with suppress(OSError):
        parts.rmdir()


def _is_complete(path: Path, recipe: Recipe, samples: int) -> bool:
    if not path.exists():
        return False
    found = DataFile(path).header
    if found == recipe.header(samples):
        return True
    raise DataFileError(
        f"{path} exists and holds {found.n_samples} samples of {found.benchmark} made with other "
        "settings. Delete it, or choose another file with --out."
    )


def _solve_missing(
    recipe: Recipe, parts: Path, samples: int, workers: int | None, progress: SampleProgress | None
) -> None:
    size = recipe.benchmark.chunk
    chunks = range(-(-samples // size))
    missing = [c for c in chunks if _read_part(recipe, parts, c) is None]
    done = samples - sum(min(size, samples - c * size) for c in missing)

    one_at_a_time = Lock()

    def report(chunk: int | None = None) -> None:
        nonlocal done
        with one_at_a_time:
            if chunk is not None:
                done += min(size, samples - chunk * size)
            if progress is not None:
                progress(done, samples)

    report()
    # A benchmark of a notebook is known to this process alone.
    here = workers == 1 or not plugins.importable(type(recipe.benchmark))
    alone_until = time.process_time() + (START_SECONDS if workers is None else 0)
    while missing and (here or len(missing) == 1 or time.process_time() < alone_until):
        chunk = missing.pop(0)
        _make_part(recipe, parts, chunk)
        report(chunk)
    if not missing:
        return
    todo: Queue[int] = Queue()
    for chunk in missing:
        todo.put(chunk)
    count = min(workers or usable_cores(), len(missing))
    with ThreadPoolExecutor(count) as pool:
        helpers = [pool.submit(_drive_worker, recipe, parts, todo, report) for _ in range(count)]
        try:
            for helper in as_completed(helpers):
                helper.result()
        except BaseException:
            # The other workers finish their current chunk, which is kept.
            todo.queue.clear()
            raise


def _drive_worker(
    recipe: Recipe, parts: Path, todo: "Queue[int]", report: Callable[[int], None]
) -> None:
    """Hand chunks to a process of our own until none is left.

    Not a pool of `multiprocessing`: its processes import the user's main script again, which
    then must be guarded. When this process is killed, the worker finds its input closed and
    ends after its chunk.
    """
    # What the worker is to import lies where we found it.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    program = "from sfo.data.generate import run_worker; run_worker()"
    command = [sys.executable, "-c", program, *plugins.loaded()]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            pickle.dump((recipe, parts), worker.stdin)
            while True:
                try:
                    chunk = todo.get_nowait()
                except Empty:
                    return
                worker.stdin.write(f"{chunk}\n".encode())
                worker.stdin.flush()
                answer = worker.stdout.readline().decode().strip()
                if answer != str(chunk):
                    raise DataFileError(
                        f"A worker ended early at chunk {chunk} ({answer or 'out of memory?'}); "
                        "finished samples are kept. Run the same command to continue, with fewer "
                        "--workers if memory is short."
                    )
                report(chunk)
        finally:
            with suppress(BrokenPipeError):
                worker.stdin.close()


def run_worker() -> None:
    """The life of a worker: solve the chunks named on stdin, and name them when done."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # What libraries print must not be taken for answers.
    plugins.load_all(sys.argv[1:])
    recipe, parts = pickle.load(sys.stdin.buffer)
    # Ctrl-C in a terminal reaches every process; the parent decides when we end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        try:
            _make_part(recipe, parts, int(line))
        except Exception as error:
            print(f"{type(error).__name__}: {error}".replace("\n", " "), file=answers)
            return
        print(int(line), file=answers)


def _make_part(recipe: Recipe, parts: Path, chunk: int) -> None:
    """Solve one chunk and store it: checksum, then the numbers as the file will hold them."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        made = recipe.benchmark.simulate(recipe.seed, recipe.chunk(chunk), recipe.scale)
    finally:
        torch.set_num_threads(threads)
    data = np.ascontiguousarray(made.values.movedim(2, -1).numpy(), "f4")
    payload = data.tobytes()
    if made.static is not None:
        payload += np.ascontiguousarray(made.static.movedim(1, -1).numpy(), "f4").tobytes()
    with unfinished(parts / f"{chunk:06d}") as partial, open(partial, "wb") as file:
        file.write(_seal(recipe, chunk, payload))
        file.write(payload)


def _seal(recipe: Recipe, chunk: int, payload: bytes) -> bytes:
    sha = hashlib.sha256(json.dumps([recipe.source(), chunk], sort_keys=True).encode())
    sha.update(payload)
    return sha.digest()


def _read_part(recipe: Recipe, parts: Path, chunk: int) -> list[Sample] | None:
    """The samples of a stored chunk; None if it is not there, not whole, or of another recipe."""
    try:
        stored = (parts / f"{chunk:06d}").read_bytes()
    except FileNotFoundError:
        return None
    seal, payload = stored[:32], stored[32:]
    if seal != _seal(recipe, chunk, payload):
        return None
    header = recipe.header(1)
    size, shape = recipe.benchmark.chunk, header.grid.shape
    data_shape = (size, len(header.times), *shape, len(header.names))
    numbers = np.frombuffer(payload, "f4")
    count = int(np.prod(data_shape))
    data = numbers[:count].reshape(data_shape)
    if not header.static_names:
        return [Sample(d) for d in data]
    static = numbers[count:].reshape(size, *shape, len(header.static_names))
    return [Sample(d, s) for d, s in zip(data, static, strict=True)]


def _samples(recipe: Recipe, parts: Path, samples: int) -> Iterator[Sample]:
    left = samples
    chunk = 0
    while left:
        stored = _read_part(recipe, parts, chunk)
        if stored is None:
            raise DataFileError(
                f"{parts} lost chunk {chunk} while the file was written; run the command again."
            )
        yield from stored[:left]
        left -= min(left, len(stored))
        chunk += 1
