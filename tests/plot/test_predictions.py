"""What the picture of predictions says that it shows."""

import pytest
import torch

from sfo.data.pairs import Pairs
from sfo.grid import Grid
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
