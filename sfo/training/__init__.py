"""Training: the loss, the loop, and checkpoints that can be trusted."""
