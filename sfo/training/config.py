"""What a run is: data, model and training, validated, frozen, and the same after a trip to JSON."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    model_serializer,
    model_validator,
)

from sfo.data.arrays import Arrays, split_by_share
from sfo.data.benchmarks import ScaleName
from sfo.data.pairs import Scheme
from sfo.files import json_sha256, parse_json
from sfo.models.build import Preset
from sfo.models.presets import has_paper, paper_settings
from sfo.registry import BENCHMARKS, MODELS
from sfo.training.physics import check_frames, check_initial, check_physics
from sfo.training.protocols import PINO_WEIGHTS, protocol
from sfo.training.settings import check_settings
from sfo.training.strict import Config, ConfigError, plain

Count = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]
Positive = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0)]
Weight = Annotated[float, Field(ge=0)]
Plain = Annotated[dict[str, Any], AfterValidator(plain)]
Precision = Literal["32-true", "64-true", "16-mixed", "bf16-mixed", "16-true", "bf16-true"]


class ArraysConfig(Config):
    """What a run knows of data of the user's own; where they are is not part of it.

    Args:
        sha256: Fingerprint of all numbers, see `Arrays.check`.
        samples: Number of samples.
        in_channels, out_channels: Channels of a and u.
        grid: Points of both, as `Grid.to_dict` has them.
        times: Times of u's frames.
        names: Names of u's fields.
        inputs: Names of a's fields.
        validation: Share of the samples that select the best epoch; as many are reported.
    """

    sha256: str
    samples: Positive
    in_channels: Positive
    out_channels: Positive
    grid: Plain
    times: list[float]
    names: list[str]
    inputs: list[str]
    validation: float = 0.1

    @classmethod
    def of(cls, arrays: Arrays, validation: float = 0.1) -> "ArraysConfig":
        """Of arrays, all of whose numbers are gone through."""
        split_by_share(len(arrays), validation)
        return cls(
            sha256=arrays.check(),
            samples=len(arrays),
            in_channels=arrays.a.shape[1],
            out_channels=arrays.u.shape[1],
            grid=arrays.grid.to_dict(),
            times=list(arrays.times),
            names=list(arrays.names),
            inputs=list(arrays.inputs),
            validation=validation,
        )


class DataConfig(Config):
    """Which pairs. `file` overrides the generated set with a file on disk.

    Args:
        benchmark: Name of the benchmark, or of the user's own data.
        scale: Size of the generated set.
        samples: How many samples in all; None: as the scale says.
        train_samples: Train on the first so many training samples only, with all validation and
            test samples; None: on all.
        seed: Seed of the data.
        scheme: How samples are divided into train, validation and test.
        stride: Take every `stride`-th stored point; None: as the paper does.
        time_stride: Take every `time_stride`-th frame.
        file: A data file to use instead of a generated one.
        options: Options of the benchmark, and constants of its equation.
        arrays: For data of the user's own, what is known of them; None: the benchmark's.
    """

    benchmark: str
    scale: ScaleName = "desk"
    samples: Positive | None = None
    train_samples: Positive | None = None
    seed: Count = 0
    scheme: Scheme = "default"
    stride: Positive | None = None
    time_stride: Positive = 1
    file: str | None = None
    options: Plain = {}  # noqa: RUF012
    arrays: ArraysConfig | None = None

    @model_serializer(mode="wrap")
    def _without_none(self, dump: Any) -> dict[str, Any]:
        # What was written before there were these stays the same to the byte.
        entries = dump(self)
        for later in ("arrays", "train_samples"):
            if getattr(self, later) is None:
                entries.pop(later, None)
        return entries

    @model_validator(mode="after")
    def _known(self) -> "DataConfig":
        if self.arrays is not None:
            own = {"benchmark", "arrays"}
            for key, field in type(self).model_fields.items():
                if key not in own and getattr(self, key) != field.default:
                    raise ValueError(
                        f"`{key}` is for benchmarks, not for data of your own, got "
                        f"{getattr(self, key)!r}; leave it out."
                    )
            return self
        BENCHMARKS[self.benchmark].with_options(**self.options)
        return self

    @property
    def paper_name(self) -> str | None:
        """The paper's benchmark whose settings models take, if it has one for these data."""
        return None if self.arrays is not None else BENCHMARKS[self.benchmark].paper_name


class ModelConfig(Config):
    """Which model: its registered name, and arguments of its constructor besides the channels.

    Args:
        name: Name of the model.
        preset: "paper": the paper's settings, for its benchmarks; "recommended": our own, or the
            constructor's where the model has no better ones; "default": the constructor's.
        settings: Arguments that override the preset.
    """

    name: str = "sfo"
    preset: Preset = "paper"
    settings: Plain = {}  # noqa: RUF012

    @model_validator(mode="after")
    def _known(self) -> "ModelConfig":
        check_settings(self.name, self.settings)
        return self


class TrainConfig(Config):
    """How to train. The defaults are the paper's protocol for the 1D benchmarks.

    Args:
        epochs: Passes over the training samples.
        batch_size: Samples per step, over all processes.
        micro_batch: Samples that a process passes through the model at a time; gradients are
            summed until the batch is through, so that a step is that of the whole batch but for
            rounding and for norms over the batch, and takes less memory. None: all of them.
        optimizer: The optimizer: "adam", "adamw", or "muon", which takes orthogonal steps for
            matrices and AdamW's for all other parameters.
        learning_rate: The (largest) learning rate.
        weight_decay: Weight decay of the optimizer.
        schedule: Course of the learning rate. "step": times `decay` every `decay_every` epochs;
            "one_cycle": up and down once over the run; "cosine": down to 0; "constant".
        decay: Factor of each step of the "step" schedule.
        decay_every: Epochs between the steps of the "step" schedule; None: a fifth of all, as
            the paper's 100 of 500.
        warm_up: Share of the run in which "one_cycle" rises.
        clip: Largest norm of the gradient; None: no limit.
        ema: Decay of an exponential moving average of the weights, which is then what is
            validated, saved as the model and reported; None: no average.
        loss: The loss. "l2": relative L2; "h1": with first differences in space.
        physics: Weight of the equation's residual in the loss, see `PhysicsLoss`; 0: none.
        initial: Weight of the error of the input's own frames in the loss.
        rollout: Frames that are unrolled from. None: all frames at once, as the paper; or n:
            the model maps n frames to the next one and is unrolled to the end.
        normaliser: How data are normalised, by constants of the training data. None: not;
            "standard": a and u to mean 0 and deviation 1; "first_guess": a likewise, and of u
            what a least squares guess leaves, scaled to 1, as SFO's recommended preset does.
        precision: Precision of weights and arithmetic ("true"), or of the arithmetic alone
            ("mixed").
        loader_workers: Threads that gather batches ahead of their use; 0: none.
        checkpoint_every: Steps between checkpoints; None: one per epoch. The best epoch and the
            last are saved besides.
        keep_last: Checkpoints to keep besides the best.
        validate_every: Epochs between validations.
    """

    epochs: Positive = 500
    batch_size: Positive = 50
    micro_batch: Positive | None = None
    optimizer: Literal["adam", "adamw", "muon"] = "adam"
    learning_rate: Rate = 1e-3
    weight_decay: Weight = 0.0
    schedule: Literal["step", "one_cycle", "cosine", "constant"] = "step"
    decay: Annotated[float, Field(gt=0, le=1)] = 0.5
    decay_every: Positive | None = 100
    warm_up: Annotated[float, Field(ge=0, lt=1)] = 0.3
    clip: Rate | None = None
    ema: Annotated[float, Field(gt=0, lt=1)] | None = None
    loss: Literal["l2", "h1"] = "l2"
    physics: Weight = 0.0
    initial: Weight = 0.0
    rollout: Positive | None = None
    normaliser: Literal["standard", "first_guess"] | None = None
    precision: Precision = "32-true"
    loader_workers: Count = 0
    checkpoint_every: Positive | None = None
    keep_last: Positive = 2
    validate_every: Positive = 1

    @model_validator(mode="after")
    def _guess_all_frames(self) -> "TrainConfig":
        if self.normaliser == "first_guess" and self.rollout is not None:
            raise ValueError(
                '`normaliser="first_guess"` guesses all frames at once, which a rollout has not, '
                f'got rollout={self.rollout}; use normaliser="standard".'
            )
        return self

    @model_serializer(mode="wrap")
    def _without_none(self, dump: Any) -> dict[str, Any]:
        # What was written before there was this stays the same to the byte.
        entries = dump(self)
        if self.micro_batch is None:
            entries.pop("micro_batch", None)
        return entries


class Experiment(Config):
    """All that a run's numbers depend on.

    Example:
        >>> e = Experiment.of("allen_cahn", "sfo", scale="smoke")
        >>> Experiment.from_json(e.to_json()) == e
        True
    """

    data: DataConfig
    model: ModelConfig = Field(default_factory=ModelConfig)
    train: TrainConfig = Field(default_factory=TrainConfig)
    seed: Seed = 0

    @model_validator(mode="after")
    def _check_model_and_physics(self) -> "Experiment":
        # Before hours are spent on making data.
        if self.model.preset == "paper":
            paper_settings(MODELS[self.model.name], self.data.paper_name)
        if self.train.physics:
            if self.data.arrays is not None:
                raise ValueError(
                    "`physics` needs the equation of a benchmark, which data of your own do not "
                    f"have, got {self.train.physics}; use physics=0."
                )
            check_physics(BENCHMARKS[self.data.benchmark])
            if self.data.file is None:
                kind = BENCHMARKS[self.data.benchmark]
                check_frames(len(kind.times(kind.scale(self.data.scale))[:: self.data.time_stride]))
        if self.train.initial:
            check_initial(self.data.arrays or BENCHMARKS[self.data.benchmark])
        return self

    @classmethod
    def of(
        cls,
        benchmark: str,
        model: str = "sfo",
        *,
        scale: ScaleName = "desk",
        seed: int = 0,
        preset: Preset | None = None,
        settings: dict[str, Any] | None = None,
        data: dict[str, Any] | None = None,
        train: dict[str, Any] | None = None,
    ) -> "Experiment":
        """The benchmark's protocol at a scale, with what is given here changed.

        Without a `preset` it is the paper's settings, or ours for what the paper does not have.
        """
        data_config = DataConfig(benchmark=benchmark, scale=scale, **(data or {}))
        if preset is None and model in MODELS:
            known = has_paper(MODELS[model], data_config.paper_name)
            preset = "paper" if known else "recommended"
        model_config = ModelConfig(name=model, preset=preset or "paper", settings=settings or {})
        usual = {**protocol(benchmark, scale), **(PINO_WEIGHTS if model == "pino" else {})}
        train_config = TrainConfig(**{**usual, **(train or {})})
        return cls(data=data_config, model=model_config, train=train_config, seed=seed)

    def to_json(self) -> str:
        """As text that a person can read and edit."""
        return json.dumps(self.model_dump(mode="json"), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Experiment":
        """The experiment that `to_json` wrote, or that a person did."""
        try:
            entries = parse_json(text)
        except ValueError as error:
            raise ConfigError(f"An experiment must be JSON: {error}.") from None
        if not isinstance(entries, dict):
            raise ConfigError(f"An experiment must be a JSON object, got {entries!r:.80}.")
        return cls(**entries)

    @classmethod
    def load(cls, path: str | Path) -> "Experiment":
        """Read a configuration file; what is wrong with it is said in one sentence."""
        try:
            return cls.from_json(Path(path).read_text())
        except ConfigError as error:
            raise ValueError(f"{path}: {error}") from None

    @property
    def key(self) -> str:
        """Ten letters that differ between experiments, whatever options later versions add."""
        return json_sha256(self.model_dump(mode="json", exclude_defaults=True))[:10]
