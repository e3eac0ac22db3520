"""The Physics-Informed Neural Operator (PINO)."""

from sfo.models.fno import FNO
from sfo.registry import MODELS


@MODELS.register("pino")
class PINO(FNO):
    """An FNO that is trained to solve its equation as well as to match its data.

        loss = ‖û − u‖ / ‖u‖ + initial · ‖û(0) − a‖ / ‖a‖ + physics · f(û)

    with f the relative residual of the equation, see `sfo.training.physics`. The network is
    `FNO`, to the last parameter; the loss is what differs (Li et al., "Physics-Informed Neural
    Operator for Learning Partial Differential Equations", 2021). By default the weights are
    0.2 and 0.1, PDENNEval's ratio of 10 : 2 : 1; those of the SFO paper are not known.

    On shallow water the paper's count, 478,277, is that of a network that predicts the depth
    alone, of which the equation cannot be asked. Trained on the benchmark as it is stated,
    (h, b) → (h, u, v), the network has the channels of these data and 504,355 parameters.

    The arguments are those of `FNO`.

    Example:
        >>> import torch
        >>> model = PINO(in_channels=1, out_channels=101)
        >>> sum(p.numel() for p in model.parameters())
        300325
    """
