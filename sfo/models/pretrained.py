"""Weights to and from disk: safetensors and JSON, no pickle, nothing half written."""

import json
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_safetensors
from safetensors.torch import save as save_safetensors
from torch import Tensor, nn

from sfo.files import parse_json, sha256, write_atomically
from sfo.models.units import Units
from sfo.registry import MODELS

FORMAT = "sfo-torch model"
VERSION = 1
CONFIG = "config.json"
RUN_MODEL = "model"
"""Where a run's folder has its best model."""

M = TypeVar("M", bound="Pretrained")


class PretrainedError(ValueError):
    """A folder that does not hold a whole, unchanged model of this package."""


class Pretrained:
    """Gives a registered model `save_pretrained` and `from_pretrained`.

    A model class sets `self.arguments`, the constructor's arguments as JSON can hold them, and
    `self.units` to None or to `Units` of the data that it was trained on.
    """

    arguments: dict[str, Any]
    units: Units | None

    def save_pretrained(self, folder: str | os.PathLike[str]) -> Path:
        """Write the model to a folder: `config.json` and one safetensors file.

        The weights' file is named after their SHA-256 and the configuration, which names it,
        is put in place last in one step: at any moment the folder holds the old model or the
        new one, whole.
        """
        assert isinstance(self, nn.Module)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        former = _former_weights(folder)
        weights = weight_bytes(self)
        digest = sha256(weights)
        name = f"weights-{digest[:16]}.safetensors"
        config = {
            "format": FORMAT,
            "version": VERSION,
            "model": model_name(type(self)),
            "arguments": self.arguments,
            "dtype": str(
                next(p.dtype for p in self.parameters() if not p.is_complex())
            ).removeprefix("torch."),
            "weights": name,
            "sha256": digest,
        }
        if self.units is not None:
            config["units"] = [self.units.a_mean.shape[1], self.units.u_mean.shape[1]]
        write_atomically(folder / name, weights)
        write_atomically(folder / CONFIG, json.dumps(config, indent=2).encode() + b"\n")
        if former not in (None, name):
            (folder / former).unlink(missing_ok=True)
        return folder

    @classmethod
    def from_pretrained(
        cls: type[M], folder: str | os.PathLike[str], revision: str | None = None
    ) -> M:
        """Read a model that `save_pretrained` wrote, or say why it is refused.

        Args:
            folder: Where the model was saved, or the folder of a finished run, whose best model
                is in its subfolder `model`; or, where there is no such folder, a repository
                owner/name on the Hugging Face Hub, which needs the extra `[hub]`.
            revision: The branch, tag or commit of that repository; None: the newest.
        """
        from sfo.models import hub

        is_local = isinstance(folder, os.PathLike) or Path(folder).exists()
        if is_local and revision is not None:
            raise ValueError(
                f"`revision` is for repositories on the hub, got {revision!r} for the folder "
                f"{str(folder)!r}."
            )
        if not is_local:
            if not hub.is_repository(folder):
                raise PretrainedError(
                    f"There is no folder {folder!r}, and a repository on the Hugging Face Hub has "
                    "the form owner/name."
                )
            folder = hub.download(str(folder), revision)
        folder = Path(folder)
        if (folder / "experiment.json").exists():
            folder = folder / RUN_MODEL
            if not (folder / CONFIG).exists():
                raise PretrainedError(
                    f"The run {folder.parent} holds no model to load: it is not finished, or its "
                    "model has no `save_pretrained`. Use sfo.load_run."
                )
        config = read_config(folder)
        path = folder / config["weights"]
        try:
            weights = path.read_bytes()
        except OSError as error:
            raise PretrainedError(f"Cannot read the weights {path}: {error.strerror}.") from None
        digest = sha256(weights)
        if digest != config["sha256"]:
            raise PretrainedError(
                f"{path} is damaged: its SHA-256 is {digest[:16]}…, but {CONFIG} says "
                f"{config['sha256'][:16]}…. Copy the folder again or save the model again."
            )
        if config["model"] not in MODELS:
            known = ", ".join(MODELS.names())
            raise PretrainedError(
                f"{folder} holds a model {config['model']!r}, which this version does not know; "
                f"known: {known}."
            )
        model_class: Any = MODELS[config["model"]]
        if not issubclass(model_class, cls):
            raise PretrainedError(
                f"{folder} holds a {model_class.__name__}, not a {cls.__name__}: use "
                f"{model_class.__name__}.from_pretrained."
            )
        try:
            model = model_class(**config["arguments"])
            if "units" in config:
                channels_in, channels_out = config["units"]
                model.units = Units(channels_in, channels_out, model.n_dim)
            model = model.to(getattr(torch, config["dtype"]))
            model.load_state_dict(_as_in(model, load_safetensors(weights)))
        except (TypeError, ValueError, AttributeError, SafetensorError, RuntimeError) as error:
            reason = str(error).strip().splitlines()[0]
            raise PretrainedError(
                f"{folder} does not describe a {model_class.__name__} of this version: {reason}"
            ) from None
        return model

    def push_to_hub(
        self, repository: str, *, private: bool | None = None, record: Any = None
    ) -> str:
        """Save the model to a repository on the Hugging Face Hub, and return the commit's address.

        It needs the extra `[hub]` and a login (`hf auth login`). What is pushed is what
        `save_pretrained` writes, and a card; its licence is left to you.

        Args:
            repository: The repository, as owner/name; it is created if need be.
            private: Whether a new repository is private; None: as the account has it.
            record: The Record of the run, from which the card is written; None: a short card.
        """
        from sfo.models import hub

        return hub.push(self, repository, private=private, record=record)


def weight_bytes(model: nn.Module) -> bytes:
    """The state of a model as a safetensors file, whose SHA-256 names its weights."""
    return save_safetensors({k: _real(v) for k, v in model.state_dict().items()})


def model_name(model_class: type) -> str:
    """The name a model class is registered under."""
    for name in MODELS:
        if MODELS[name] is model_class:
            return name
    raise PretrainedError(
        f"{model_class.__name__} is not registered: decorate it with @MODELS.register(name)."
    )


def _former_weights(folder: Path) -> str | None:
    """The file of weights of the model that the folder holds, if it holds one of ours."""
    path = folder / CONFIG
    if not path.exists():
        return None
    try:
        found = parse_json(path.read_text(encoding="utf-8"))
        own = found["format"] == FORMAT
    except (ValueError, TypeError, LookupError):
        own = False
    if not own:
        raise PretrainedError(
            f"{path} is there and is not the configuration of an {FORMAT}; it was left as it is, "
            "so choose another folder."
        )
    name = str(found.get("weights"))
    return name if re.fullmatch(r"weights-[0-9a-f]{16}\.safetensors", name) else None


def _real(value: Tensor) -> Tensor:
    """Complex weights as pairs of real ones: not every safetensors stores them."""
    value = value.detach().cpu()
    return (torch.view_as_real(value) if value.is_complex() else value).contiguous()


def _as_in(model: nn.Module, weights: dict[str, Tensor]) -> dict[str, Tensor]:
    own = model.state_dict()
    return {
        k: torch.view_as_complex(v)
        if k in own and own[k].is_complex() and v.is_floating_point() and v.shape[-1:] == (2,)
        else v
        for k, v in weights.items()
    }


def read_config(folder: Path) -> dict[str, Any]:
    """The configuration of a saved model, or a sentence on what is wrong with it."""
    path = folder / CONFIG
    try:
        config = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PretrainedError(
            f"No model in {str(folder)!r}: cannot read {CONFIG} ({error.strerror})."
        ) from None
    except ValueError:
        raise PretrainedError(f"{path} is damaged: it is not JSON text.") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise PretrainedError(f"{path} is not the configuration of an {FORMAT}.")
    if config.get("version") != VERSION:
        raise PretrainedError(
            f"{path} has version {config.get('version')!r}; this package reads version {VERSION}."
        )
    texts = ("model", "dtype", "weights", "sha256")
    missing = [key for key in texts if not isinstance(config.get(key), str)]
    if missing or not isinstance(config.get("arguments"), dict):
        raise PretrainedError(f"{path} is damaged: {', '.join(missing) or 'arguments'} is missing.")
    if Path(config["weights"]).name != config["weights"]:
        raise PretrainedError(f"{path} names weights outside of its folder: {config['weights']!r}.")
    return config
