"""Training: the loss, the loop, and checkpoints that can be trusted."""

from sfo.training.config import DataConfig, Experiment, ModelConfig, TrainConfig
from sfo.training.loss import relative_h1, relative_l2

__all__ = ["DataConfig", "Experiment", "ModelConfig", "TrainConfig", "relative_h1", "relative_l2"]
