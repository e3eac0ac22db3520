"""The factored kernel: each channel is convolved with a scalar kernel of its own.

    (K v)_r(x) = Σₓ' κ_r(x − x') v_r(x'),        κ_r = Σₗ θ_rl φₗ

In the frequency domain that is one number per channel and frequency, ŝ_r(k) = κ̂_r(k) v̂_r(k). The
spectrum of the kernels is a product of θ with the modes' spectra: one real GEMM for tied modes,
one per axis for multi-index modes, whose L^M products are never formed. The gradients are

    dv̂ = conj(κ̂) dŝ,        dθ_rl = Re Σ_k w(k) conj(φ̂ₗ(k)) Σ_b conj(v̂) dŝ,

w the weight of a frequency in the inverse transform: two transforms forward, two backward, and
no tensor larger than the field.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from sfo import fft
from sfo.fourier_matrices import FourierMatrices
from sfo.shapes import Field
from sfo.spectral_mix import no_autocast
from sfo.transforms import needs_plain_operators

Coefficients = Float[Tensor, "channel modes"]
"""θ: the coefficients of each channel's kernel, multi-indices with the last axis fastest."""

KernelSpectrum = Complex[Tensor, "channel *frequencies"] | Float[Tensor, "channel 2 freq"]
"""κ̂ of each channel, half of the last axis; real and imaginary part apart if it meets matrices."""


@dataclass(frozen=True, eq=False)
class FactoredSpectrum:
    """The modes' spectra, arranged for `factored_mix`; made by `factored_spectrum`.

    Attributes:
        shape: The periodic grid of the convolution.
        last: φ̂ along the last axis, or on all frequencies where modes are tied: a row per mode,
            real and imaginary parts in turn.
        weighted: The same times each frequency's weight in the inverse transform.
        others: φ̂ along each axis before the last: Re φ̂ᵀ above Im φ̂ᵀ. Empty for tied modes.
        fourier: The matrices by which fields are transformed; None: by FFT.
    """

    shape: tuple[int, ...]
    last: Float[Tensor, "modes reals"]
    weighted: Float[Tensor, "modes reals"]
    others: tuple[Float[Tensor, "two_frequencies modes"], ...]
    fourier: FourierMatrices | None = None

    def map(self, change: Callable[[Tensor], Tensor]) -> "FactoredSpectrum":
        """The same with every tensor changed."""
        others = tuple(change(rows) for rows in self.others)
        fourier = None if self.fourier is None else self.fourier.map(change)
        rows = change(self.last), change(self.weighted)
        return FactoredSpectrum(self.shape, *rows, others, fourier)

    def to(self, dtype: torch.dtype, device: torch.device) -> "FactoredSpectrum":
        """The same in another precision or on another device."""
        return self.map(lambda tensor: tensor.to(device, dtype))

    @property
    def kernel_bytes(self) -> int:
        """Bytes of one channel's kernel spectrum."""
        return 2 * prod(fft.frequency_shape(self.shape)) * self.last.element_size()

    def kernel(self, theta: Coefficients) -> KernelSpectrum:
        """κ̂_r(k) = Σₗ θ_rl φ̂ₗ(k)."""
        with no_autocast(theta.device.type):
            return self._kernel(theta)

    def _kernel(self, theta: Coefficients) -> KernelSpectrum:
        x = theta.reshape(-1, len(self.last)) @ self.last
        for rows in reversed(self.others):
            products = _left_multiply(rows, x.view(-1, rows.shape[1], x.shape[1]))
            by_real, by_imag = products.unflatten(1, (2, -1)).unflatten(-1, (-1, 2)).unbind(1)
            re, im = by_real[..., 0] - by_imag[..., 1], by_real[..., 1] + by_imag[..., 0]
            x = torch.stack([re, im], dim=-1).flatten(1)
        if self.fourier is not None:
            return x.view(len(theta), -1, 2).mT
        return torch.view_as_complex(x.view(len(theta), *fft.frequency_shape(self.shape), 2))

    def project(self, dkernel: KernelSpectrum) -> Coefficients:
        """Re Σ_k w(k) conj(φ̂ₗ(k)) dκ̂_r(k): the gradient of θ from that of the kernels."""
        x = torch.view_as_real(dkernel).flatten(1)
        for rows in self.others:
            frequencies, modes = len(rows) // 2, rows.shape[1]
            conjugate = rows.view(2, frequencies, modes).mT.flatten(0, 1)
            products = _left_multiply(conjugate, x.view(len(x), frequencies, -1))
            by_real, by_imag = products.unflatten(1, (2, -1)).unflatten(-1, (-1, 2)).unbind(1)
            re, im = by_real[..., 0] + by_imag[..., 1], by_real[..., 1] - by_imag[..., 0]
            x = torch.stack([re, im], dim=-1).flatten(2).flatten(0, 1)
        return (x @ self.weighted.T).view(len(dkernel), -1)


def _left_multiply(
    matrix: Float[Tensor, "rows columns"], x: Float[Tensor, "batch columns reals"]
) -> Float[Tensor, "batch rows reals"]:
    return torch.bmm(matrix.expand(len(x), -1, -1), x)


def factored_spectrum(
    axes: Sequence[Float[Tensor, "modes _"]],
    *,
    tied: bool = False,
    fourier: FourierMatrices | None = None,
) -> FactoredSpectrum:
    """Transform modes for `factored_mix`, in the modes' own precision.

    Args:
        axes: The modes along each axis of the convolution's periodic grid, the offset 0 first.
        tied: Whether mode l on the grid is the product of the l-th of every axis; otherwise
            there is a mode for every tuple of them.
        fourier: Transform fields by these matrices instead of by FFT.
    """
    shape = tuple(phi.shape[1] for phi in axes)
    weights = fft.half_weights(shape).to(axes[-1]) / prod(shape)
    hats = [*map(torch.fft.fft, axes[:-1]), torch.fft.rfft(axes[-1])]
    if tied:
        last = hats[0]
        for hat in hats[1:]:
            last = torch.einsum("l...,lx->l...x", last, hat)
        others: tuple[Tensor, ...] = ()
    else:
        last = hats[-1]
        others = tuple(torch.cat([hat.real, hat.imag], dim=1).T.contiguous() for hat in hats[:-1])
    rows = torch.view_as_real(last)
    weighted = (rows * weights[:, None]).flatten(1)
    return FactoredSpectrum(shape, rows.flatten(1), weighted, others, fourier)


def factored_mix(v: Field, theta: Coefficients, spectrum: FactoredSpectrum) -> Field:
    """Σₗ θ_rl (φₗ * v_r) for every channel r, on the grid of v.

    Where the grid of `spectrum` is longer than that of v, zeros lie between: so the convolution
    is linear, not circular. Differentiable twice.

    Args:
        v: The field, in the dtype of `spectrum`.
        theta: A row of coefficients per channel.
        spectrum: The modes, from `factored_spectrum`.

    Example:
        >>> phi = torch.eye(4)[1:2]                       # a shift by one point
        >>> v = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
        >>> factored_mix(v, torch.ones(1, 1), factored_spectrum([phi])).round(decimals=5)
        tensor([[[4., 1., 2., 3.]]])
    """
    with no_autocast(v.device.type):
        if spectrum.fourier is not None or needs_plain_operators(v, theta):
            return mix_by_definition(v, theta, spectrum)
        return _FactoredMix.apply(v, theta, spectrum)[0]


def mix_with_kernel(v: Field, kernel: KernelSpectrum, spectrum: FactoredSpectrum) -> Field:
    """The same with the kernels' spectrum already formed, by `spectrum.kernel`."""
    with no_autocast(v.device.type):
        if spectrum.fourier is not None:
            return _by_matrices(v, kernel, spectrum.fourier)
        v_hat = _transform(v, spectrum.shape)
        product = v_hat * kernel if v_hat.requires_grad else v_hat.mul_(kernel)
        return _inside(fft.irfftn_by_axis(product, spectrum.shape), v)


def mix_by_definition(v: Field, theta: Coefficients, spectrum: FactoredSpectrum) -> Field:
    """The same from plain differentiable operators: for `torch.export` and second derivatives."""
    kernel = spectrum.kernel(theta)
    if spectrum.fourier is not None:
        return _by_matrices(v, kernel, spectrum.fourier)
    return _back(_transform(v, spectrum.shape) * kernel, v, spectrum.shape)


def _by_matrices(
    v: Field, kernel: Float[Tensor, "channel 2 freq"], fourier: FourierMatrices
) -> Field:
    v_hat = fourier.rfftn(v)
    re, im = kernel.unbind(1)
    v_re, v_im = v_hat.unbind(2)
    product = torch.stack([re * v_re - im * v_im, re * v_im + im * v_re], dim=2)
    return fourier.irfftn(product, v.shape[2:])


def _transform(v: Field, shape: Sequence[int]) -> Complex[Tensor, "batch channel *frequencies"]:
    return torch.fft.rfftn(v, s=tuple(shape), dim=tuple(range(-len(shape), 0)))


def _back(v_hat: Tensor, like: Field, shape: Sequence[int]) -> Field:
    """The field of a spectrum, on the grid of `like`."""
    return _inside(fft.irfftn(v_hat, shape), like)


def _inside(v: Field, like: Field) -> Field:
    """The part of a field that lies on the grid of `like`."""
    inside: tuple[Any, ...] = (..., *map(slice, like.shape[2:]))
    return v if v.shape[2:] == like.shape[2:] else v[inside]


class _FactoredMix(torch.autograd.Function):
    """Returns the two spectra as well: what a backward pass needs must be an output or input."""

    generate_vmap_rule = True

    @staticmethod
    def forward(v: Tensor, theta: Tensor, spectrum: FactoredSpectrum) -> tuple[Tensor, ...]:
        kernel = spectrum.kernel(theta)
        v_hat = _transform(v, spectrum.shape)
        return _back(v_hat * kernel, v, spectrum.shape), v_hat, kernel

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        v, theta, ctx.spectrum = inputs
        _, v_hat, kernel = output
        ctx.mark_non_differentiable(v_hat, kernel)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(v, theta, v_hat, kernel)
        ctx.save_for_forward(v, theta)

    @staticmethod
    def backward(ctx: Any, ds: Tensor | None, *_: None) -> tuple[Tensor | None, ...]:
        if ds is None:
            return None, None, None
        v, theta, v_hat, kernel = ctx.saved_tensors
        spectrum = ctx.spectrum
        with no_autocast(v.device.type):
            if torch.is_grad_enabled():
                # For second derivatives, which the kept spectra cannot give.
                v_hat, kernel = _transform(v, spectrum.shape), spectrum.kernel(theta)
            ds_hat = _transform(ds, spectrum.shape)
            dv = dtheta = None
            if ctx.needs_input_grad[1]:
                dtheta = spectrum.project((v_hat.conj() * ds_hat).sum(0))
            if ctx.needs_input_grad[0]:
                dv = _back(ds_hat * kernel.conj(), v, spectrum.shape)
        return dv, dtheta, None

    @staticmethod
    def jvp(ctx: Any, dv: Tensor | None, dtheta: Tensor | None, _: None) -> tuple[Any, ...]:
        v, theta = ctx.saved_tensors
        parts = []
        if dv is not None:
            parts.append(mix_by_definition(dv, theta, ctx.spectrum))
        if dtheta is not None:
            parts.append(mix_by_definition(v, dtheta, ctx.spectrum))
        return sum(parts[1:], parts[0]), None, None
