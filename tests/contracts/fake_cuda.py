"""All models forward and backward on fake CUDA tensors, which have a device but no numbers.

    python fake_cuda.py fake_cuda.so NAME …

In a process of its own: with the library, which must come before torch, torch believes in a
device. A model that mixes tensors of the device with ones on the CPU is refused by torch itself.
"""

import ctypes
import sys
import warnings

ctypes.CDLL(sys.argv[1])

import torch  # noqa: E402
from test_models import small  # noqa: E402
from torch import nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from sfo.training.loss import relative_l2  # noqa: E402


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


def check(name, shape):
    model = small(name, 2, 3, shape)
    with FakeTensorMode(allow_non_fake_inputs=False):
        put(model)
        prediction = model(torch.empty(2, 2, *shape, device="cuda"))
        assert prediction.device.type == "cuda"
        relative_l2(prediction, torch.empty(2, 3, *shape, device="cuda")).mean().backward()
        for key, weight in model.named_parameters():
            assert weight.grad is not None, key
            assert weight.grad.device.type == "cuda", key


warnings.simplefilter("ignore")
for name in sys.argv[2:]:
    for shape in ((32,), (16, 16)):
        try:
            check(name, shape)
        except Exception as error:
            print(name, shape, f"{type(error).__name__}: {error}".splitlines()[0])
print("checked")
