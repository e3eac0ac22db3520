"""`transform="matmul"`: the same model from real matrix products instead of FFT."""

from itertools import product

import pytest
import torch

from sfo import SFO
from sfo.models import KernelModes, KernelOptions

SHAPES = {1: (12,), 2: (6, 7), 3: (4, 5, 6)}
OPTIONS = [
    dict(n_dim=n_dim, mixing=mixing, index=index, boundary=boundary, support=support)
    for n_dim, mixing, index, boundary, support in product(
        (1, 2, 3),
        ("dense", "factored"),
        ("tied", "multi", "separable"),
        ("circular", "zero", "reflect", "learned"),
        ("one_sided", "two_sided"),
    )
    if not (mixing == "dense" and index == "separable")
    and not (boundary == "learned" and index != "separable")
]


def pair(dtype, n_dim, **settings):
    """A model by FFT and the same one by matrices."""
    settings = dict(n_modes=2, hidden_channels=8, n_layers=2) | settings
    by_fft = SFO(1, 2, n_dim, **settings).to(dtype)
    for kernel in by_fft.kernels:
        if getattr(kernel, "reflections", None) is not None:
            torch.nn.init.uniform_(kernel.reflections, -1, 1)
    by_matrices = SFO(1, 2, n_dim, **settings, transform="matmul").to(dtype)
    by_matrices.load_state_dict(by_fft.state_dict())
    return by_fft, by_matrices


def outcome(model, a):
    """Output, gradient of the input and of all parameters."""
    a = a.clone().requires_grad_()
    u = model(a)
    model.zero_grad()
    (u * torch.linspace(-1, 1, u.numel(), dtype=u.dtype).view(u.shape)).sum().backward()
    return [u.detach(), a.grad, torch.cat([p.grad.flatten() for p in model.parameters()])]


def deviation(one, other):
    return max(float((x - y).norm() / y.norm()) for x, y in zip(one, other, strict=True))


@pytest.mark.parametrize(
    "options",
    [
        # On three axes a few stand for all: every boundary once per mixing.
        pytest.param(o, marks=pytest.mark.slow)
        if o["n_dim"] == 3 and (o["index"], o["support"]) != ("multi", "two_sided")
        else o
        for o in OPTIONS
    ],
    ids=lambda o: "-".join(map(str, o.values())),
)
def test_equals_fft_with_gradients(options):
    a = torch.randn(3, 1, *SHAPES[options["n_dim"]], dtype=torch.float64)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        by_fft, by_matrices = pair(dtype, **options)
        found, truth = (outcome(model, a.to(dtype)) for model in (by_matrices, by_fft))
        assert deviation(found, truth) <= tolerance
        # In evaluation, where what is built from the weights is kept, and without gradients.
        with torch.no_grad():
            assert deviation([by_matrices.eval()(a.to(dtype))], truth[:1]) <= tolerance


@pytest.mark.parametrize("preset", [SFO, SFO.recommended])
@pytest.mark.parametrize("shape", [(256,), (140, 6), (8, 6, 8)])
def test_presets_equal_on_larger_grids(preset, shape):
    """Long separable axes of a domain with ends are transformed too."""
    settings = {} if preset is SFO else dict(periodic=False)
    by_fft = preset(1, 4, len(shape), n_modes=4, **settings)
    by_matrices = preset(1, 4, len(shape), n_modes=4, **settings, transform="matmul")
    by_matrices.load_state_dict(by_fft.state_dict())
    a = torch.randn(2, 1, *shape)
    with torch.no_grad():
        assert deviation([by_matrices(a)], [by_fft(a)]) <= 1e-5


def test_second_derivatives():
    for mixing in ("dense", "factored"):
        _, model = pair(torch.float64, 1, mixing=mixing, n_layers=1)
        a = torch.randn(1, 1, 6, dtype=torch.float64, requires_grad=True)
        torch.autograd.gradgradcheck(model, a)


def test_no_complex_number_and_no_fft_is_used():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Refuse(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            assert "fft" not in str(func), func
            for tensor in out if isinstance(out, (tuple, list)) else [out]:
                assert not (isinstance(tensor, torch.Tensor) and tensor.is_complex()), func
            return out

    for mixing, index in (("dense", "tied"), ("factored", "multi"), ("factored", "separable")):
        settings = dict(n_modes=3, hidden_channels=8, mixing=mixing, index=index)
        model = SFO(1, 1, 1, transform="matmul", **settings)
        a = torch.randn(2, 1, 16)
        model(a)  # The modes of a new grid are transformed once, on the CPU.
        with Refuse():
            model(a).sum().backward()


def test_changing_the_transform_changes_only_the_route():
    modes = KernelModes(KernelOptions(n_modes=3))
    by_fft = modes.spectrum((8,), torch.float64, torch.device("cpu"))
    modes.transform = "matmul"
    by_matrices = modes.spectrum((8,), torch.float64, torch.device("cpu"))
    assert by_fft.fourier is None
    assert by_matrices.fourier is not None
    assert torch.equal(by_fft.phi_hat, by_matrices.phi_hat)
    with pytest.raises(ValueError, match=r"`transform` must be .*fft.*matmul"):
        modes.transform = "dct"
