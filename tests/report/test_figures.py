"""What a figure shows, read from its axes."""

import pytest
from matplotlib.figure import Figure
from synthetic import fill

from sfo.evaluation.statistics import mean_interval
from sfo.experiments.studies import STUDIES
from sfo.experiments.studies.main_figures import main_figure
from sfo.experiments.studies.sizes import rank_figure
from sfo.experiments.study_results import study_results
from sfo.plot.panels import log_axes


def shown(folder, errors):
    """From where to where the main figure goes, with a seed for each error of one model."""
    results = fill(
        folder,
        "main",
        seeds=len(errors),
        only=lambda cell: (cell.row, cell.column) == ("allen_cahn", "sfo_recommended"),
        error=lambda cell, run: errors[run.seed] / 100,
    )
    figure = main_figure(study_results(STUDIES["main"], results, "smoke", len(errors)))
    return figure.axes[0].get_xlim()


def test_an_interval_beyond_the_means_is_shown_to_its_end(tmp_path):
    errors = [30.0, 50.0, 70.0]  # The paper's are less; the interval ends at 99.7.
    interval = mean_interval(errors)
    low, high = shown(tmp_path, errors)
    assert 1.6 * interval.mean < interval.mean + interval.half_width < high
    assert low == pytest.approx(0.05 / 1.6)


def test_an_interval_that_reaches_zero_does_not_stretch_the_figure(tmp_path):
    errors = [0.01, 0.02, 0.06]
    interval = mean_interval(errors)
    assert interval.half_width > interval.mean
    assert shown(tmp_path, errors)[0] == pytest.approx(interval.mean / 3)


@pytest.mark.parametrize("ends", [(60, 105), (63, 80), (3, 11), (0.2, 5), (0.05, 300)])
def test_a_logarithmic_axis_names_some_of_its_values(ends):
    """Between 60 and 105 there was one label, 100; at most as many as do not touch."""
    axes = Figure().subplots()
    axes.plot([1, 2], ends)
    log_axes(axes, "y")
    low, high = axes.get_ylim()
    assert 2 <= sum(low <= tick <= high for tick in axes.get_yticks()) <= 7


def test_a_single_rank_is_no_curve(tmp_path):
    """The rank that a benchmark has from another study alone gets no panel of its own."""
    chosen = {("allen_cahn", "L=4"), ("allen_cahn", "L=16"), ("shallow_water", "L=4")}
    results = fill(tmp_path, "rank", only=lambda cell: (cell.row, cell.column) in chosen)
    figure = rank_figure(study_results(STUDIES["rank"], results, "smoke", 1))
    assert [axes.get_title() for axes in figure.axes] == ["1D Allen–Cahn"]
