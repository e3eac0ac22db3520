"""Attention among slices of a field, forward and backward in few passes over points × slices."""

from math import e, log2
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from sfo.models.compiled.threads import on_all_threads
from sfo.transforms import needs_plain_operators

HeadPoints = Float[Tensor, "batch head width points"]
Matrix = Float[Tensor, "width width"]

EMPTY = 1e-5
"""Added to what a slice holds of all points, for slices that hold nothing."""


def slice_attention(
    x: HeadPoints,
    f: HeadPoints,
    weight: Float[Tensor, "head slice width"],
    bias: Float[Tensor, "head slice"],
    query: Matrix,
    key: Matrix,
    value: Matrix,
) -> HeadPoints:
    """Points are gathered into slices, the slices attend to each other, and are spread out again.

        w_g(x) = softmax_g(W_g x + b_g),    s_g = Σ_x w_g(x) f(x) / (Σ_x w_g(x) + 1e-5)
        out(x) = Σ_g w_g(x) s'_g,    s' = softmax((Q s)(K s)ᵀ / √width) V s

    in each of the heads. On a CPU in float32 compiled loops do a part of the work.

    Example:
        >>> x, f = torch.randn(2, 1, 1, 4, 100)
        >>> one_slice, same = (torch.zeros(1, 1, 4), torch.zeros(1, 1)), torch.eye(4)
        >>> out = slice_attention(x, f, *one_slice, same, same, same)
        >>> torch.allclose(out, f.mean(-1, keepdim=True), atol=1e-6)  # the mean over the domain
        True
    """
    arguments = (x, f, weight, bias, query, key, value)
    kinds = {(part.device.type, part.dtype) for part in arguments}
    if kinds == {("cpu", torch.float32)} and not needs_plain_operators(x, weight):
        return _SliceAttention.apply(*arguments)
    return slice_attention_by_definition(*arguments)


def slice_attention_by_definition(
    x: HeadPoints,
    f: HeadPoints,
    weight: Float[Tensor, "head slice width"],
    bias: Float[Tensor, "head slice"],
    query: Matrix,
    key: Matrix,
    value: Matrix,
) -> HeadPoints:
    """The same in plain torch: for other devices and precisions, and second derivatives."""
    weights = slice_weights(x, weight, bias)
    tokens = (f @ weights.mT / (weights.sum(-1)[:, :, None] + EMPTY)).mT
    q, k, v = (F.linear(tokens, matrix) for matrix in (query, key, value))
    # Written out, because torch's fused attention has no second derivatives. Slices are few.
    attended = (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v
    return attended.mT @ weights


def slice_weights(
    x: HeadPoints, weight: Float[Tensor, "head slice width"], bias: Float[Tensor, "head slice"]
) -> Float[Tensor, "batch head slice points"]:
    """How much of each point belongs to each slice, 1 in all."""
    return (weight @ x + bias[..., None]).softmax(-2)


class _SliceAttention(torch.autograd.Function):
    """The same on a CPU in float32, by compiled loops and matrix products.

    A softmax is kept as its powers p and their inverse sum r at each point, w = p r: r is
    multiplied with the narrow factors of products, never with p. If the gradient of w is a
    product A B of narrow factors, that of the exponents is

        w (A B − ρ) = p ([A, −1] [B r; ρ r]),    ρ = Σ w A B = Σ_c B_c (Aᵀ w)_c,

    and Aᵀ w is known or needed anyway. Slices attend to each other in the same way as points
    to the slices.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        f: Tensor,
        weight: Tensor,
        bias: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
    ) -> Tensor:
        batch, _, width, _ = x.shape
        # Biases, and sums of weights, are products with ones.
        x1, f1 = (F.pad(v, (0, 0, 0, 1), value=1.0).flatten(0, 1) for v in (x, f))
        slices = torch.cat([weight, bias[..., None]], -1).repeat(batch, 1, 1)
        p, r = weigh(slices, x1)
        f1 *= r
        sums = p @ f1.mT
        mass = sums[..., -1:] + EMPTY
        tokens = sums[..., :-1] / mass
        q, k, v = (tokens @ matrix.T for matrix in (query, key * width**-0.5, value))
        p_tokens, r_tokens = weigh(k, q.mT.contiguous())
        attended = v.mT @ p_tokens * r_tokens
        out = (attended @ p).mul_(r)
        kept = (x1, f1, slices, p, r, mass, tokens, q, k, v, p_tokens, r_tokens, attended, out)
        ctx.save_for_backward(x, f, weight, bias, query, key, value, *kept)
        return out.view(x.shape)

    @staticmethod
    def backward(ctx: Any, dout: Tensor) -> tuple[Tensor, ...]:
        inputs, kept = ctx.saved_tensors[:7], ctx.saved_tensors[7:]
        if torch.is_grad_enabled():
            out = slice_attention_by_definition(*inputs)
            return torch.autograd.grad(out, inputs, dout, create_graph=True)
        x, _, weight, _, query, key, value = inputs
        x1, f1, slices, p, r, mass, tokens, q, k, v, p_tokens, r_tokens, attended, out = kept
        dout = dout.flatten(0, 1)
        rho = (dout * out).sum(1, keepdim=True)
        dout = dout * r
        # Among the slices.
        dattended = (p @ dout.mT).mT
        rho_tokens = (dattended * attended).sum(1, keepdim=True)
        dattended = dattended * r_tokens
        # Here and below in the order that the matrix library is fastest with.
        dv = (dattended @ p_tokens.mT).mT
        dscores = exponent_gradient(p_tokens, [v], [dattended], rho_tokens * r_tokens)
        dk, dq = (q.mT @ dscores.mT).mT, (k.mT @ dscores).mT
        scale = q.shape[-1] ** -0.5
        dtokens = dq @ query + dk @ (key * scale) + dv @ value
        dquery, dkey, dvalue = ((g.flatten(0, 1).T @ tokens.flatten(0, 1)) for g in (dq, dk, dv))
        # Between points and slices.
        dsums = torch.cat([dtokens, -(dtokens * tokens).sum(-1, keepdim=True)], -1) / mass
        df1 = dsums.mT @ p
        rho += (f1 * df1).sum(1, keepdim=True)
        dlogits = exponent_gradient(p, [attended.mT, dsums], [dout, f1], rho * r)
        dslices = (dlogits @ x1.mT).view(len(x), *weight.shape[:2], -1).sum(0)
        dx = slices[..., :-1].mT @ dlogits
        df = df1[:, :-1] * r
        return (
            dx.view(x.shape),
            df.view(x.shape),
            dslices[..., :-1],
            dslices[..., -1],
            dquery,
            dkey * scale,
            dvalue,
        )


def weigh(
    keys: Float[Tensor, "rows keys width"], x: Float[Tensor, "rows width points"]
) -> tuple[Float[Tensor, "rows keys points"], Float[Tensor, "rows 1 points"]]:
    """The powers of softmax(keys x) over the keys, and their inverse sums."""
    from sfo.models.compiled.softmax_loops import powers

    p = x.new_empty(*keys.shape[:2], x.shape[2])
    r = x.new_empty(len(x), 1, x.shape[2])
    arrays = [v.detach().numpy() for v in (keys * log2(e), x, p, r)]
    on_all_threads(lambda _, start, stop: powers((start, stop), *arrays), len(x))
    return p, r


def exponent_gradient(p: Tensor, a: list[Tensor], b: list[Tensor], rho_r: Tensor) -> Tensor:
    """p ([A, −1] [B r; ρ r]) from the parts of A and of B r."""
    minus_one = p.new_full((*p.shape[:2], 1), -1.0)
    return torch.bmm(torch.cat([*a, minus_one], -1), torch.cat([*b, rho_r], 1)).mul_(p)
