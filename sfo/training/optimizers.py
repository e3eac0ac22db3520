"""The optimizer that a run asks for."""

import torch
from torch import nn

from sfo.training.config import TrainConfig
from sfo.training.muon import Muon


def optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """The optimizer of a run; its rate is set at every step."""
    if config.optimizer == "muon":
        return Muon(model, config.learning_rate, weight_decay=config.weight_decay)
    kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[config.optimizer]
    # All parameters in one kernel: 1 to 2 % of a 1D step are saved. It takes no complex ones,
    # and leaves Fabric no way to clip gradients that are scaled.
    real = all(parameter.is_floating_point() for parameter in model.parameters())
    fused = real and config.precision != "16-mixed"
    return kind(model.parameters(), weight_decay=config.weight_decay, fused=fused)


def check_strategy(config: TrainConfig, strategy: str) -> None:
    """Refuse a strategy that the optimizer cannot work with."""
    if config.optimizer == "muon" and strategy == "fsdp":
        raise ValueError(
            "`optimizer` must not be 'muon' with the strategy 'fsdp': Muon orthogonalises whole "
            "matrices, which 'fsdp' splits; use the strategy 'ddp', or optimizer='adam'."
        )
