"""Sums of messages over neighbours, forward and backward, a cache of edges at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from sfo.models.neighbourhood import Edges, Points

silu_backward = torch.ops.aten.silu_backward

# Edges at a time hold this many numbers, 512 kB in float32: they stay in cache.
CHUNK = 2**17


def message_sums_by_definition(
    a: Points, b: Points, weight: Tensor, bias: Tensor, edges: Edges
) -> Points:
    """Σ_j σ(W σ(A_i + B_j) + b) over the neighbours j of each point i."""
    out = torch.zeros_like(a)
    for here, there in edges.regions:
        out[here] += F.silu(F.linear(F.silu(a[here] + b[there]), weight, bias))
    return out


class MessageSums(torch.autograd.Function):
    """The same with memory for A and B alone, in the same time or less.

    Messages are computed again when they are differentiated: to keep them takes several times
    the number of neighbours as much.
    """

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, weight: Tensor, bias: Tensor, edges: Edges
    ) -> Tensor:
        ctx.save_for_backward(a, b, weight, bias)
        ctx.edges = edges
        sums = _compiled_sums if _is_for_loops(a) else message_sums_by_definition
        return sums(a, b, weight, bias, edges)

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor | None, ...]:
        a, b, weight, bias = inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            out = message_sums_by_definition(a, b, weight, bias, ctx.edges)
            return (*torch.autograd.grad(out, inputs, dout, create_graph=True), None)
        gradients = _compiled_gradients if _is_for_loops(a) else _gradients
        return *gradients(a, b, weight, bias, ctx.edges, dout), None


def _gradients(
    a: Points, b: Points, weight: Tensor, bias: Tensor, edges: Edges, dout: Points
) -> tuple[Tensor, ...]:
    """The gradients of the message sums, offset by offset."""
    da, db, dweight, dbias = (torch.zeros_like(v) for v in (a, b, weight, bias))
    for here, there in edges.regions:
        x = a[here] + b[there]
        z = F.silu(x)
        dy = silu_backward(dout[here], F.linear(z, weight, bias)).flatten(0, -2)
        dweight += dy.T @ z.flatten(0, -2)
        dbias += dy.sum(0)
        dx = silu_backward((dy @ weight).view(x.shape), x)
        da[here] += dx
        db[there] += dx
    return da, db, dweight, dbias


def _is_for_loops(a: Tensor) -> bool:
    """Whether compiled loops, which run on one thread, beat torch's pointwise operations."""
    return a.device.type == "cpu" and a.dtype == torch.float32 and torch.get_num_threads() < 4


def _compiled_sums(a: Points, b: Points, weight: Tensor, bias: Tensor, edges: Edges) -> Points:
    """The message sums by compiled loops, a few edges at a time."""
    from sfo.models.compiled.message_loops import add_messages, hidden

    out = torch.zeros_like(a)
    rows_a, rows_b, rows_out = (_rows(v) for v in (a, b, out))
    tiled_bias = bias.repeat(a.shape[-2]).numpy()
    for receivers, senders, z, y in _chunks(a, edges):
        hidden(receivers, senders, rows_a, rows_b, _rows(z))
        torch.matmul(z, weight.T, out=y)
        add_messages(receivers, _rows(y), tiled_bias, rows_out)
    return out


def _compiled_gradients(
    a: Points, b: Points, weight: Tensor, bias: Tensor, edges: Edges, dout: Points
) -> tuple[Tensor, ...]:
    """The gradients by compiled loops, a few edges at a time."""
    from sfo.models.compiled.message_loops import add_hidden_gradients, hidden, message_gradients

    da, db, dweight, dbias = (torch.zeros_like(v) for v in (a, b, weight, bias))
    rows_a, rows_b, rows_da, rows_db = (_rows(v) for v in (a, b, da, db))
    rows_dout = _rows(dout.contiguous())
    tiled_bias = bias.repeat(a.shape[-2]).numpy()
    for receivers, senders, z, y in _chunks(a, edges):
        hidden(receivers, senders, rows_a, rows_b, _rows(z))
        torch.matmul(z, weight.T, out=y)
        message_gradients(receivers, _rows(y), tiled_bias, rows_dout)
        dy = y.flatten(0, 1)
        dweight += dy.T @ z.flatten(0, 1)
        dbias += dy.sum(0)
        dz = torch.matmul(y, weight, out=z)
        add_hidden_gradients(receivers, senders, rows_a, rows_b, _rows(dz), rows_da, rows_db)
    return da, db, dweight, dbias


def _rows(v: Points) -> np.ndarray:
    return v.detach().flatten(-2).flatten(0, -2).numpy()


def _chunks(a: Points, edges: Edges) -> Iterator[tuple[np.ndarray, np.ndarray, Tensor, Tensor]]:
    """Some edges in turn, and room for two vectors on each of them."""
    receivers, senders = edges.pairs
    batch, channels = a.shape[-2:]
    size = max(1, CHUNK // (batch * channels))
    z, y = a.new_empty(2, size, batch, channels)
    for start in range(0, len(receivers), size):
        part = slice(start, start + size)
        count = len(receivers[part])
        yield receivers[part], senders[part], z[:count], y[:count]
