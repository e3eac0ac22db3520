"""What every registered basis promises."""

import pytest
import torch

from sfo.registry import BASES


@pytest.mark.parametrize("name", BASES.names())
@pytest.mark.parametrize(("n", "n_modes"), [(64, 12), (33, 33), (1, 1), (7, 2)])
def test_rows_are_orthonormal(name, n, n_modes):
    phi = BASES[name](n, n_modes)
    torch.testing.assert_close(phi @ phi.T, torch.eye(n_modes, dtype=torch.float64))


@pytest.mark.parametrize("name", BASES.names())
def test_fewer_modes_are_the_first_ones(name):
    """Truncation keeps the leading modes, so that an ablation over L is nested."""
    torch.testing.assert_close(BASES[name](24, 5), BASES[name](24, 12)[:5])


@pytest.mark.parametrize("name", BASES.names())
def test_more_modes_than_points(name):
    with pytest.raises(ValueError, match=r"`n_modes` must be in 1\.\.n, got n_modes=9 for n=8"):
        BASES[name](8, 9)
