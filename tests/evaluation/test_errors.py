"""Errors against sums by hand, and the relations between them."""

import json
import math
import pickle

import pytest
import torch
from torch import nn

from sfo import SFO
from sfo.evaluation import Errors, ErrorSums, compute_errors, evaluate_fields
from sfo.evaluation.metrics import neuralop_l2
from sfo.grid import Grid


def unit_grid(*shape):
    return Grid(shape, (0.0,) * len(shape), (1.0,) * len(shape))


def random_fields(samples=7, components=2, n_times=3, shape=(11, 20), seed=0):
    generator = torch.Generator().manual_seed(seed)
    size = (samples, components * n_times, *shape)
    truth = torch.randn(size, generator=generator, dtype=torch.float64)
    return truth + 0.1 * torch.randn(size, generator=generator, dtype=torch.float64), truth


def measured(prediction, truth, components=2, n_times=3):
    grid = unit_grid(*truth.shape[2:])
    return compute_errors([(prediction, truth)], components=components, n_times=n_times, grid=grid)


def numbers(errors):
    """All metrics in one row."""
    lists = [[*v.values()] if isinstance(v, dict) else v for v in errors.values()]
    return torch.tensor([x for v in lists for x in (v if isinstance(v, list) else [v])]).double()


# Two samples, two components, two times, two points. Sample 0, component by component:
# u = ((3, 4), (0, 2)), ((6, 8), (1, 0)), û − u = ((0, 5), (1, 0)), ((0, 0), (0, 2)).
TRUTH = torch.tensor([[[3.0, 4.0], [0.0, 2.0], [6.0, 8.0], [1.0, 0.0]], [[1.0, 0.0]] * 4])
DIFFERENCE = torch.tensor([[[0.0, 5.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]], [[0.0, 0.5]] * 4])


def by_hand():
    return measured(TRUTH + DIFFERENCE, TRUTH, n_times=2)


def test_the_papers_metric_by_hand():
    """E = 25 + 1 + 4 = 30 and U = 25 + 4 + 100 + 1 = 130; sample 1 is wrong by a half."""
    errors = by_hand()
    expected = [math.sqrt(30 / 130), 0.5]
    assert errors.per_sample == pytest.approx(expected, rel=1e-15)
    assert errors.relative_l2 == pytest.approx(sum(expected) / 2, rel=1e-15)
    assert errors.percent == 100 * errors.relative_l2


def test_each_frame_by_hand():
    errors = by_hand()
    frames = [math.sqrt(25 / 125), math.sqrt(5 / 5)]
    assert errors.per_time == pytest.approx([(x + 0.5) / 2 for x in frames], rel=1e-15)


def test_pdenneval_by_hand():
    errors = by_hand()
    components = [math.sqrt(26 / 29), math.sqrt(4 / 101)]
    assert errors.pdenneval_l2re == pytest.approx([(x + 0.5) / 2 for x in components], rel=1e-15)
    assert errors.pdenneval_max == [5, 2]
    assert errors.max_error == 5


def test_pdebench_by_hand():
    """Roots are taken frame by frame: 1, 1/2, 0 and 2 in the first sample."""
    errors = by_hand()
    assert errors.pdebench_nrmse == pytest.approx((1 + 0.5 + 0 + 2 + 4 * 0.5) / 8, rel=1e-15)
    rmse = (
        math.sqrt(25 / 2) + math.sqrt(1 / 2) + 0 + math.sqrt(4 / 2) + 4 * 0.5 / math.sqrt(2)
    ) / 8
    assert errors.pdebench_rmse == pytest.approx(rmse, rel=1e-15)
    assert errors.pdebench_max == (5 + 1 + 0.5 + 2) / 4


def test_boundary_and_interior_by_hand():
    """⌊0.1 · 20⌋ = 2 points at each end: here every point is wrong by half, the band by all."""
    truth = torch.ones(1, 1, 20)
    truth[..., 10] = 3
    prediction = 1.5 * truth
    prediction[..., [0, 1, 18, 19]] = 0
    errors = measured(prediction, truth, components=1, n_times=1)
    assert (errors.boundary_l2, errors.interior_l2) == (1.0, 0.5)


def test_band_and_interior_make_the_whole():
    """E and U of the regions add up, on a grid whose axes have bands of different width."""
    prediction, truth = random_fields()
    sums = ErrorSums(components=2, n_times=3, grid=unit_grid(11, 20))
    sums.update(prediction, truth)
    whole = (prediction - truth).square().sum((2, 3))
    inside = (prediction - truth)[:, :, 1:-1, 2:-2].square().sum((2, 3))
    torch.testing.assert_close(sums.error.sum(-1).flatten(1), whole, rtol=1e-13, atol=0)
    torch.testing.assert_close(sums.error[..., 1].flatten(1), inside, rtol=1e-13, atol=0)


def test_a_coarse_grid_has_no_band():
    errors = measured(*random_fields(shape=(6, 9)))
    assert errors.boundary_l2 is None
    assert errors.interior_l2 == errors.relative_l2


@pytest.mark.parametrize("batch_size", [1, 2, 5, 7])
def test_batches_do_not_matter(batch_size, monkeypatch):
    prediction, truth = random_fields()
    whole = measured(prediction, truth)
    monkeypatch.setattr("sfo.evaluation.errors.CHUNK", 3 * truth[0].numel())
    batches = zip(prediction.split(batch_size), truth.split(batch_size), strict=True)
    cut = compute_errors(batches, components=2, n_times=3, grid=unit_grid(11, 20))
    torch.testing.assert_close(numbers(cut), numbers(whole), rtol=1e-12, atol=0)


def test_the_order_of_samples_does_not_matter():
    prediction, truth = random_fields()
    errors, turned = measured(prediction, truth), measured(prediction.flip(0), truth.flip(0))
    assert turned.per_sample == errors.per_sample[::-1]
    turned = Errors(**{**turned, "per_sample": errors.per_sample})
    torch.testing.assert_close(numbers(turned), numbers(errors), rtol=1e-12, atol=0)


def test_relative_errors_do_not_feel_units():
    """Maxwell's fields are of the order 1e-13; absolute errors scale, relative ones do not."""
    prediction, truth = random_fields()
    errors, small = measured(prediction, truth), measured(1e-13 * prediction, 1e-13 * truth)
    for name in ("relative_l2", "boundary_l2", "interior_l2", "pdebench_nrmse"):
        assert getattr(small, name) == pytest.approx(getattr(errors, name), rel=1e-12)
    assert small.pdenneval_l2re == pytest.approx(errors.pdenneval_l2re, rel=1e-12)
    for name in ("max_error", "pdebench_rmse", "pdebench_max"):
        assert getattr(small, name) == pytest.approx(1e-13 * getattr(errors, name), rel=1e-12)


def test_equal_components_and_times_agree_with_the_whole():
    """Where every frame is wrong by the same factor all relative metrics are that factor."""
    _, truth = random_fields()
    errors = measured(1.25 * truth, truth)
    relative = [errors.relative_l2, errors.boundary_l2, errors.interior_l2, errors.pdebench_nrmse]
    relative += errors.per_sample + errors.per_time + errors.pdenneval_l2re
    assert relative == pytest.approx([0.25] * len(relative), rel=1e-12)


def test_frames_and_components_alone():
    """Each entry is the whole metric of that frame, or of that component, alone."""
    prediction, truth = random_fields()
    errors = measured(prediction, truth)
    for time in range(3):
        frame = slice(time, None, 3)
        alone = measured(prediction[:, frame], truth[:, frame], n_times=1).relative_l2
        assert errors.per_time[time] == pytest.approx(alone, rel=1e-13)
    for component in range(2):
        own = slice(3 * component, 3 * component + 3)
        alone = measured(prediction[:, own], truth[:, own], components=1).relative_l2
        assert errors.pdenneval_l2re[component] == pytest.approx(alone, rel=1e-13)


def test_zero_targets_are_finite():
    """A zero frame counts 0 where the prediction is exact and 1 where it is not."""
    truth = torch.ones(2, 2, 4)
    truth[:, 0] = 0
    prediction = truth.clone()
    prediction[1, 0, 2] = 1e-9
    errors = measured(prediction, truth, components=1, n_times=2)
    assert errors.per_time == [0.5, 0]
    assert errors.pdebench_nrmse == 0.25
    assert errors.zero_targets == 2
    assert torch.isfinite(numbers(Errors(**{**errors, "boundary_l2": 0.0}))).all()


def test_a_diverged_model_never_looks_good():
    truth = torch.ones(2, 2, 4)
    truth[:, 0] = 0
    for value in (math.nan, math.inf):
        errors = measured(torch.full_like(truth, value), truth, components=1, n_times=2)
        assert not math.isfinite(errors.relative_l2)
        assert not math.isfinite(errors.max_error)
        assert errors.per_time[0] == 1


def test_float32_fields_are_summed_in_float64():
    """A million squares of float32 numbers, to twelve digits."""
    truth = torch.full((1, 1, 2**20), 0.1)
    errors = measured(torch.full_like(truth, 0.3), truth, components=1, n_times=1)
    low, high = torch.tensor([0.1, 0.3]).tolist()
    expected = (high - low) / low
    assert errors.relative_l2 == pytest.approx(expected, rel=1e-12)


def test_neuralop_sum_and_mean():
    prediction, truth = random_fields()
    sums = ErrorSums(components=2, n_times=3, grid=unit_grid(11, 20))
    sums.update(prediction, truth)
    assert neuralop_l2(sums, "sum") == pytest.approx(7 * 6 * neuralop_l2(sums), rel=1e-14)
    assert neuralop_l2(sums) == pytest.approx(sums.errors().pdebench_nrmse, rel=1e-8)


def test_json_gives_the_same_errors_back():
    errors = measured(*random_fields())
    assert Errors(**json.loads(json.dumps(dict(errors)))) == errors
    assert pickle.loads(pickle.dumps(errors)) == errors


def test_evaluate_is_measure_of_the_models_predictions():
    model = SFO(1, 6, n_dim=2, n_modes=3, hidden_channels=8, n_layers=1)
    a = torch.randn(5, 1, 12, 10, dtype=torch.float64)
    u = torch.randn(5, 6, 12, 10, dtype=torch.float64)
    with torch.no_grad():
        expected = measured(model(a.float()), u)
    errors = evaluate_fields(
        model, a, u, components=2, n_times=3, grid=unit_grid(12, 10), batch_size=2
    )
    torch.testing.assert_close(numbers(errors), numbers(expected), rtol=1e-6, atol=0)


def test_evaluate_leaves_the_model_as_it_was():
    """Half of the model trains and half does not: both are in evaluation mode, and back."""

    class Probe(nn.Module):
        def forward(self, v):
            seen.append((self.training, torch.is_grad_enabled()))
            return v

    seen = []
    model = nn.Sequential(Probe(), Probe())
    model[0].eval()
    u = torch.randn(3, 1, 4)
    evaluate_fields(model, u, u, n_times=1, grid=unit_grid(4), batch_size=3)
    assert seen == [(False, False)] * 2
    assert (model.training, model[0].training, model[1].training) == (True, False, True)


def test_complex_weights_take_real_fields():
    """The input follows the precision of the weights, not their complex type."""

    class Filter(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.full((5,), 0.5, dtype=torch.complex128))

        def forward(self, v):
            assert v.dtype == torch.float64
            return torch.fft.irfft(self.weight * torch.fft.rfft(v), n=8)

    u = torch.randn(3, 1, 8)
    errors = evaluate_fields(Filter(), u, u, n_times=1, grid=unit_grid(8))
    assert errors.relative_l2 == pytest.approx(0.5, rel=1e-14)


def test_mistakes_are_named():
    grid = unit_grid(4)
    with pytest.raises(ValueError, match="n_times"):
        ErrorSums(components=1, n_times=0, grid=grid)
    with pytest.raises(ValueError, match=r"\(sample, 2, 4\)"):
        compute_errors([(torch.ones(3, 1, 4), torch.ones(3, 1, 4))], n_times=2, grid=grid)
    with pytest.raises(ValueError, match="No errors without samples"):
        compute_errors([], n_times=1, grid=grid)
    with pytest.raises(ValueError, match="as many samples"):
        evaluate_fields(
            nn.Identity(), torch.ones(2, 1, 4), torch.ones(3, 1, 4), n_times=1, grid=grid
        )
