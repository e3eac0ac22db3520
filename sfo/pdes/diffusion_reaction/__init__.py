"""Diffusion–reaction: the equation, and the float32 solver of the published data."""

from sfo.pdes.diffusion_reaction.equation import DiffusionReaction
from sfo.pdes.diffusion_reaction.float32 import Float32DiffusionReaction

__all__ = ["DiffusionReaction", "Float32DiffusionReaction"]
