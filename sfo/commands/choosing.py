"""From the options of `sfo train` to an experiment, and to the data of the user's own."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfo.data.arrays import Arrays
from sfo.data.sources import open_data
from sfo.training.config import Experiment
from sfo.training.own_data import own_experiment
from sfo.training.prepare import check_arrays, described, own_shape


@dataclass(frozen=True)
class Chosen:
    """What was asked for; None and empty: not said.

    Args:
        benchmark, scale, model, preset, settings, seed, data, train: See `Experiment.of`.
        periodic, validation: What data of the user's own are.
    """

    benchmark: str | None
    scale: Any
    model: str | None
    preset: Any
    settings: dict[str, Any]
    seed: int | None
    data: dict[str, Any]
    train: dict[str, Any]
    periodic: bool = False
    validation: float | None = None

    def given(self, *names: str) -> dict[str, Any]:
        """Those of these entries that were given."""
        return {n: getattr(self, n) for n in names if getattr(self, n) is not None}


def choose(
    chosen: Chosen, config: Path | None, data: Path | None
) -> tuple[Experiment, Arrays | None]:
    """The experiment that was asked for, and its arrays if it is about some."""
    chosen_data = {k: v for k, v in chosen.data.items() if v is not None}
    if data is None and (chosen.periodic or chosen.validation is not None):
        raise ValueError("`--periodic` and `--validation` are for data of your own; add --data.")
    if data is not None:
        given = [*chosen.given("benchmark", "scale"), *chosen_data]
        if given:
            flag = {"seed": "data-seed", "options": "option"}.get(given[0], given[0])
            flag = flag.replace("_", "-")
            raise ValueError(
                f"`--{flag}` is for benchmarks, not for data of your own; leave it out with --data."
            )
    if config is not None:
        return _from_config(chosen, config, chosen_data, data)
    if data is None:
        experiment = Experiment.of(
            chosen.benchmark or "allen_cahn",
            chosen.model or "sfo",
            settings=chosen.settings,
            data=chosen_data,
            train=chosen.train,
            **chosen.given("scale", "seed", "preset"),
        )
        return experiment, None
    arrays = open_data(
        data, periodic=chosen.periodic or None, n_input=chosen.train.get("rollout", 1)
    )
    experiment = own_experiment(
        arrays,
        settings=chosen.settings,
        train=chosen.train,
        **chosen.given("model", "preset", "seed", "validation"),
    )
    return experiment, arrays


def _from_config(
    chosen: Chosen, config: Path, chosen_data: dict[str, Any], data: Path | None
) -> tuple[Experiment, Arrays | None]:
    """The experiment of a file, with what was said besides changed."""
    base = Experiment.load(config)
    if (base.data.arrays is None) != (data is None) or chosen.validation is not None:
        raise ValueError(
            f"{config} is about {base.data.benchmark!r}: pass its own --data if it was trained on "
            "arrays, none if it is a benchmark, and no other share of validation."
        )
    entries = base.model_dump(mode="json")
    entries["data"] |= {**chosen.given("benchmark", "scale"), **chosen_data}
    if chosen.model not in (None, base.model.name):
        # Settings of another model mean nothing to this one.
        entries["model"] = {"name": chosen.model, "preset": base.model.preset}
    entries["model"] |= chosen.given("preset")
    entries["model"]["settings"] = {**entries["model"].get("settings", {}), **chosen.settings}
    entries["train"] |= chosen.train
    entries |= chosen.given("seed")
    experiment = Experiment(**entries)
    if data is None:
        return experiment, None
    shape = own_shape(base)
    assert shape is not None
    arrays = described(open_data(data, n_input=base.train.rollout or 1), shape)
    check_arrays(experiment, arrays)
    return experiment, arrays
