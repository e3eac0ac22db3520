"""Neural operators: `nn.Module`s that map a field `(batch, channel, *grid)` to another."""

from sfo.models.kernel import KernelModes, SpectralKernel
from sfo.models.sfo import SFO

__all__ = ["SFO", "KernelModes", "SpectralKernel"]
