"""Metrics are an open set: one function, registered, is measured, kept and printed."""

import pytest
import torch

from sfo.evaluation import Context, Errors, compute_errors, printed_metrics
from sfo.grid import Grid
from sfo.registry import METRICS

GRID = Grid((4,), (0.0,), (1.0,))


@pytest.fixture
def registered():
    """Register metrics for one test."""
    before = dict(METRICS._entries)
    yield METRICS
    METRICS._entries.clear()
    METRICS._entries.update(before)


def test_a_plain_function_is_a_metric(registered):
    """It sees float64 fields apart from their frames, and what they are called."""

    @registered.register("bias")
    def bias(prediction, truth, context):
        assert prediction.dtype == torch.float64
        assert context == Context(("h", "u"), 3, GRID)
        return (prediction - truth).mean((2, 3))

    truth = torch.randn(5, 6, 4)
    shift = torch.tensor([0.5] * 3 + [-2.0] * 3)[:, None]
    batches = [(truth[:2] + shift, truth[:2]), (truth[2:] + shift, truth[2:])]
    errors = compute_errors(batches, components=2, n_times=3, grid=GRID, fields=("h", "u"))
    assert errors.bias == pytest.approx([0.5, -2.0], abs=1e-6)
    assert dict(printed_metrics(errors))["bias"] == "0.5, -2"


def test_a_metric_without_rows_is_refused(registered):
    registered.register("wrong")(lambda prediction, truth, context: torch.zeros(7))
    with pytest.raises(ValueError, match="one row per sample, for 5 samples got the shape"):
        compute_errors([(torch.ones(5, 1, 4), torch.ones(5, 1, 4))], n_times=1, grid=GRID)


def test_fields_have_an_error_each():
    """Over all frames of a field: that of a field whose error is a tenth is a tenth."""
    truth = torch.randn(5, 6, 4)
    prediction = truth.clone()
    prediction[:, 3:] *= 1.1
    errors = compute_errors(
        [(prediction, truth)], components=2, n_times=3, grid=GRID, fields=("h", "u")
    )
    assert errors.field_l2 == pytest.approx({"h": 0.0, "u": 0.1}, rel=1e-5)
    assert list(errors.field_l2.values()) == errors.pdenneval_l2re


def test_a_missing_metric_is_a_dash_and_an_unknown_one_goes_by_its_name():
    lines = dict(printed_metrics(Errors(relative_l2=0.5, of_a_plugin=3.0)))
    assert lines["relative L2 (the paper's), %"] == "50"
    assert lines["boundary band, %"] == "–"
    assert lines["of_a_plugin"] == "3"
    assert len(lines) == len(METRICS.names()) + 1


def test_a_wrong_name_of_a_metric_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no metric 'relativ_l2'"):
        _ = Errors(relative_l2=0.5).relativ_l2


def test_the_names_of_fields_must_be_all():
    with pytest.raises(ValueError, match="`fields` must name all 2 fields, got h"):
        compute_errors([], components=2, n_times=1, grid=GRID, fields=("h",))
