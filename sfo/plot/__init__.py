"""Every picture: fields, predictions, modes, kernels and curves, with one colour rule.

Each function returns a matplotlib `Figure`; nothing is shown or written.
"""

from sfo.plot.answers import answer_figure
from sfo.plot.curves import training_curves
from sfo.plot.fields import picture
from sfo.plot.kernels import coefficients, kernel, modes
from sfo.plot.predictions import prediction_figure

__all__ = [
    "answer_figure",
    "coefficients",
    "kernel",
    "modes",
    "picture",
    "prediction_figure",
    "training_curves",
]
