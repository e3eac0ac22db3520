"""Muon: matrices take orthogonal steps, all other parameters those of Adam."""

from collections import defaultdict
from collections.abc import Callable
from math import sqrt
from typing import Any

import torch
from jaxtyping import Inexact
from torch import Tensor, nn
from torch.optim.adamw import adamw

from sfo.models.matrices import Layout, as_matrices, from_matrices, matrix_layouts, matrix_sides

A, B, C = 3.4445, -4.7750, 2.0315
"""Coefficients of the iteration: steep at 0, so that five steps lift small singular values."""
ITERATIONS = 5
TINY = 1e-7
"""A matrix with a smaller norm is not scaled up to 1, as Adam's epsilon damps small gradients."""
WIDE = 3
"""With so many columns per row, the iteration is quicker on the rows' products with each other."""
CHUNK = 2**17
"""So many numbers go through the iteration at once, half a megabyte in float32, to fit a cache."""

Matrices = Inexact[Tensor, "batch rows columns"]


class Muon(torch.optim.Optimizer):
    """Momentum for matrices whose singular values are brought close to 1 before every step.

        M ← μ M + (1 − μ) G,    G' = μ M + (1 − μ) G
        W ← (1 − η λ) W − 0.2 η √max(rows, columns) · orthogonalise(G')

    η is the learning rate, λ the weight decay, μ the momentum. The factor makes a step about as
    long as one of Adam, so that one learning rate serves both: parameters that are not matrices,
    and only those, take the steps of AdamW (Jordan et al., "Muon: An optimizer for hidden layers
    in neural networks", 2024; Liu et al., "Muon is scalable for LLM training", 2025). Which
    parameters are matrices, real or complex, one or a batch of them, `matrix_layouts` defines.
    torch's own Muon takes neither batches nor complex matrices, and no other parameters.

    Args:
        model: Its parameters are optimised, in their order.
        lr: Learning rate η.
        weight_decay: Weight decay λ of all parameters, apart from the gradient as in AdamW.
        momentum: Momentum μ of the matrices.
        betas: Decay of Adam's two means.
        eps: What Adam adds to the root of the second mean.

    Example:
        >>> model = nn.Linear(3, 2)
        >>> optimizer = Muon(model, lr=1e-2)
        >>> model(torch.ones(1, 3)).square().sum().backward()
        >>> optimizer.step()
        >>> [sorted(state) for state in optimizer.state.values()]
        [['momentum_buffer'], ['exp_avg', 'exp_avg_sq', 'step']]
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float = 1e-3,
        *,
        weight_decay: float = 0.0,
        momentum: float = 0.95,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        # In the group, so that a checkpoint has them: a resumed run continues as it began.
        group = dict(params=list(model.parameters()), layouts=list(matrix_layouts(model).values()))
        # Fused: all of Adam's parameters in one kernel.
        defaults = dict(
            lr=lr, weight_decay=weight_decay, momentum=momentum, betas=betas, eps=eps, fused=True
        )
        super().__init__([group], defaults)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change all parameters that have gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            both = zip(group["params"], group["layouts"], strict=True)
            pairs = [(p, layout) for p, layout in both if p.grad is not None]
            self._step_matrices([pair for pair in pairs if pair[1] is not None], group)
            self._step_others([p for p, layout in pairs if layout is None], group)
        return loss

    def _step_matrices(self, pairs: list[tuple[Tensor, Layout]], group: dict[str, Any]) -> None:
        if not pairs:
            return
        parameters = [p for p, _ in pairs]
        gradients: Any = [p.grad for p in parameters]
        for p in parameters:
            if not self.state[p]:
                self.state[p]["momentum_buffer"] = torch.zeros_like(p)
        means = [self.state[p]["momentum_buffer"] for p in parameters]
        torch._foreach_lerp_(means, gradients, 1 - group["momentum"])
        directions = torch._foreach_lerp(gradients, means, group["momentum"])
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - group["lr"] * group["weight_decay"])
        updates = _updates(list(directions), [layout for _, layout in pairs])
        for (p, layout), update in zip(pairs, updates, strict=True):
            scale = 0.2 * sqrt(max(matrix_sides(p.shape, layout)))
            p.add_(update, alpha=-group["lr"] * scale)

    def _step_others(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        if not parameters:
            return
        for p in parameters:
            if not self.state[p]:
                self.state[p].update(
                    step=torch.zeros((), dtype=torch.float32, device=p.device),
                    exp_avg=torch.zeros_like(p),
                    exp_avg_sq=torch.zeros_like(p),
                )
        states = [self.state[p] for p in parameters]
        has_complex = any(p.is_complex() for p in parameters)
        adamw(
            parameters,
            [p.grad for p in parameters if p.grad is not None],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            foreach=False,
            fused=group["fused"] and not has_complex,
            has_complex=has_complex,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=False,
        )


def _updates(directions: list[Tensor], layouts: list[Layout]) -> list[Tensor]:
    """The orthogonalised directions.

    Matrices of one size go through the iteration together, wide ones along with the transposes
    of tall ones: on small matrices, calls take more time than numbers.
    """
    alike = defaultdict(list)
    for i, (direction, layout) in enumerate(zip(directions, layouts, strict=True)):
        wide = as_matrices(direction, layout)
        is_tall = wide.shape[1] > wide.shape[2]
        wide = wide.mT if is_tall else wide
        alike[wide.shape[1:], wide.dtype, wide.device].append((i, is_tall, wide))
    updates = list(directions)
    for members in alike.values():
        stack = torch.cat([wide for *_, wide in members])
        for part in stack.split(max(1, CHUNK // stack[0].numel())):
            part.copy_(orthogonalise(part))
        done = stack.split([len(wide) for *_, wide in members])
        for (i, is_tall, _), wide in zip(members, done, strict=True):
            matrices = wide.mT if is_tall else wide
            updates[i] = from_matrices(matrices, layouts[i], directions[i].shape)
    return updates


def orthogonalise(g: Matrices) -> Matrices:
    """U Vᴴ of G = U S Vᴴ, nearly: by five steps of the Newton–Schulz iteration.

        X ← a X + (b A + c A²) X,    A = X Xᴴ,    X = G / ‖G‖ at the start (Frobenius)

    A step maps every singular value s of X to a s + b s³ + c s⁵ and leaves U and V alone. Singular
    values from 0.0015 ‖G‖ on end between 0.68 and 1.21, smaller ones below. The arithmetic is in
    single precision at least.
    """
    x = g.to(torch.promote_types(g.dtype, torch.float32))
    is_tall = x.shape[1] > x.shape[2]
    x = (x.mT if is_tall else x).contiguous()
    # torch takes the norm of complex numbers a hundred times as slowly as that of their parts.
    parts = torch.view_as_real(x) if x.is_complex() else x
    x = x / parts.flatten(1).norm(dim=1).clamp(min=TINY)[:, None, None]
    x = _iterate_products(x) if x.shape[2] >= WIDE * x.shape[1] else _iterate(x)
    return (x.mT if is_tall else x).to(g.dtype)


def _iterate(x: Matrices) -> Matrices:
    for _ in range(ITERATIONS):
        a = x @ x.mH
        x = torch.baddbmm(x, torch.baddbmm(a, a, a, beta=B, alpha=C), x, beta=A)
    return x


def _iterate_products(x: Matrices) -> Matrices:
    """The same by X Xᴴ alone: with P = a + b A + c A², X ← P X means A ← P A P."""
    a = x @ x.mH
    p = product = _polynomial(a)
    for _ in range(ITERATIONS - 1):
        a = p @ a @ p
        p = _polynomial(a)
        product = p @ product
    return product @ x


def _polynomial(a: Matrices) -> Matrices:
    p = torch.baddbmm(a, a, a, beta=B, alpha=C)
    p.diagonal(dim1=1, dim2=2).add_(A)
    return p
