"""How to train on data of the user's own, unless told otherwise."""

import math
from collections.abc import Sequence
from math import prod
from typing import Any

from sfo.data.arrays import Arrays, split_by_share
from sfo.training.config import ArraysConfig, DataConfig, Experiment, ModelConfig, TrainConfig
from sfo.training.prepare import field_moments

STEPS = 2000
"""Training steps that are enough for a first good model."""
POINTS = 2**19
"""Grid points of a batch: 64 latent channels of them take 128 MB."""
AMPLITUDES = (0.1, 10.0)
"""Deviations that a model takes as they are."""
LARGEST_MEAN = 3.0
"""Means that it takes as they are, over the deviation."""


def own_experiment(
    arrays: Arrays,
    model: str = "sfo",
    *,
    preset: Any = "recommended",
    settings: dict[str, Any] | None = None,
    seed: int = 0,
    validation: float = 0.1,
    train: dict[str, Any] | None = None,
) -> Experiment:
    """What to do with arrays; all their numbers are checked.

    Args:
        arrays: The data.
        model: A registered model.
        preset: "recommended" or "default".
        settings: Arguments of the model's constructor that override the preset.
        seed: Seed of the weights and the order of samples.
        validation: Share of the samples that select the best epoch; as many are reported.
        train: Fields of `TrainConfig` that override `own_protocol`.
    """
    if not isinstance(model, str):
        kind = (model if isinstance(model, type) else type(model)).__name__
        raise ValueError(
            f"`model` must be the name of a registered model, got {kind}; a class of your own "
            'gets one by @sfo.MODELS.register("mine").'
        )
    data = ArraysConfig.of(arrays, validation)
    model_config = ModelConfig(name=model, preset=preset, settings=settings or {})
    usual = own_protocol(arrays, data, recommended=model == "sfo" and preset == "recommended")
    data_config = DataConfig(benchmark=arrays.name, arrays=data)
    train_config = TrainConfig(**{**usual, **(train or {})})
    return Experiment(data=data_config, model=model_config, train=train_config, seed=seed)


def own_protocol(arrays: Arrays, data: ArraysConfig, *, recommended: bool) -> dict[str, Any]:
    """Optimizer, batch size, epochs and normaliser by the size and the amplitudes of data.

    The recommended SFO learns best by Muon at 1e-2 in many small steps: batches of 4, 2 and 1
    samples on one, two and three axes, at most a fiftieth of the training samples. Other models
    are trained by Adam in batches of a twentieth of the training samples, at most 32 and not more
    than `POINTS` grid points, at 1e-3, and less in batches below 8, as their square root. There
    are as many epochs as make `STEPS` steps, 10 to 500. The rate rises and falls again in one
    cycle, and gradients are clipped at 1.

    Inputs and solutions are normalised where a field of the training samples has a deviation
    outside of 0.1..10 or a mean of more than 3 deviations.
    """
    n_train = len(split_by_share(len(arrays), data.validation).train)
    largest = max(1, POINTS // prod(arrays.grid.shape))
    train_config: dict[str, Any] = dict(schedule="one_cycle", clip=1.0)
    if recommended:
        batch = max(1, min(4 // 2 ** (arrays.grid.n_dim - 1), n_train // 50))
        train_config |= dict(optimizer="muon", learning_rate=1e-2)
    else:
        batch = max(1, min(32, largest, n_train // 20))
        train_config["learning_rate"] = round(1e-3 * min(1.0, math.sqrt(batch / 8)), 5)
    steps = math.ceil(n_train / batch)
    return train_config | dict(
        epochs=max(10, min(500, math.ceil(STEPS / steps))),
        batch_size=batch,
        normaliser="standard" if needs_normaliser(arrays, data.validation) else None,
    )


def needs_normaliser(arrays: Arrays, validation: float = 0.1) -> bool:
    """Whether the amplitudes of some field of the training samples ask for normalisation."""
    train = split_by_share(len(arrays), validation).train
    parts: list[tuple[Any, Sequence[int]]] = [
        (arrays.a, [1] * arrays.a.shape[1]),
        (arrays.u, [len(arrays.times)] * len(arrays.names)),
    ]
    for rows, widths in parts:
        for mean, deviation in field_moments(rows.select(train), widths):
            low, high = AMPLITUDES
            if not low <= deviation <= high or abs(mean) > LARGEST_MEAN * deviation:
                return True
    return False
