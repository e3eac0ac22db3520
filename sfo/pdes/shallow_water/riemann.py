"""Water at the faces between cells: limited slopes lead up to them, an HLL flux goes through."""

import torch
from torch import Tensor

Side = tuple[Tensor, Tensor, Tensor]
"""Depth h, velocity u across the face and v along it, on one side of every face."""


def half_slope(cells: Tensor, dim: int) -> Tensor:
    """Half the change of all but the two outer cells along `dim`, limited.

        ½ minmod(2 (q − q₋), (q₊ − q₋) / 2, 2 (q₊ − q))

    This is the monotonised central limiter: q ± half_slope lies between the cell's value q and
    its neighbours' q₋ and q₊; at an extremum it is 0.

    Example:
        >>> half_slope(torch.tensor([0.0, 1.0, 3.0, 3.0, 4.0]), dim=0)
        tensor([0.7500, 0.0000, 0.0000])
    """
    n = cells.shape[dim] - 2
    change = cells.diff(dim=dim)
    backward, forward = change.narrow(dim, 0, n), change.narrow(dim, 1, n)
    central = cells.narrow(dim, 2, n) - cells.narrow(dim, 0, n)
    lowest = torch.maximum(backward, forward).clamp(max=0)
    highest = torch.minimum(backward, forward).clamp(min=0)
    return (central / 4).clamp(lowest, highest)


def hll_flux(left: Side, right: Side, gravity: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The fluxes of h, hu and hv through faces between two states of water.

        F = F_l + s_l (s_r (q_r − q_l) − (F_r − F_l)) / (s_r − s_l)

    for q = (h, hu) and F(q) = (hu, hu² + g h²/2), with s_l ≤ 0 ≤ s_r, the slowest and the
    fastest of u ± √(g h) on both sides (Harten, Lax & van Leer, 1983). The velocity along the
    face is carried by the mass. Nothing flows out of a dry side.

    Returns:
        The flux of mass; that of hu less the pressure g h²/2 of the left side, and less that of
        the right side; that of hv. All are exactly 0 between equal depths at rest.
    """
    (h_l, u_l, v_l), (h_r, u_r, v_r) = left, right
    # Between dry sides 0 would be a root without a derivative, and 0 / 0 below.
    smallest = torch.finfo(h_l.dtype).tiny
    c_l, c_r = ((gravity * h).clamp(min=smallest).sqrt() for h in (h_l, h_r))
    s_l = torch.minimum(u_l - c_l, u_r - c_r).clamp(max=0)
    s_r = torch.maximum(u_l + c_l, u_r + c_r).clamp(min=0)
    share = s_l / (s_r - s_l)
    q_l, q_r = h_l * u_l, h_r * u_r
    carried_l, carried_r = q_l * u_l, q_r * u_r
    pressure_jump = gravity / 2 * (h_r + h_l) * (h_r - h_l)
    mass = q_l + share * (s_r * (h_r - h_l) - (q_r - q_l))
    normal_l = carried_l + share * (s_r * (q_r - q_l) - (carried_r - carried_l + pressure_jump))
    transverse = mass * torch.where(mass > 0, v_l, v_r)
    return mass, normal_l, normal_l - pressure_jump, transverse
