import pytest
import torch

from sfo.models.compiled.slice_attention import (
    slice_attention,
    slice_attention_by_definition,
    slice_weights,
    weigh,
)

CASES = [
    # One block of points, several and a rest, fewer channels than are taken at a time.
    dict(batch=2, heads=3, width=8, points=40, slices=7),
    dict(batch=1, heads=2, width=6, points=600, slices=5),
    dict(batch=3, heads=1, width=2, points=9, slices=1),
]


def inputs(batch, heads, width, points, slices, dtype=torch.float32):
    shapes = [(batch, heads, width, points)] * 2
    shapes += [(heads, slices, width), (heads, slices), *[(width, width)] * 3]
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_kernels_agree_with_the_definition_in_double_precision(case, threads):
    """So do all gradients; as near as plain torch in float32 comes, a few units of 1e-7."""
    fast, exact = inputs(**case), inputs(**case, dtype=torch.float64)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        out, truth = slice_attention(*fast), slice_attention_by_definition(*exact)
        dout = torch.randn_like(out)
        gradients = torch.autograd.grad(out, fast, dout)
    finally:
        torch.set_num_threads(before)
    true_gradients = torch.autograd.grad(truth, exact, dout.double())
    for got, wanted in zip((out, *gradients), (truth, *true_gradients), strict=True):
        assert torch.dist(got.double(), wanted) <= 5e-6 * wanted.norm() + 1e-6


def test_second_derivatives_are_those_of_the_definition():
    fast, exact = inputs(**CASES[0]), inputs(**CASES[0], dtype=torch.float64)

    def slope_of_slope(attention, arguments):
        (dx,) = torch.autograd.grad(
            attention(*arguments).square().sum(), arguments[:1], create_graph=True
        )
        return torch.autograd.grad(dx.square().sum(), arguments)

    for got, wanted in zip(
        slope_of_slope(slice_attention, fast),
        slope_of_slope(slice_attention_by_definition, exact),
        strict=True,
    ):
        assert torch.dist(got.double(), wanted) <= 1e-4 * wanted.norm() + 1e-5


def test_every_point_is_shared_out_among_the_slices():
    x, _, weight, bias, *_ = inputs(**CASES[0], dtype=torch.float64)
    weights = slice_weights(10 * x, weight, bias)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(2), torch.ones_like(weights[:, :, 0]))


def test_large_exponents_do_not_overflow():
    """The largest power at a point is 1, and there the others are 0 if far below."""
    keys = torch.tensor([[[1.0], [-1.0], [0.5]]])
    p, r = weigh(keys, torch.tensor([[[1e4, -1e4, 0.0]]]))
    assert p[0].T.tolist() == [[1, 0, 0], [0, 1, 0], [1, 1, 1]]
    torch.testing.assert_close(r[0, 0], torch.tensor([1, 1, 1 / 3]))


def test_what_is_not_a_number_stays_so_at_its_point_alone():
    x = torch.randn(1, 4, 300)
    x[0, 2, 270] = torch.nan
    p, r = weigh(torch.randn(1, 5, 4), x)
    bad = (p * r).isnan()
    assert bad[0, :, 270].all()
    assert bad.sum() == 5
