import pytest
import torch
from torch.nn import functional as F

from sfo.models.blocks import ChannelNorm, Lift, Pointwise, coordinates


def test_channel_norm_is_layer_norm_over_channels():
    norm = ChannelNorm(6).double()
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    v = torch.randn(3, 6, 4, 5, dtype=torch.float64, requires_grad=True)
    truth = F.layer_norm(v.movedim(1, -1), (6,), norm.weight, norm.bias).movedim(-1, 1)
    torch.testing.assert_close(norm(v), truth)
    weights = torch.randn_like(v)
    inputs = (v, norm.weight, norm.bias)
    ours = torch.autograd.grad((norm(v) * weights).sum(), inputs)
    for a, b in zip(ours, torch.autograd.grad((truth * weights).sum(), inputs), strict=True):
        torch.testing.assert_close(a, b)
    small = v.detach()[:1, :, :1, :2].clone().requires_grad_()
    assert torch.autograd.gradgradcheck(norm, (small,))


def test_pointwise_is_linear_in_the_channels():
    layer = Pointwise(3, 5)
    v = torch.randn(2, 3, 4, 6)
    truth = F.linear(v.movedim(1, -1), layer.weight, layer.bias).movedim(-1, 1)
    torch.testing.assert_close(layer(v), truth)


@pytest.mark.parametrize(("shape", "kernel"), [((9,), 1), ((8,), 3), ((6, 7), 5), ((5, 6, 7), 5)])
def test_lift_is_a_circular_convolution_of_input_and_coordinates(shape, kernel):
    n_dim = len(shape)
    lift = Lift(2, 16, n_dim, kernel=kernel, norm="group").double()
    a = torch.randn(3, 2, *shape, dtype=torch.float64)
    lines = [torch.linspace(0, 1, n, dtype=torch.float64) for n in shape]
    grid = torch.stack(torch.meshgrid(*lines, indexing="ij")).expand(3, *[-1] * (n_dim + 1))
    torch.testing.assert_close(coordinates(a), grid)
    weight = lift.mix.weight.view(16, 2 + n_dim, *[kernel] * n_dim)
    padded = F.pad(torch.cat([a, grid], dim=1), (kernel // 2,) * (2 * n_dim), mode="circular")
    convolve = (F.conv1d, F.conv2d, F.conv3d)[n_dim - 1]
    truth = F.group_norm(convolve(padded, weight, lift.mix.bias), 8)
    torch.testing.assert_close(lift(a), truth)
