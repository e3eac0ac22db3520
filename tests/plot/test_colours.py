"""One colour rule: what the scale of a field shows, in every picture of it."""

import numpy as np
import pytest
import torch
from matplotlib.image import AxesImage

from sfo.data.pairs import Pairs
from sfo.grid import Grid
from sfo.plot import answer_figure, prediction_figure
from sfo.plot.colours import POSITIVE, SIGNED, FieldColours


def images(figure):
    return [i for axes in figure.axes for i in axes.images if isinstance(i, AxesImage)]


def test_an_error_is_shown_whole_and_symmetric():
    """A field hides its outermost 0.2 %, an error nothing: its peak is what one looks for."""
    values = np.zeros((100, 100))
    values[3, 4] = -7.0
    assert FieldColours.of_difference(values).norm.vmin == -7
    assert FieldColours.of_difference(values).norm.vmax == 7
    assert FieldColours.of_difference(np.zeros(3)).norm.vmax == 1
    assert FieldColours.of(values).extend == "min"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_predictions_and_answers_have_the_colours_of_fields(sign):
    """Truth and prediction share the truth's scale, as `sfo show` has it; the error is signed."""
    u, grid = sign * torch.rand(3, 4, 16), Grid((16,), (0.0,), (1.0,))
    times = (0.0, 0.1, 0.2, 0.3)
    pairs = Pairs(u[:, :1], u, grid, (0, 1, 2), times, ("u",), ("u",))
    drawn = images(prediction_figure(pairs, 0.9 * u, [0.1, 0.1, 0.1]))
    expected = POSITIVE if sign > 0 else SIGNED
    assert [i.get_cmap().name for i in drawn] == 3 * [expected, expected, SIGNED]
    for truth, guess, error in zip(drawn[::3], drawn[1::3], drawn[2::3], strict=True):
        assert truth.get_clim() == guess.get_clim()
        assert error.get_clim()[0] == -error.get_clim()[1]
    (answer,) = images(answer_figure(u[0, :1].numpy(), u[0].numpy(), grid, times, ("u",), ("u",)))
    assert answer.get_cmap().name == expected
