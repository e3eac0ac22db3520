"""All models forward and backward on fake CUDA tensors, which have a device but no numbers.

    python fake_cuda.py guard.so NAME …

Run in a process of its own: with the guard, which a torch without CUDA lacks, torch believes in a
device for good.
"""

import ctypes
import sys
import warnings

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from sfo.training.loss import relative_l2

GUARD = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace {
C10_REGISTER_GUARD_IMPL(CUDA, c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA>);
}
"""


def fake(values):
    return torch.empty(values.shape, dtype=values.dtype, device="cuda")


def put(model):
    """Replace all weights and buffers by fake ones on the device, as `model.cuda()` would."""
    for part in model.modules():
        for key, weight in part._parameters.items():
            if weight is not None:
                part._parameters[key] = nn.Parameter(fake(weight))
        for key, values in part._buffers.items():
            if values is not None:
                part._buffers[key] = fake(values)
    return model


def check(name, shape):
    from test_models import small

    model = small(name, 2, 3, shape)
    with FakeTensorMode(allow_non_fake_inputs=False):
        put(model)
        a = torch.empty(2, 2, *shape, device="cuda")
        u = torch.empty(2, 3, *shape, device="cuda")
        prediction = model(a)
        assert prediction.device.type == "cuda"
        relative_l2(prediction, u).mean().backward()
        for key, weight in model.named_parameters():
            assert weight.grad is not None, key
            assert weight.grad.device.type == "cuda", key


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    ctypes.CDLL(sys.argv[1])
    for name in sys.argv[2:]:
        for shape in ((32,), (16, 16)):
            try:
                check(name, shape)
            except Exception as error:
                print(name, shape, f"{type(error).__name__}: {error}".splitlines()[0])
