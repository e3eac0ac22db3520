"""What the picture of predictions says that it shows."""

import re

import pytest
import torch
from matplotlib.text import Text

from sfo.data.pairs import Pairs
from sfo.data.trajectories import Trajectories
from sfo.files import save_figure
from sfo.grid import Grid
from sfo.plot.answers import answer_figure
from sfo.plot.curves import training_curves
from sfo.plot.fields import picture
from sfo.plot.predictions import prediction_figure


@pytest.mark.parametrize(
    ("benchmark", "points", "times", "title"),
    [
        ("arrays", (8,), (0.0,), "p"),
        ("arrays", (8, 8), (0.0,), "p"),
        ("darcy", (8, 8), (0.0,), "darcy: p"),
        ("arrays", (8,), (0.0, 1.0), "p, whole trajectory"),
        ("waves", (4, 4, 4), (0.0, 2.0), "waves: p at t = 2, middle plane"),
    ],
)
def test_the_title_names_what_is_drawn(benchmark, points, times, title):
    """A steady solution has no time, and arrays in memory have no name."""
    u = torch.rand(3, len(times), *points)
    n = len(points)
    grid = Grid(points, (0.0,) * n, (1.0,) * n)
    pairs = Pairs(u[:, :1], u, grid, (0, 1, 2), times, ("p",), ("a",), benchmark)
    figure = prediction_figure(pairs, 0.9 * u, [0.1, 0.2, 0.3])
    assert figure.get_suptitle() == title


def test_names_with_dollars_are_no_formulas(tmp_path):
    """A field named in dollars was taken for a formula: a training ended without its Record."""
    name, grid = "$a_{}^$ in $", Grid((8,), (0.0,), (1.0,))
    u = torch.rand(3, 5, 8)
    times = tuple(map(float, range(5)))
    pairs = Pairs(u[:, :1], u, grid, (0, 1, 2), times, (name,), (name,), name)
    data = Trajectories(u[:, :, None], torch.tensor(times), grid, (name,), (0, 1, 2))
    rows = [dict(epoch=0, loss=1.0, validation=2.0)]
    for figure in (
        prediction_figure(pairs, u, [0.1, 0.2, 0.3]),
        answer_figure(u[:, :1].numpy(), u.numpy(), grid, times, (name,), (name,)),
        picture(data, title=name),
        training_curves({name: rows}),
    ):
        save_figure(figure, tmp_path / "picture.png")
        assert name in [text.replace(r"\$", "$") for text in drawn_texts(figure)]


def drawn_texts(figure):
    """All texts of a figure, and the parts of its titles."""
    whole = [text.get_text() for text in figure.findobj(Text)]
    return [
        part for text in whole for part in (text, *re.split(": |, whole|input |prediction ", text))
    ]
