"""A model's card: what it is, how it was made and how well it does, as the hub shows it."""

from collections.abc import Mapping
from typing import Any

from torch import nn

CONFIGURATION = "train.json"
"""The experiment in a repository, by another name than in the folder of a run, which it is not."""


def model_card(model: nn.Module, repository: str, record: Mapping[str, Any] | None) -> str:
    """The text of README.md, with the header that the hub reads; the licence is not ours to say.

    Args:
        model: The model.
        repository: Where it is, as owner/name.
        record: The entries of a Record, as its JSON has them; None: there is none.

    Example:
        >>> from sfo.models import SFO
        >>> print(model_card(SFO(1, 1, n_modes=2), "owner/name", None).splitlines()[1])
        library_name: sfo-torch
    """
    name = type(model).__name__
    parameters = sum(p.numel() for p in model.parameters())
    channels = getattr(model, "in_channels", "?"), getattr(model, "out_channels", "?")
    lines = [
        "---",
        "library_name: sfo-torch",
        "tags: [neural-operator, partial-differential-equations]",
        "---",
        f"# {repository.partition('/')[2]}",
        "",
        f"A neural operator `{name}` of sfo-torch: {channels[0]} input channels, {channels[1]} "
        f"output channels, {getattr(model, 'n_dim', '?')} axes, {parameters:,} parameters.",
        "",
        "```python",
        f"from sfo.models import {name}",
        "",
        f'model = {name}.from_pretrained("{repository}")',
        "```",
        "",
    ]
    lines += _measured(record) if record is not None else ["No Record came with this model.", ""]
    lines += ["The licence is for the owner to state: `license:` in the header of this file.", ""]
    return "\n".join(lines)


def _measured(record: Mapping[str, Any]) -> list[str]:
    """Data, training, command and errors."""
    experiment, errors = record["experiment"], record["errors"]
    data, train = experiment["data"], experiment["train"]
    own = data.get("arrays")
    if own is None:
        samples = "" if data["samples"] is None else f", {data['samples']} samples"
        about = f"the benchmark `{data['benchmark']}`, scale {data['scale']}{samples}"
        command = f"sfo train --config {CONFIGURATION}"
    else:
        about = f"{own['samples']} samples of the owner's own, SHA-256 {own['sha256'][:16]}…"
        command = f"sfo train --config {CONFIGURATION} --data FILE"
    numbers = {k: v for k, v in errors.items() if isinstance(v, float)}
    return [
        "## Data and training",
        f"- Data: {about}.",
        f"- Model: `{experiment['model']['name']}`, preset {experiment['model']['preset']}, seed "
        f"{experiment['seed']}, {record['parameters']:,} parameters.",
        f"- Training: {train['optimizer']}, learning rate {train['learning_rate']}, batch "
        f"{train['batch_size']}, {record['epochs']} epochs; the best by validation is number "
        f"{record['best_epoch'] + 1}.",
        f"- Command: `{command}`, with version {record['version']}.",
        "",
        "## Errors on test samples",
        f"Relative L2: {100 * errors['relative_l2']:.3g} %. All metrics, as fractions; "
        "record.json has the rest:",
        "",
        "| metric | value |",
        "|---|---|",
        *(f"| {metric} | {value:.4g} |" for metric, value in numbers.items()),
        "",
    ]
