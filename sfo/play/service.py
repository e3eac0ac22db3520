"""What the page can ask for, without HTTP: models, states, solutions, predictions, kernels."""

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from sfo.evaluation.cost import count_parameters
from sfo.play.cases import Case, every_nth, strides
from sfo.play.kernels import has_kernels, kernel_view
from sfo.play.shown import ListedModel, LoadedModel
from sfo.play.sources import Truth

MIN_POINTS = 8
"""Fewest points per axis of a grid to choose."""
MAX_NUMBERS = 2**22
"""Most numbers in one answer: 16 MB."""
CACHE_BYTES = 64 * 2**20
"""Bytes of the cache of states and solutions."""
CACHE_ITEMS = 64
"""Entries of the cache: thousands of small ones would fragment the heap, which then grows."""
MAX_SEED = 2**24
T = TypeVar("T")


class UnknownModel(ValueError):
    """A name that is not on the list."""


@dataclass(frozen=True)
class Answer:
    """Fields and what to say about them; `fields` is None if there is nothing to show."""

    meta: dict[str, Any]
    fields: Tensor | None = None


class ResultCache:
    """The latest results, up to a number of bytes; the least recently used is dropped first.

    Args:
        most: Number of bytes to keep.
        items: Number of results to keep.
    """

    def __init__(self, most: int = CACHE_BYTES, items: int = CACHE_ITEMS) -> None:
        self.most, self.items, self.size = most, items, 0
        self._items: OrderedDict[tuple[Any, ...], tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[Any, ...], make: Callable[[], T], size: Callable[[T], int]) -> T:
        """What was kept under a key, or what `make` gives, which is kept if it fits."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key][0]
        made = make()
        bytes_taken = size(made)
        with self._lock:
            if key not in self._items and bytes_taken <= self.most:
                self._items[key] = made, bytes_taken
                self.size += bytes_taken
            while self.size > self.most or len(self._items) > self.items:
                self.size -= self._items.popitem(last=False)[1][1]
        return made


class Service:
    """All answers of the playground. Methods may be called from several threads.

    Args:
        models: What can be shown, by name; see `find_models`.
    """

    def __init__(self, models: Mapping[str, ListedModel]) -> None:
        self.models = dict(models)
        self.cache = ResultCache()
        self._warm: set[tuple[str, int]] = set()
        self._about: dict[str, dict[str, Any]] = {}
        self._loading = Lock()

    def overview(self) -> list[dict[str, str]]:
        """Every model: its name, its title, and what it was trained on."""
        return [
            dict(name=name, title=m.title, data=m.data, data_title=m.data_title)
            for name, m in self.models.items()
        ]

    def parts(self, name: str) -> LoadedModel:
        """The model behind a name."""
        if name not in self.models:
            known = ", ".join(self.models)
            raise UnknownModel(f"There is no model {name[:80]!r}; known: {known}.")
        with self._loading:
            return self.models[name].parts

    def is_loaded(self, name: str) -> bool:
        """Whether a model has been read already."""
        return name in self.models and self.models[name].is_loaded

    def about(self, name: str) -> dict[str, Any]:
        """All that the page needs to show a model."""
        parts = self.parts(name)
        if name not in self._about:
            self._about[name] = self._describe(name, parts)
        return self._about[name]

    def _describe(self, name: str, parts: LoadedModel) -> dict[str, Any]:
        shape, source = parts.shape, parts.source
        kinds = self._strides(parts)
        fine = source.fine
        channels = [
            f"{field}, frame {frame + 1}" if width > 1 else field
            for field, width in shape.widths.items()
            for frame in range(width)
        ]
        return dict(
            name=name,
            title=self.models[name].title,
            data=self.models[name].data,
            words=parts.words,
            equation=source.equation,
            solver_grid=list(fine.shape),
            parameters=count_parameters(parts.model),
            grids=[[n // stride for n in fine.shape] for stride in kinds],
            home=kinds.index(self._home(parts)),
            state_shape=[shape.in_channels, *shape.grid.shape],
            lower=list(fine.lower),
            upper=list(fine.upper),
            offset=fine.offset,
            periodic=fine.periodic,
            times=list(shape.times),
            names=list(shape.names),
            inputs=channels,
            evolves=shape.inputs[0] in shape.names,
            ranges=source.ranges(),
            samples=source.samples,
            truth=source.kind,
            why_not=source.why_not,
            kernels=has_kernels(parts.model),
        )

    def state(self, name: str, case: Case) -> Answer:
        """An initial state, on the grid that the model was trained on."""
        parts = self.parts(name)
        a = every_nth(self._inputs(name, parts, case), self._home(parts), parts.shape.grid.n_dim)
        return Answer(dict(shape=list(a.shape)), a)

    def predict(self, name: str, case: Case, grid: int | None = None) -> Answer:
        """The operator's solution `(field, time, *grid)`, and how long it took.

        A first call on a grid prepares modes and is not the one that is measured.

        Args:
            name: The model.
            case: The initial state.
            grid: Which of the grids of `about`; None: the one that the model was trained on.
        """
        parts = self.parts(name)
        stride = self._stride(parts, grid)
        a = every_nth(self._inputs(name, parts, case), stride, parts.shape.grid.n_dim).float()
        if (name, stride) not in self._warm:
            parts.predict(a)
            self._warm.add((name, stride))
        start = time.perf_counter()
        u = parts.predict(a)
        milliseconds = 1000 * (time.perf_counter() - start)
        if not u.isfinite().all():
            raise ValueError("The operator's prediction is not finite: the state is too large.")
        return Answer(dict(shape=list(u.shape), milliseconds=milliseconds), u)

    def solve(self, name: str, case: Case, grid: int | None = None) -> Answer:
        """What the prediction is compared with, on the same points; see `predict`."""
        parts = self.parts(name)
        stride = self._stride(parts, grid)
        self._check(parts, case)
        truth: Truth = self.cache.get(
            ("truth", self._origin(name, parts), case.key),
            lambda: parts.source.truth(case),
            lambda t: 0 if t.values is None else t.values.nbytes,
        )
        meta = dict(milliseconds=truth.milliseconds, words=truth.words)
        if truth.values is None:
            return Answer({**meta, "shape": None})
        u = every_nth(truth.values, stride, parts.shape.grid.n_dim)
        return Answer({**meta, "shape": list(u.shape)}, u)

    def kernel(self, name: str) -> Answer:
        """The learned kernels, see `kernel_view`."""
        parts = self.parts(name)
        if not has_kernels(parts.model):
            raise ValueError(
                f"The model {name!r} has no kernels that are mixtures of modes; those of SFO are."
            )

        def make() -> Answer:
            meta, kappa = kernel_view(parts.model, parts.shape.grid.shape)
            return Answer({**meta, "values": list(kappa.shape)}, kappa.float())

        return self.cache.get(("kernel", name), make, lambda a: a.fields.nbytes)  # type: ignore[union-attr]

    def drawn(self, name: str, body: bytes) -> Case:
        """The state that a body of float32 numbers stands for."""
        shape = self.parts(name).shape
        expected = (shape.in_channels, *shape.grid.shape)
        wanted = 4 * math.prod(expected)
        if len(body) != wanted:
            raise ValueError(
                f"The state must be {' × '.join(map(str, expected))} numbers of float32, "
                f"{wanted:,} bytes, got {len(body):,}."
            )
        fields = np.frombuffer(body, dtype="<f4").astype(np.float32).reshape(expected)
        if not np.isfinite(fields).all():
            raise ValueError("The state must be finite, got NaN or infinity.")
        return Case(drawn=fields)

    def numbered(self, name: str, seed: int) -> Case:
        """The state with a number."""
        samples = self.parts(name).source.samples
        most = MAX_SEED if samples is None else samples
        if not 0 <= seed < most:
            raise ValueError(f"`seed` must be in 0..{most - 1}, got {seed}.")
        return Case(seed=seed)

    def is_quick(self, name: str, case: Case) -> bool:
        """Whether the state is available without solving anything."""
        return case.drawn is not None or self.parts(name).source.quick

    def _check(self, parts: LoadedModel, case: Case) -> None:
        if case.drawn is not None and parts.source.why_not is not None:
            raise ValueError(parts.source.why_not)

    def _inputs(self, name: str, parts: LoadedModel, case: Case) -> Tensor:
        """Input fields on the source's grid; those drawn by hand are not worth keeping."""
        self._check(parts, case)
        if case.drawn is not None:
            return parts.source.inputs(case)
        key = ("inputs", self._origin(name, parts), case.key)
        return self.cache.get(key, lambda: parts.source.inputs(case), lambda a: a.nbytes)

    def _origin(self, name: str, parts: LoadedModel) -> str:
        """The same for models that share states and truths."""
        return parts.source.identity or name

    def _home(self, parts: LoadedModel) -> int:
        return parts.source.fine.shape[0] // parts.shape.grid.shape[0]

    def _strides(self, parts: LoadedModel) -> list[int]:
        source, shape = parts.source, parts.shape
        limits = dict(least=MIN_POINTS, most=MAX_NUMBERS)
        return strides(source.fine, shape.grid, shape.out_channels, **limits)

    def _stride(self, parts: LoadedModel, grid: int | None) -> int:
        if grid is None:
            return self._home(parts)
        kinds = self._strides(parts)
        if not 0 <= grid < len(kinds):
            raise ValueError(f"`grid` must be in 0..{len(kinds) - 1}, got {grid}.")
        return kinds[grid]


def pack(answer: Answer) -> bytes:
    """An answer as bytes: the length of a JSON text, the text, and float32 numbers.

    The length is a little-endian uint32 and counts the spaces that end the text on a multiple of
    four bytes.

    Example:
        >>> pack(Answer({"a": 1}, torch.zeros(1)))
        b'\\x08\\x00\\x00\\x00{"a":1} \\x00\\x00\\x00\\x00'
    """
    text = json.dumps(answer.meta, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    body = b"" if answer.fields is None else numbers(answer.fields)
    return len(text).to_bytes(4, "little") + text + body


def numbers(fields: Tensor) -> bytes:
    """Little-endian float32."""
    values = fields.detach().to(torch.float32).contiguous().numpy()
    return values.astype("<f4", copy=False).tobytes()
