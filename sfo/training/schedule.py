"""Learning rates as a function of the step alone: nothing to save, nothing to lose on resume."""

import math

from sfo.training.config import TrainConfig


def learning_rate(config: TrainConfig, step: int, steps_per_epoch: int) -> float:
    """The rate of step 0, 1, … of a run.

    They are those of torch's `StepLR` (by epochs), `OneCycleLR` (by steps, with its default
    start at 1/25 and end at 1/250,000 of the largest rate) and `CosineAnnealingLR` (by steps,
    0 right after the last one).

    Example:
        >>> learning_rate(TrainConfig(), step=100 * 18, steps_per_epoch=18)
        0.0005
    """
    peak, total = config.learning_rate, config.epochs * steps_per_epoch
    if config.schedule == "step":
        every = config.decay_every or max(1, config.epochs // 5)
        return peak * config.decay ** (step // steps_per_epoch // every)
    if config.schedule == "cosine":
        return _cosine(peak, 0.0, step / total)
    if config.schedule == "one_cycle":
        # Where torch puts the top: the last step of the rise, if there is one.
        top = config.warm_up * total - 1
        if step < top:
            return _cosine(peak / 25, peak, step / top)
        return _cosine(peak, peak / 25e4, (step - top) / (total - 1 - top))
    return peak


def _cosine(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))
