"""The one rule that every basis shares."""

import operator


def check_size(n: int, n_modes: int) -> tuple[int, int]:
    """Return both as plain integers, or say which rule they break.

    Example:
        >>> check_size(4, 3)
        (4, 3)
    """
    n, n_modes = operator.index(n), operator.index(n_modes)
    if n < 1:
        raise ValueError(f"`n` must be at least 1 point, got n={n}.")
    if not 1 <= n_modes <= n:
        raise ValueError(
            f"`n_modes` must be in 1..n, got n_modes={n_modes} for n={n} points. "
            "On a coarse grid, pass n_modes=min(n_modes, n)."
        )
    return n, n_modes
