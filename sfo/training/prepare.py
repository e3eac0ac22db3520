"""From an experiment to its data and its model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from sfo.data.arrays import Arrays, split_by_share
from sfo.data.benchmarks import Benchmark
from sfo.data.hdf5 import DataFile
from sfo.data.load import file_splits, load_file, open_benchmark
from sfo.data.pairs import Pairs, SplitName, field_widths
from sfo.data.rows import Rows, array_rows, channel_moments
from sfo.grid import Grid
from sfo.memory import build_within_memory
from sfo.models.build import build_model
from sfo.models.sfo import SFO
from sfo.models.units import Units
from sfo.registry import BENCHMARKS
from sfo.training.config import ArraysConfig, Experiment
from sfo.training.first_guess import FirstGuess, first_guess
from sfo.training.wrappers import (
    FromFirstGuess,
    Moments,
    Normalised,
    Rollout,
    usable_moments,
)


@dataclass(frozen=True)
class DataShape:
    """What a model must know of its data: channels, grid and times, but no numbers."""

    in_channels: int
    out_channels: int
    grid: Grid
    times: tuple[float, ...]
    names: tuple[str, ...]
    inputs: tuple[str, ...]

    @classmethod
    def of(cls, pairs: Pairs) -> "DataShape":
        """The shape of some pairs."""
        channels = pairs.a.shape[1], pairs.u.shape[1]
        return cls(*channels, pairs.grid, pairs.times, pairs.names, pairs.inputs)

    @classmethod
    def of_benchmark(cls, experiment: Experiment) -> "DataShape":
        """The shape that an experiment's data will have, without making any."""
        data = experiment.data
        benchmark = BENCHMARKS[data.benchmark].with_options(**data.options)
        scale = benchmark.scale(data.scale)
        grid, times = benchmark.stored(scale)
        times = times[:: data.time_stride]
        inputs, names = benchmark.inputs, benchmark.names
        channels = sum(field_widths(inputs, names, n_input=benchmark.n_input).values())
        grid = grid.subsample(data.stride or scale.stride)
        return cls(channels, len(names) * len(times), grid, times, names, inputs)

    @property
    def widths(self) -> dict[str, int]:
        """Channels of each input field: its frames, or one if it does not change in time."""
        return field_widths(self.inputs, self.names, in_channels=self.in_channels)

    @property
    def static(self) -> int:
        """Input fields that do not change in time."""
        return sum(name not in self.names for name in self.inputs)

    def by_field(self, u: Tensor) -> Float[Tensor, "field time *grid"]:
        """The channels of one solution as fields and their times."""
        return u.reshape(len(self.names), len(self.times), *u.shape[1:])

    def carried(self, n_input: int | None = None) -> list[int | None]:
        """For each solution field the input channel that holds its last known frame, if any.

        Args:
            n_input: Frames of each field in the input; None: as the data have them.
        """
        widths = self.widths
        if n_input is not None:
            widths = field_widths(self.inputs, self.names, n_input=n_input)
        last = dict(zip(widths, accumulate(widths.values()), strict=True))
        ends = {name: channel - 1 for name, channel in last.items()}
        return [ends.get(name) for name in self.names]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**self.__dict__, "grid": self.grid.to_dict()}

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> "DataShape":
        """What `to_dict` wrote."""
        rows = {k: tuple(entries[k]) for k in ("times", "names", "inputs")}
        return cls(**{**entries, **rows, "grid": Grid.from_dict(entries["grid"])})


def load_pairs(
    experiment: Experiment, split: SplitName, *, arrays: Arrays | None = None, **loading: Any
) -> Pairs:
    """The pairs of one split.

    Args:
        experiment: Names the data.
        split: "train", "validation", "test" or "all".
        arrays: Data of the user's own, for an experiment with such; see `check_arrays`.
        loading: Goes to `load_benchmark` (folder, workers, progress, stream).
    """
    return load_splits(experiment, [split], arrays=arrays, **loading)[0]


def load_splits(
    experiment: Experiment,
    splits: Sequence[SplitName] = ("train", "validation", "test"),
    *,
    arrays: Arrays | None = None,
    stream: bool | None = None,
    **loading: Any,
) -> list[Pairs]:
    """The pairs of some splits, from one look at the data; for arguments see `load_pairs`."""
    data = experiment.data
    if data.arrays is None:
        fields: dict[str, Any] = {}
        if experiment.train.rollout is not None:
            benchmark = BENCHMARKS[data.benchmark]
            inputs = (*benchmark.names, *benchmark.static_names)
            fields = dict(n_input=experiment.train.rollout, inputs=inputs)
        file = _data_file(experiment, **loading)
        loaded = file_splits(file, splits, data.scheme, stream=stream, **fields)
    elif arrays is None:
        raise ValueError(
            f"The run's data {data.benchmark!r} are arrays of your own, which must be given: "
            "pass them to sfo.fit again, or their file with --data."
        )
    else:
        divided = split_by_share(len(arrays), data.arrays.validation)
        loaded = [arrays.pairs(divided, name) for name in splits]
    return [
        _first_samples(pairs, data.train_samples) if name == "train" else pairs
        for name, pairs in zip(splits, loaded, strict=True)
    ]


def _first_samples(train: Pairs, count: int | None) -> Pairs:
    if count is None:
        return train
    if count > len(train):
        raise ValueError(
            f"`train_samples` must be at most the {len(train)} training samples that there are, "
            f"got {count}; raise `samples`."
        )
    return train.select(range(count))


def _data_file(experiment: Experiment, **loading: Any) -> DataFile:
    """The file of a benchmark's samples: generated, or the one that the experiment names."""
    data = experiment.data
    if data.file is None:
        return open_benchmark(
            data.benchmark,
            data.scale,
            samples=data.samples,
            seed=data.seed,
            stride=data.stride,
            time_stride=data.time_stride,
            **loading,
            **data.options,
        )
    file = load_file(data.file, data.stride, data.time_stride)
    found = file.benchmark
    same = BENCHMARKS[data.benchmark]
    variants = [name for name in BENCHMARKS if _same_equation(BENCHMARKS[name], same)]
    if found != data.benchmark and found not in variants:
        raise ValueError(
            f"{data.file} holds {found if found in BENCHMARKS else 'no benchmark that is known'}, "
            f"but the run is on {data.benchmark}; pass a file of that benchmark, or train on it as "
            f"data of your own with --data {data.file}."
        )
    return file


def own_shape(experiment: Experiment) -> DataShape | None:
    """Of data of the user's own, by what the experiment knows of them; None for a benchmark."""
    known = experiment.data.arrays
    if known is None:
        return None
    rows = tuple(known.times), tuple(known.names), tuple(known.inputs)
    return DataShape(known.in_channels, known.out_channels, Grid.from_dict(known.grid), *rows)


def described(arrays: Arrays, shape: DataShape) -> Arrays:
    """Arrays whose channels mean what those of a run's data do, maybe on other points."""
    for label, rows, channels in (
        ("a", arrays.a, shape.in_channels),
        ("u", arrays.u, shape.out_channels),
    ):
        if rows.shape[1] != channels or rows.ndim != shape.grid.n_dim + 2:
            raise ValueError(
                f"`{label}` must have {channels} channels on {shape.grid.n_dim} axes, as the run "
                f"was trained with, got the shape {tuple(rows.shape)}."
            )
    grid = replace(shape.grid, shape=arrays.grid.shape)
    return replace(arrays, grid=grid, times=shape.times, names=shape.names, inputs=shape.inputs)


def check_arrays(experiment: Experiment, arrays: Arrays) -> None:
    """Refuse arrays that are not those of an experiment; all their numbers are gone through."""
    known = experiment.data.arrays
    if known is None:
        raise ValueError(
            f"The run is on the benchmark {experiment.data.benchmark}, not on data of your own."
        )
    found = ArraysConfig.of(arrays, known.validation)
    for key in type(known).model_fields:
        there, here = getattr(known, key), getattr(found, key)
        if there != here:
            raise ValueError(
                f"{arrays.path or 'The arrays'} are not the data that the run was trained on: "
                f"`{key}` was {there!r:.80}, now it is {here!r:.80}."
            )


def _same_equation(one: Benchmark, other: Benchmark) -> bool:
    """Whether two benchmarks are variants of the same one of the paper's."""
    return one.paper_name is not None and one.paper_name == other.paper_name


def _shift_invariant(experiment: Experiment) -> bool:
    """Whether the problem is the same at every place; of data of the user's own nobody knows."""
    data = experiment.data
    return data.arrays is None and BENCHMARKS[data.benchmark].shift_invariant


def build(experiment: Experiment, shape: DataShape, train: Pairs | None = None) -> nn.Module:
    """The model of an experiment, with weights drawn from its seed.

    Args:
        experiment: Names the model and its settings.
        shape: Shape of the data.
        train: For a first guess and a normaliser's constants, if the weights are not loaded anyway.
    """
    rollout, fields = experiment.train.rollout, len(shape.names)
    in_channels, out_channels = shape.in_channels, shape.out_channels
    if rollout is not None:
        in_channels, out_channels = rollout * fields + shape.static, fields
        if experiment.data.arrays is not None and in_channels != shape.in_channels:
            raise ValueError(
                f"`rollout` must be the frames of the input, {rollout} of each of {fields} fields "
                f"and {shape.static} static ones, got {shape.in_channels} channels, which are "
                f"{', '.join(shape.inputs)}."
            )

    def make() -> nn.Module:
        torch.manual_seed(experiment.seed)
        return build_model(
            experiment.model.name,
            experiment.data.paper_name,
            preset=experiment.model.preset,
            in_channels=in_channels,
            out_channels=out_channels,
            n_dim=shape.grid.n_dim,
            train_shape=shape.grid.shape,
            out_fields=fields,
            carried=shape.carried(rollout),
            periodic=shape.grid.periodic,
            shift_invariant=_shift_invariant(experiment),
            **experiment.model.settings,
        )

    # The caller's random numbers are left alone.
    with torch.random.fork_rng(devices=[]):
        try:
            model = build_within_memory(make)
        except (RuntimeError, MemoryError, TypeError, ArithmeticError) as error:
            too_large = "allocate" in str(error) or isinstance(error, MemoryError)
            what = "does not fit into memory" if too_large else "cannot be built"
            way_out = "make it smaller" if too_large else "change them"
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ValueError(
                f"The model {experiment.model.name} {what} with the settings "
                f"{experiment.model.settings}; {way_out}. {reason}"
            ) from error
    operator = model
    if experiment.train.normaliser == "standard":
        model = Normalised(model, in_channels, out_channels, shape.grid.n_dim)
        if train is not None:
            model.set_moments(*_fields(train, rollout))
    elif experiment.train.normaliser == "first_guess":
        model = operator = _from_first_guess(model, in_channels, out_channels, fields)
    if train is not None and rollout is None and isinstance(operator, SFO | FromFirstGuess):
        _start(
            operator,
            _in_units(train, model) if isinstance(model, Normalised) else train,
            places_differ=not (shape.grid.periodic and _shift_invariant(experiment)),
        )
    if rollout is not None:
        # Outside of the normaliser: the frames of the input are passed on as they are.
        model = Rollout(model, rollout, len(shape.times), fields)
    return model


def _from_first_guess(
    model: nn.Module, in_channels: int, out_channels: int, fields: int
) -> FromFirstGuess:
    """The model behind a first guess, unless it has one of its own."""
    if isinstance(model, SFO) and (model.standardise is not None or model.skip is not None):
        raise ValueError(
            '`normaliser="first_guess"` is for models that do not start from a guess by '
            "themselves; this SFO does (`standardise`, `output_skip`): use normaliser=None."
        )
    return FromFirstGuess(model, in_channels, out_channels, fields)


def _start(model: SFO | FromFirstGuess, train: Pairs, *, places_differ: bool) -> None:
    """Let a model start from a first guess, as far as its options have room for one."""
    if model.standardise is None and model.skip is None:
        return
    guess = first_guess(
        train,
        components=model.components,
        from_input=model.skip is not None,
        places_differ=places_differ,
    )
    sizes = guess.mean, guess.deviation, guess.scale
    model.standardise_by(*sizes, guess.weight, guess.offset, _skip_units(guess, train))


def _skip_units(guess: FirstGuess, train: Pairs) -> Tensor | None:
    """How large each weight from an input channel to a solution channel is expected to be.

    1 within a field, else the ratio of deviations, so that training is the same in all units.
    """
    widths = train.widths
    sources = [name for name, width in widths.items() for _ in range(width)]
    targets = [name for name in train.names for _ in train.times]
    rows, columns = guess.weight.shape  # Of the first component, which stands for all.
    unit = guess.spread.repeat_interleave(rows // len(guess.spread))[:, None] / guess.deviation
    same = torch.tensor([[to == of for of in sources[:columns]] for to in targets[:rows]])
    unit = torch.where(same | ~unit.isfinite() | (unit == 0), 1, unit)
    return None if (unit == 1).all() else unit


def _in_units(train: Pairs, units: Units) -> Pairs:
    """Training samples in the units of a normaliser, converted when they are read."""
    a, u = (rows if isinstance(rows, Rows) else array_rows(rows) for rows in (train.a, train.u))
    seen: dict[str, Any] = dict(
        a=Rows(a.shape, lambda ids: units.to_model(a[ids])),
        u=Rows(u.shape, lambda ids: (u[ids] - units.u_mean) / units.u_deviation),
    )
    return replace(train, **seen)


FieldsOf = list[tuple[Tensor | Moments, int]]


def _fields(train: Pairs, rollout: int | None) -> tuple[FieldsOf, FieldsOf]:
    """The values of each input and solution field, or moments, and the channels they take."""
    widths = list(train.widths.values())
    a = dict(zip(train.inputs, _by_field(train.a, widths), strict=True))
    u = dict(zip(train.names, _by_field(train.u, [train.n_times] * len(train.names)), strict=True))
    if rollout is None:
        inputs = [(v, n) for v, n in zip(a.values(), widths, strict=True)]
        return inputs, [(v, train.n_times) for v in u.values()]
    # What comes out of one step goes into the next: a field is measured in one way.
    inputs = [(u.get(name, v), n) for (name, v), n in zip(a.items(), widths, strict=True)]
    return inputs, [(v, 1) for v in u.values()]


def _by_field(values: Any, widths: list[int]) -> Sequence[Tensor | Moments]:
    """The values of fields that have so many channels each; of rows that are read, moments."""
    if isinstance(values, Rows):
        return field_moments(values, widths)
    return values.split(widths, 1)


def field_moments(rows: Rows, widths: Sequence[int]) -> list[Moments]:
    """Mean and deviation of each field over samples, frames and points."""
    mean, variance = channel_moments(rows)
    found = []
    for m, v in zip(mean.split(list(widths)), variance.split(list(widths)), strict=True):
        deviation = (v + (m - m.mean()).square()).mean().sqrt()
        found.append(usable_moments(float(m.mean()), float(deviation)))
    return found
