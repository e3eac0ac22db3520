"""Fixed bases: functions (n, n_modes) → (n_modes, n) orthonormal rows in float64."""

from sfo.bases.chebyshev import chebyshev_modes
from sfo.bases.fourier import fourier_modes
from sfo.bases.hankel import hankel_modes
from sfo.bases.product import multi_index, tied_index
from sfo.bases.random_orthogonal import random_modes
from sfo.bases.usb import hilbert_eigenvalues, usb_dense_modes, usb_modes

__all__ = [
    "chebyshev_modes",
    "fourier_modes",
    "hankel_modes",
    "hilbert_eigenvalues",
    "multi_index",
    "random_modes",
    "tied_index",
    "usb_dense_modes",
    "usb_modes",
]
