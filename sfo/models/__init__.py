"""Neural operators: `nn.Module`s that map a field `(batch, channel, *grid)` to another."""

from sfo.models.deeponet import DeepONet
from sfo.models.fno import FNO
from sfo.models.kernel import FactoredKernel, SpectralKernel
from sfo.models.kernel_modes import KernelModes, KernelOptions
from sfo.models.mno import MNO
from sfo.models.mpnn import MPNN
from sfo.models.neuralop import NeuralopFNO, NeuralopUNO
from sfo.models.pino import PINO
from sfo.models.public import import_public
from sfo.models.sfo import SFO
from sfo.models.svd_no import SVDNO
from sfo.models.transolver import Transolver
from sfo.models.unet import UNet
from sfo.models.uno import UNO

__all__ = [
    "FNO",
    "MNO",
    "MPNN",
    "PINO",
    "SFO",
    "SVDNO",
    "UNO",
    "DeepONet",
    "FactoredKernel",
    "KernelModes",
    "KernelOptions",
    "NeuralopFNO",
    "NeuralopUNO",
    "SpectralKernel",
    "Transolver",
    "UNet",
    "import_public",
]
