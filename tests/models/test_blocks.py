import torch
from torch.nn import functional as F

from sfo.models.blocks import ChannelNorm, Pointwise


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
