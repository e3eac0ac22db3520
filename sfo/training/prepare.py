"""From an experiment to its data and its model."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sfo.data.benchmarks import Benchmark
from sfo.data.load import file_pairs, load_benchmark, load_file
from sfo.data.pairs import Pairs, Part
from sfo.grid import Grid
from sfo.models.build import build_model
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.wrappers import Normalised, Rollout


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

    @property
    def static(self) -> int:
        """Input fields that do not change in time."""
        return sum(name not in self.names for name in self.inputs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**self.__dict__, "grid": self.grid.to_dict()}

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> "DataShape":
        """What `to_dict` wrote."""
        rows = {k: tuple(entries[k]) for k in ("times", "names", "inputs")}
        return cls(**{**entries, **rows, "grid": Grid.from_dict(entries["grid"])})


def load_pairs(experiment: Experiment, part: Part, **how: Any) -> Pairs:
    """The pairs of one part; `how` goes to `load_benchmark` (folder, workers, progress)."""
    data = experiment.data
    benchmark = BENCHMARKS[data.benchmark]
    fields: dict[str, Any] = {}
    if experiment.train.rollout is not None:
        inputs = (*benchmark.names, *benchmark.static_names)
        fields = dict(n_input=experiment.train.rollout, inputs=inputs)
    if data.file is None:
        return load_benchmark(
            data.benchmark,
            data.scale,
            part,
            scheme=data.scheme,
            samples=data.samples,
            seed=data.seed,
            stride=data.stride,
            time_stride=data.time_stride,
            **fields,
            **how,
            **data.options,
        )
    file = load_file(data.file, data.stride, data.time_stride)
    found = file.benchmark
    variants = [b for b in BENCHMARKS if _same_equation(BENCHMARKS[b], benchmark)]
    if found != data.benchmark and found not in variants:
        raise ValueError(
            f"{data.file} holds {found if found in BENCHMARKS else 'no benchmark that is known'}, "
            f"but the run is on {data.benchmark}; pass a file of that benchmark, or train on it as "
            f"data of your own with --data {data.file}."
        )
    return file_pairs(file, part, data.scheme, **fields)


def _same_equation(one: Benchmark, other: Benchmark) -> bool:
    """Whether two benchmarks are variants of the same one of the paper's."""
    return one.paper_name is not None and one.paper_name == other.paper_name


def build(experiment: Experiment, shape: DataShape, train: Pairs | None = None) -> nn.Module:
    """The model of an experiment, with weights drawn from its seed.

    Args:
        experiment: Names the model and its settings.
        shape: Of the data.
        train: For a normaliser's means and deviations, if the weights are not loaded anyway.
    """
    rollout, fields = experiment.train.rollout, len(shape.names)
    in_channels, out_channels = shape.in_channels, shape.out_channels
    if rollout is not None:
        in_channels, out_channels = rollout * fields + shape.static, fields
    # The caller's random numbers are left alone.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(experiment.seed)
        model: nn.Module = build_model(
            experiment.model.name,
            experiment.data.paper_name,
            preset=experiment.model.preset,
            in_channels=in_channels,
            out_channels=out_channels,
            n_dim=shape.grid.n_dim,
            train_shape=shape.grid.shape,
            out_fields=fields,
            periodic=shape.grid.periodic,
            **experiment.model.settings,
        )
    if experiment.train.normaliser is not None:
        model = Normalised(model, in_channels, out_channels, shape.grid.n_dim)
        if train is not None:
            model.measure(*_fields(train, rollout))
    if rollout is not None:
        # Outside of the normaliser: the frames of the input are passed on as they are.
        model = Rollout(model, rollout, len(shape.times), fields)
    return model


FieldsOf = list[tuple[Tensor, int]]


def _fields(train: Pairs, rollout: int | None) -> tuple[FieldsOf, FieldsOf]:
    """The values of each input field and each solution field, and the channels they take."""
    frames = train.a.shape[1] - sum(name not in train.names for name in train.inputs)
    frames //= max(1, sum(name in train.names for name in train.inputs))
    widths = [frames if name in train.names else 1 for name in train.inputs]
    a = dict(zip(train.inputs, train.a.split(widths, 1), strict=True))
    u = dict(zip(train.names, train.u.split(train.n_times, 1), strict=True))
    if rollout is None:
        return [(v, v.shape[1]) for v in a.values()], [(v, train.n_times) for v in u.values()]
    # What comes out of one step goes into the next: a field is measured in one way.
    return [(u.get(name, v), v.shape[1]) for name, v in a.items()], [(v, 1) for v in u.values()]
