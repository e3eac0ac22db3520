"""Neural operators: `nn.Module`s that map a field `(batch, channel, *grid)` to another."""

from sfo.models.fno import FNO
from sfo.models.kernel import KernelModes, SpectralKernel
from sfo.models.neuralop import NeuralopFNO, NeuralopUNO
from sfo.models.sfo import SFO
from sfo.models.unet import UNet
from sfo.models.uno import UNO

__all__ = [
    "FNO",
    "SFO",
    "UNO",
    "KernelModes",
    "NeuralopFNO",
    "NeuralopUNO",
    "SpectralKernel",
    "UNet",
]
