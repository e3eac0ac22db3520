"""Derivatives of any order on periodic grids of any dimension: spectral, and by differences."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor


class Derivatives(ABC):
    """∂^α of fields `(*batch, *shape)` that repeat after `lengths`.

    `d(u, 2)` is ∂²u/∂x² on one axis, `d(u, 1, 2)` is ∂³u/∂x∂y² on two, and
    `d(u, 0, 1, laplacian=-1)` is ∂/∂y of the ψ without a mean that solves Δψ = u − mean(u).

    Args:
        shape: Points along each axis.
        lengths: Period along each axis.
    """

    def __init__(self, shape: Sequence[int], lengths: Sequence[float]) -> None:
        self.shape, self.lengths = tuple(shape), tuple(lengths)
        self.axes = tuple(range(-len(self.shape), 0))

    @abstractmethod
    def __call__(self, u: Tensor, *orders: int, laplacian: int = 0) -> Tensor:
        """∂^orders Δ^laplacian u.

        Args:
            u: Fields.
            orders: One order per axis, each at least 0.
            laplacian: Power of the Laplacian, which may be negative.
        """

    def laplacian(self, u: Tensor) -> Tensor:
        """Δu, the second derivatives along all axes added up."""
        return self(u, *[0] * len(self.shape), laplacian=1)

    def _check(self, orders: tuple[int, ...]) -> None:
        if len(orders) != len(self.shape) or any(order < 0 for order in orders):
            example = ", ".join(["2", *["0"] * (len(self.shape) - 1)])
            raise ValueError(
                f"A derivative needs one order per axis, {len(self.shape)} of at least 0, got "
                f"{orders}. ∂²/∂x² is d(u, {example}), and the Laplacian d.laplacian(u)."
            )


class OnCoefficients(Derivatives):
    """Of the coefficients of a real Fourier transform: each is multiplied by a symbol, (ik)^α.

    Odd derivatives of the shortest wave of an even number of points are 0, because its sine
    vanishes on the grid.

    Example:
        >>> d = OnCoefficients((8,), (2 * math.pi,))
        >>> d(torch.ones(5).double(), 4).tolist()
        [0.0, 1.0, 16.0, 81.0, 256.0]
    """

    def __init__(self, shape: Sequence[int], lengths: Sequence[float]) -> None:
        super().__init__(shape, lengths)
        self._symbols: dict[tuple[object, ...], Tensor] = {}

    def __call__(self, u: Tensor, *orders: int, laplacian: int = 0) -> Tensor:
        return self.symbol(u, *orders, laplacian=laplacian) * u

    def symbol(self, like: Tensor, *orders: int, laplacian: int = 0) -> Float[Tensor, "*modes"]:
        """What the derivative multiplies coefficients by, in the precision of `like`."""
        real = like.dtype.to_real() if like.is_complex() else like.dtype
        key = (orders, laplacian, real, like.device)
        if key not in self._symbols:
            self._check(orders)
            self._symbols[key] = self._symbol(orders, laplacian, real, like.device)
        return self._symbols[key]

    def _symbol(
        self, orders: tuple[int, ...], laplacian: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor:
        waves = [k.to(device, dtype) for k in self.wave_numbers()]
        symbol: Tensor | None = None
        for k, n, order in zip(waves, self.shape, orders, strict=True):
            if order:
                power = k**order
                if order % 2 and n % 2 == 0:
                    power = torch.where(k.abs() == k.abs().max(), torch.zeros_like(power), power)
                symbol = power if symbol is None else symbol * power
        turns = sum(orders) % 4
        if symbol is not None and turns:
            symbol = {1: 1j * symbol, 2: -symbol, 3: -1j * symbol}[turns]
        if laplacian:
            squares = waves[0] ** 2
            for k in waves[1:]:
                squares = squares + k**2
            inverse = laplacian < 0
            # The mean has no inverse: it is left out.
            base = torch.where(squares == 0, torch.inf, -squares) if inverse else -squares
            power = base**laplacian
            symbol = power if symbol is None else symbol * power
        modes = (*self.shape[:-1], self.shape[-1] // 2 + 1)
        one = torch.ones(modes, dtype=dtype, device=device)
        return one if symbol is None else symbol.expand(modes)

    def wave_numbers(self) -> list[Float[Tensor, "..."]]:
        """k = 2πm / length along each axis, shaped so that they broadcast, in float64.

        m = 0, …, ⌊n/2⌋ along the last axis, of which a real transform holds one half, and
        0, 1, …, −2, −1 along the others.
        """
        waves = []
        for axis, n, length in zip(self.axes, self.shape, self.lengths, strict=True):
            m = torch.arange(n, dtype=torch.float64)
            m = m[: n // 2 + 1] if axis == -1 else torch.where(m > n // 2, m - n, m)
            k = 2 * math.pi / length * m
            waves.append(k.reshape([-1, *[1] * (-1 - axis)]))
        return waves


class Spectral(OnCoefficients):
    """Of values on the grid, by way of their Fourier coefficients: exact for resolved waves.

    Example:
        >>> d = Spectral((8,), (2 * math.pi,))
        >>> x = torch.arange(8).double() * math.pi / 4
        >>> bool(torch.dist(d(torch.sin(2 * x), 3), -8 * torch.cos(2 * x)) < 1e-13)
        True
    """

    _known: tuple[Tensor, Tensor] | None = None

    def __call__(self, u: Tensor, *orders: int, laplacian: int = 0) -> Tensor:
        known = self._known
        u_hat = known[1] if known is not None and known[0] is u else self.coefficients(u)
        return self.values(self.symbol(u, *orders, laplacian=laplacian) * u_hat)

    def coefficients(self, u: Tensor) -> Tensor:
        """The Fourier transform over the grid's axes."""
        return torch.fft.rfftn(u, dim=self.axes)

    def values(self, u_hat: Tensor) -> Tensor:
        """The field with these coefficients."""
        return torch.fft.irfftn(u_hat, s=self.shape, dim=self.axes)

    def remember(self, u: Tensor, u_hat: Tensor) -> None:
        """Take these coefficients for `u` from now on instead of computing them."""
        self._known = (u, u_hat)


class Central(Derivatives):
    """By central differences: (uᵢ₋₁ − 2uᵢ + uᵢ₊₁)/h² for two orders, (uᵢ₊₁ − uᵢ₋₁)/2h for one."""

    def __call__(self, u: Tensor, *orders: int, laplacian: int = 0) -> Tensor:
        self._check(orders)
        if laplacian < 0:
            raise ValueError(
                f"`laplacian` must be at least 0 for differences, got {laplacian}. `Spectral` "
                "inverts the Laplacian."
            )
        for _ in range(laplacian):
            u = torch.stack([self._second(u, axis) for axis in self.axes]).sum(0)
        for axis, order in zip(self.axes, orders, strict=True):
            for _ in range(order // 2):
                u = self._second(u, axis)
            if order % 2:
                u = (torch.roll(u, -1, axis) - torch.roll(u, 1, axis)) / (2 * self._h(axis))
        return u

    def _second(self, u: Tensor, axis: int) -> Tensor:
        return (torch.roll(u, 1, axis) - 2 * u + torch.roll(u, -1, axis)) / self._h(axis) ** 2

    def _h(self, axis: int) -> float:
        return self.lengths[axis] / self.shape[axis]
