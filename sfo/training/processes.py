"""One process or many: how they start, and how they come to the same decision.

Every process holds the whole model, or with the strategy "fsdp" a part of every weight. What only
one of them sees, such as its share of the loss, a signal, or a disk that is full, is passed on to
all before anything follows from it; so all stop at the same step, and none is left waiting for
another.
"""

import os
from collections.abc import Callable
from itertools import chain
from typing import TypeVar, cast

import torch
from jaxtyping import Float, Shaped
from lightning_fabric import Fabric
from lightning_fabric.plugins import DoublePrecision
from lightning_fabric.plugins.environments import LightningEnvironment
from lightning_fabric.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from sfo.machine import usable_cores
from sfo.training.config import Precision
from sfo.training.devices import Devices
from sfo.training.sharding import shard

T = TypeVar("T")


def start(
    precision: Precision,
    *,
    accelerator: str = "auto",
    devices: int | str = 1,
    num_nodes: int = 1,
    strategy: str = "auto",
) -> Fabric:
    """Start the processes; under torchrun, which has started them, join the others."""
    if strategy not in ("auto", "ddp", "fsdp"):
        raise ValueError(
            "`strategy` must be 'auto' or 'ddp', with the whole model in every process, or "
            f"'fsdp', with a part of it in each, got {strategy!r}."
        )
    sharded = strategy == "fsdp"
    if sharded and precision == "16-mixed":
        raise ValueError(
            "`precision` must not be '16-mixed' with the strategy 'fsdp', which does not scale "
            "gradients; use 'bf16-mixed', or the strategy 'ddp'."
        )
    taken: int | list[int]
    is_torchrun = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    if is_torchrun:
        taken = int(os.environ["LOCAL_WORLD_SIZE"])
        num_nodes = int(os.environ["WORLD_SIZE"]) // taken
    else:
        chosen = Devices.of(accelerator, devices)
        accelerator = chosen.kind
        taken = (chosen.number or 1) if chosen.ids is None else list(chosen.ids)
        on_cores = chosen.kind == "cpu" or not torch.cuda.is_available()
        if isinstance(taken, int) and on_cores and taken > usable_cores():
            raise ValueError(
                f"`devices` must be in 1..{usable_cores()}, the cores of this machine, got {taken}."
            )
    double = sharded and precision == "64-true"
    # Who is alone must not look for the other tasks of the Slurm job that it may be a part of.
    is_alone = num_nodes == 1 and (taken == 1 or (isinstance(taken, list) and len(taken) == 1))
    try:
        fabric = Fabric(
            accelerator=accelerator,
            devices=taken,
            num_nodes=num_nodes,
            strategy=ModelParallelStrategy(shard) if sharded else strategy,
            plugins=[
                # By its name, Fabric refuses float64 for a sharded model, which works all the same.
                *([DoublePrecision()] if double else []),
                *([LightningEnvironment()] if is_alone and not is_torchrun else []),
            ],
            precision=None if double else precision,
        )
    except (RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"Cannot train with accelerator={accelerator!r} and devices={devices!r}: {reason}"
        ) from error
    _check_meeting_place(fabric, num_nodes)
    if restarts() and fabric.world_size > 1 == num_nodes:
        _rejoin_after_restart(fabric)
    fabric.launch()
    return fabric


def _check_meeting_place(fabric: Fabric, num_nodes: int) -> None:
    """Refuse several machines that do not know of each other: they would wait for half an hour."""
    place = getattr(fabric.strategy, "cluster_environment", None)
    is_told = not isinstance(place, LightningEnvironment) or "MASTER_ADDR" in os.environ
    if num_nodes > 1 and not is_told:
        raise ValueError(
            f"`num_nodes` must be 1 where nothing says where the other machines are, got "
            f"{num_nodes}; start the command by torchrun or Slurm, or set MASTER_ADDR, MASTER_PORT "
            "and NODE_RANK on each machine."
        )


def restarts() -> int:
    """How often torchrun has started these processes again, after one of them died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))


def _rejoin_after_restart(fabric: Fabric) -> None:
    """Join the others under a name of this restart's own.

    torchrun keeps one store for all restarts, where whoever is early finds the addresses of
    processes that are dead and waits for them (pytorch issue 135712). Over several machines the
    count need not be the same; there, set TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for torchrun.
    """
    if torch.distributed.is_initialized():
        return
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    agent_has_it = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    is_first = fabric.global_rank == 0 and not agent_has_it
    store = torch.distributed.TCPStore(address, port, fabric.world_size, is_first)
    torch.distributed.init_process_group(
        "nccl" if fabric.device.type == "cuda" else "gloo",
        store=torch.distributed.PrefixStore(f"restart-{restarts()}", store),
        rank=fabric.global_rank,
        world_size=fabric.world_size,
    )


def gather(fabric: Fabric, *values: float) -> Float[Tensor, "process value"]:
    """The values of every process, in float64."""
    return gather_rows(fabric, torch.tensor(values, dtype=torch.float64))


def gather_rows(fabric: Fabric, row: Shaped[Tensor, " value"]) -> Shaped[Tensor, "process value"]:
    """A row of every process, on the CPU."""
    if fabric.world_size == 1:
        return row[None].cpu()
    row = row.to(fabric.device)
    rows = [torch.empty_like(row) for _ in range(fabric.world_size)]
    torch.distributed.all_gather(rows, row)
    return torch.stack(rows).cpu()


def on_rank_zero(fabric: Fabric, action: Callable[[], T]) -> T:
    """Let the first process do something; all get its answer, or raise its ValueError."""
    answer: T | None = None
    error: ValueError | None = None
    if fabric.is_global_zero:
        try:
            answer = action()
        except ValueError as raised:
            error = raised
    if fabric.world_size > 1:
        message = None if error is None else str(error)
        answer, message = fabric.broadcast((answer, message))
        if message is not None and error is None:
            error = ValueError(message)
    if error is not None:
        raise error
    return cast(T, answer)


def is_finite(fabric: Fabric, model: nn.Module) -> bool:
    """Whether all weights and buffers are numbers, in all processes."""
    tensors = chain(model.parameters(), model.buffers())
    mine = (t.to_local() if isinstance(t, DTensor) else t for t in tensors)
    return bool(gather(fabric, all(bool(t.isfinite().all()) for t in mine)).all())


def share_buffers(fabric: Fabric, model: nn.Module) -> None:
    """Take the first process' buffers, as the running means of a norm, in all of them."""
    if fabric.world_size > 1:
        for buffer in model.buffers():
            torch.distributed.broadcast(buffer, 0)


def random_states(fabric: Fabric) -> dict[str, Tensor]:
    """The states of torch's generators in every process, one per row."""
    states = {"cpu": torch.get_rng_state()}
    if fabric.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(fabric.device)
    return {kind: gather_rows(fabric, state) for kind, state in states.items()}


def set_random_states(fabric: Fabric, states: dict[str, Tensor]) -> None:
    """Go on from the states of `random_states`; a process that is new takes the first's."""
    for kind, rows in states.items():
        row = rows[fabric.global_rank if fabric.global_rank < len(rows) else 0].clone()
        if kind == "cpu":
            torch.set_rng_state(row)
        elif fabric.device.type == "cuda":
            torch.cuda.set_rng_state(row, fabric.device)
