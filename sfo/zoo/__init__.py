"""Pretrained models that come with the package: weights, configuration and a card each.

They are made and measured by `sfo pretrain`; a card states the command, the data, the errors on
three grids, and how the model compares with our own solver.
"""

import json
from pathlib import Path
from typing import Any

from sfo.models.operator import Operator
from sfo.registry import unknown_name

__all__ = ["card", "folder", "load_pretrained", "names"]

FOLDER = Path(__file__).parent / "weights"
CARD = "card.json"


def names() -> list[str]:
    """The pretrained models, each named after the benchmark that it was trained on.

    Example:
        >>> "allen_cahn" in names()
        True
    """
    return sorted(path.parent.name for path in FOLDER.glob(f"*/{CARD}"))


def folder(name: str) -> Path:
    """Where the weights of a pretrained model are.

    Example:
        >>> folder("allen_cahn").name
        'allen_cahn'
    """
    if name not in names():
        raise ValueError(unknown_name("pretrained model", name, names()))
    return FOLDER / name


def card(name: str) -> dict[str, Any]:
    """What is known of a pretrained model: data, command, errors and speed.

    Example:
        >>> card("allen_cahn")["benchmark"]
        'allen_cahn'
    """
    return json.loads((folder(name) / CARD).read_text(encoding="utf-8"))


def load_pretrained(name: str) -> Operator:
    """A pretrained model, ready for prediction; its weights' SHA-256 is compared.

    Args:
        name: One of `names()`.

    Example:
        >>> import sfo, torch
        >>> model = sfo.load_pretrained("allen_cahn")
        >>> model(torch.zeros(1, 1, 256)).shape
        torch.Size([1, 101, 256])
    """
    model = Operator.from_pretrained(folder(name))
    return model.eval()
