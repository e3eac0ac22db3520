"""Models to and from the Hugging Face Hub, in the format of `save_pretrained`.

A download fetches two files, the configuration and the weights that it names, both of one commit.
They pass the same checks as a local folder: the SHA-256 of the weights, and the constructor of a
registered model. Nothing that comes from the hub is executed or unpickled.
"""

import importlib.util
import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sfo.checks import install_command
from sfo.models.card import CONFIGURATION, model_card
from sfo.models.pretrained import CONFIG, PretrainedError, read_config

ENDPOINT = "HF_ENDPOINT"
"""The variable that names another hub; huggingface_hub itself reads it only when imported."""
PATIENCE = "HF_HUB_ETAG_TIMEOUT"
"""The variable that says for how many seconds an answer of the hub is waited for; here: 5."""
HTTP_LIBRARIES = ("httpx", "httpx2", "requests")
"""The libraries by which versions of huggingface_hub reach the network."""


def is_repository(name: object) -> bool:
    """Whether a text has the form owner/name of a repository on the hub.

    The rules are the hub's, so that all other texts are known to be paths without asking it.

    Example:
        >>> is_repository("owner/name"), is_repository("owner/name-1.5")
        (True, True)
        >>> [is_repository(path) for path in ("folder", "./name", "runs/ac/model", "runs/a--b")]
        [False, False, False, False]
    """
    part = r"\w([\w.-]*\w)?"
    return (
        isinstance(name, str)
        and len(name) <= 96
        and bool(re.fullmatch(f"{part}/{part}", name, re.ASCII))
        and not any(taken in name for taken in ("--", ".."))
        and not name.endswith(".git")
    )


def download(repository: str, revision: str | None = None) -> Path:
    """Fetch a model's configuration and weights, and return the folder that holds them.

    A hub that cannot be reached is not asked again: the cache of earlier downloads answers.

    Args:
        repository: The repository, as owner/name.
        revision: A branch, tag or commit; None: the newest.
    """
    _check_extra(repository)
    from huggingface_hub import hf_hub_download

    with _explained(repository, revision):
        endpoint = os.environ.get(ENDPOINT)
        where: dict[str, Any] = dict(endpoint=endpoint, local_files_only=not _answers(repository))
        config = Path(hf_hub_download(repository, CONFIG, revision=revision, **where))
        # The cache has one folder per commit: weights of another one would not fit.
        commit = config.parent.name
        weights = _weights_name(config, repository)
        hf_hub_download(repository, weights, revision=commit, **where)
    return config.parent


def _answers(repository: str) -> bool:
    """Whether the hub answers for a repository, if only with a refusal, within `PATIENCE`.

    huggingface_hub alone tries six times, for half a minute or more. The one request here is in
    a thread, because a time limit of its own would hold per address and not for the name's lookup.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    endpoint = os.environ.get(ENDPOINT, constants.ENDPOINT)
    address = f"{endpoint}/{repository}/resolve/main/{CONFIG}"
    seconds = float(os.environ.get(PATIENCE, 5))
    answered = threading.Event()

    def ask() -> None:
        # The exceptions are those of whichever library there is; a 5xx may be a proxy's.
        with suppress(Exception):
            if get_session().head(address, timeout=seconds).status_code < 500:
                answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return answered.is_set()


def push(model: Any, repository: str, *, private: bool | None, record: Any) -> str:
    """Save a model to a repository, with a card, and return the address of the commit."""
    _check_extra(repository)
    if not is_repository(repository):
        raise ValueError(f"`repository` must be owner/name, got {repository!r}.")
    from huggingface_hub import HfApi

    entries = None if record is None else json.loads(record.to_json())
    with TemporaryDirectory() as temporary, _explained(repository, None):
        folder = Path(temporary)
        model.save_pretrained(folder)
        card = model_card(model, repository, entries)
        (folder / "README.md").write_text(card, encoding="utf-8")
        if entries is not None:
            (folder / "record.json").write_text(record.to_json(), encoding="utf-8")
            experiment = json.dumps(entries["experiment"], indent=2) + "\n"
            (folder / CONFIGURATION).write_text(experiment, encoding="utf-8")
        api = HfApi(endpoint=os.environ.get(ENDPOINT))
        api.create_repo(repository, private=private, repo_type="model", exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            commit_message=f"Save {type(model).__name__}",
            delete_patterns="weights-*.safetensors",
        )
    return str(commit.commit_url)


def _weights_name(config: Path, repository: str) -> str:
    """The weights that a configuration names, if it is one of this package."""
    try:
        return read_config(config.parent)["weights"]
    except PretrainedError:
        raise PretrainedError(
            f"The repository {repository!r} holds no model of this package: its {CONFIG} is of "
            "another kind."
        ) from None


def _check_extra(repository: str) -> None:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise PretrainedError(
            f"There is no folder {repository!r}, and the Hugging Face Hub needs huggingface_hub, "
            f"which is not installed: {install_command('hub')}."
        )


@contextmanager
def _explained(repository: str, revision: str | None) -> Iterator[None]:
    """Say in one sentence what the hub, or the way to it, refused."""
    from huggingface_hub import errors

    try:
        yield
    except errors.LocalEntryNotFoundError:
        raise PretrainedError(
            f"There is no folder {repository!r}, no earlier download of a repository of that name, "
            "and the Hugging Face Hub cannot be reached."
        ) from None
    except errors.GatedRepoError:
        raise PretrainedError(
            f"The repository {repository!r} asks for consent: visit its page, then log in with "
            "`hf auth login`."
        ) from None
    except errors.RepositoryNotFoundError:
        raise PretrainedError(
            f"There is no folder and no public repository {repository!r}; for a private one, log "
            "in with `hf auth login`."
        ) from None
    except errors.RevisionNotFoundError:
        raise PretrainedError(
            f"The repository {repository!r} has no revision {revision!r}."
        ) from None
    except errors.EntryNotFoundError:
        raise PretrainedError(
            f"The repository {repository!r} holds no model of this package: a file is missing, "
            f"{CONFIG} or the weights that it names."
        ) from None
    except errors.HfHubHTTPError as error:
        raise PretrainedError(
            f"The hub refused {repository!r} with status {error.response.status_code}; log in with "
            "`hf auth login` and an account that may do this."
        ) from error
    except Exception as error:
        module = type(error).__module__.partition(".")[0]
        if module not in HTTP_LIBRARIES and not isinstance(error, ConnectionError):
            raise
        reason = str(error).rstrip(".")
        raise PretrainedError(f"The Hugging Face Hub cannot be reached: {reason}.") from error
