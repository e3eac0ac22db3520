import os
import socket

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from sfo import SFO


def build():
    torch.manual_seed(3)
    return SFO(1, 2, n_modes=4, hidden_channels=8, n_layers=2, skip=True)


def batch():
    return torch.randn(4, 1, 16, generator=torch.Generator().manual_seed(4))


def worker(rank, port, queue):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = DistributedDataParallel(build())
    model(batch()[2 * rank : 2 * rank + 2]).square().mean().backward()
    if rank == 0:
        queue.put([p.grad.numpy() for p in model.parameters()])
    dist.barrier()
    dist.destroy_process_group()


def test_two_processes_have_the_gradient_of_one():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    context = torch.multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    processes = [context.Process(target=worker, args=(rank, port, queue)) for rank in range(2)]
    for process in processes:
        process.start()
    grads = queue.get()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    model = build()
    model(batch()).square().mean().backward()
    for parameter, grad in zip(model.parameters(), grads, strict=True):
        torch.testing.assert_close(torch.from_numpy(grad), parameter.grad, rtol=1e-4, atol=1e-6)
