"""Whether a computation is one of plain numbers, or is watched, traced or transformed by torch."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling


def needs_plain_operators(*tensors: Tensor) -> bool:
    """Whether only torch's own operators will do, in place of compiled kernels and in-place work.

    So it is for compilers and tracers, under the transforms of `torch.func`, in forward mode, and
    for tensors without numbers of their own.

    Example:
        >>> def double(x):
        ...     return 2 * x if needs_plain_operators(x) else torch.from_numpy(2 * x.numpy())
        >>> torch.func.jvp(double, (torch.ones(1),), (torch.ones(1),))
        (tensor([2.]), tensor([2.]))
    """
    if is_compiling():
        return True
    return (
        is_transformed()
        or torch.jit.is_tracing()
        or any(t.is_meta or type(t) not in (Tensor, nn.Parameter) for t in tensors)
    )


def is_transformed() -> bool:
    """Whether a transform of torch.func or a forward-mode derivative is at work."""
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return True
    return torch.autograd.forward_ad._current_level >= 0


def fixed(shape: Sequence[int]) -> tuple[int, ...]:
    """Sizes as numbers: while torch.jit traces they are tensors, which must not be kept.

    Example:
        >>> fixed(torch.zeros(2, 3).shape)
        (2, 3)
    """
    return tuple(map(int, shape)) if torch.jit.is_tracing() else tuple(shape)


def is_observed(module: nn.Module) -> bool:
    """Whether somebody has hooks on a module, and so counts on it being called."""
    return bool(
        module._forward_hooks
        or module._forward_pre_hooks
        or module._backward_hooks
        or module._backward_pre_hooks
    )
