"""A model in parts, one in every process, and its state put together again for a checkpoint."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from lightning_fabric import Fabric
from lightning_fabric.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from sfo.models.operator import Operator
from sfo.models.spectral_conv import SpectralConv

T = TypeVar("T")


def shard(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Leave in every process an even part of each weight, in place.

    A layer's weights are gathered when it is called, forward or backward, and let go after it;
    those outside of layers, when the model is. One exchange is of one type, so that complex
    weights are gathered apart.

    Args:
        model: An `Operator`, or a wrapper of one.
        mesh: All processes, in whatever arrangement.
    """
    operators = [part for part in model.modules() if isinstance(part, Operator)]
    spectral = [part for part in model.modules() if isinstance(part, SpectralConv)]
    layers = [layer for operator in operators for layer in getattr(operator, "layers", ())]
    apart = {weight for part in spectral for weight in part.parameters()}
    if any(weight.is_complex() for weight in {*model.parameters()} - apart):
        raise ValueError(
            f"The strategy 'fsdp' cannot split {type(operators[0]).__name__}: its complex weights "
            "are not in modules of their own. Train it with the strategy 'ddp'."
        )
    line = init_device_mesh(mesh.device_type, (mesh.size(),))
    for part in (*spectral, *layers, model):
        # Also the model itself: else its weights stay whole after a forward pass alone.
        fully_shard(part, mesh=line, reshard_after_forward=True)
    return model


def move_and_shard(fabric: Fabric, model: nn.Module) -> None:
    """Convert, move and shard a model that is not trained, in place, as Fabric does the other."""
    fabric.strategy.precision.convert_module(model)
    fabric.to_device(model)
    if isinstance(fabric.strategy, ModelParallelStrategy):
        shard(model, fabric.strategy.device_mesh)


def gather_state(fabric: Fabric, state: T) -> T:
    """A state with its sharded tensors put together; in all processes but the first, without them.

    Every process must call it, with a tree of the same tensors.
    """
    return _map_tree(state, lambda tensor, _: _gather_tensor(fabric, tensor))


def _gather_tensor(fabric: Fabric, tensor: Tensor) -> Tensor | None:
    if not isinstance(tensor, DTensor):
        return tensor
    full = tensor.full_tensor()
    return full.cpu() if fabric.is_global_zero else None


def shard_state(state: T, like: Any) -> T:
    """What `gather_state` has put together, as this process' parts again.

    Args:
        state: The same in every process.
        like: A tree of sharded tensors; one in place of a branch is the pattern for all tensors
            of that branch that have its shape.
    """
    return _map_tree(state, _shard_tensor, like)


def _shard_tensor(tensor: Tensor, like: Any) -> Tensor:
    if not isinstance(like, DTensor) or tensor.shape != like.shape:
        return tensor
    here = tensor.to(like.device)
    return distribute_tensor(here, like.device_mesh, like.placements, src_data_rank=None)


def _map_tree(tree: Any, change: Callable[[Tensor, Any], Any], like: Any = None) -> Any:
    """A copy of a tree of dicts with its tensors changed, each along with its like."""
    if isinstance(tree, Tensor):
        return change(tree, like)
    if not isinstance(tree, dict):
        return tree
    # Of the same class and attributes: a state dict carries versions beside its entries.
    changed = copy.copy(tree)
    for key, value in tree.items():
        changed[key] = _map_tree(value, change, like.get(key) if isinstance(like, dict) else like)
    return changed
