"""The sentences follow from the numbers."""

import pytest
from synthetic import fill

from sfo.experiments.studies import STUDIES
from sfo.experiments.studies.start import summarise_start
from sfo.experiments.studies.verdict import paired_table, rank_table, sentences
from sfo.experiments.study_results import study_results

OTHERS = ("svd_no", "fno", "deeponet")
ERRORS = {
    "allen_cahn": dict(sfo=0.03, sfo_recommended=0.01, svd_no=0.02, fno=0.025, deeponet=0.5),
    "maxwell": dict(sfo=0.4, sfo_recommended=0.6, svd_no=0.63, fno=0.5, deeponet=0.86),
}


@pytest.fixture(scope="module")
def main(tmp_path_factory):
    """Two benchmarks, five models, one seed."""
    results = fill(
        tmp_path_factory.mktemp("results"),
        "main",
        only=lambda cell: cell.row in ERRORS and cell.column in ERRORS[cell.row],
        error=lambda cell, run: ERRORS[cell.row][cell.column],
    )
    return study_results(STUDIES["main"], results, "smoke", 1)


def test_wins_and_losses_with_their_factors(main):
    paper_like, recommended, published = sentences(main)
    assert "on 1 of 2 benchmarks, of the available cells" in paper_like
    assert (
        "1D Allen–Cahn, where it has 1.50 times the error of SVD-NO (3 against 2 %)" in paper_like
    )
    assert "on 1 of 2 benchmarks, of the available cells" in recommended
    assert "3D Maxwell, where it has 1.20 times the error of FNO (60 against 50 %)" in recommended
    assert published == "In the paper SFO has the lowest error on 6 of 6 benchmarks."


def test_places_beside_the_papers(main):
    rows = {row.title: row.entries for row in rank_table(main).rows}
    ours, recommended, best, order = rows["1D Allen–Cahn"]
    assert ours.text == "3 of 4 (1.50×)"
    assert ours.published == f"1 of 9 ({0.05 / 0.07:.2f}×)"
    assert recommended.text == "1 of 4 (0.50×)"
    assert best.text == "SVD-NO 2"
    assert order.text == "1.00 (3 models)", "SVD-NO < FNO < DeepONet, as in the paper"
    assert rows["3D Maxwell"][3].text == "1.00 (3 models)", "FNO < SVD-NO < DeepONet, likewise"
    assert rows["1D Cahn–Hilliard"][0].text == "–"


def test_paired_comparison_has_the_means_difference(main):
    rows = {row.title: [e.text for e in row.entries] for row in paired_table(main).rows}
    assert rows["1D Allen–Cahn"][0] == "SVD-NO"
    assert rows["1D Allen–Cahn"][2].startswith("-1 (")
    assert rows["1D Allen–Cahn"][3] == "0.50×"
    assert rows["3D Maxwell"][0] == "FNO"
    assert rows["3D Maxwell"][2].startswith("+10 (")


def test_first_or_not_where_others_start_from_the_same_guess(tmp_path):
    """The best of those with the guess counts, not those without, and no row without any."""
    errors = {
        ("allen_cahn", "sfo_recommended"): 0.01,
        ("allen_cahn", "fno"): 0.005,
        ("allen_cahn", "fno with the guess"): 0.03,
        ("allen_cahn", "uno with the guess"): 0.02,
        ("maxwell", "sfo_recommended"): 0.6,
        ("maxwell", "fno with the guess"): 0.5,
        ("cahn_hilliard", "sfo_recommended"): 0.1,
    }
    results = fill(
        tmp_path,
        "start",
        only=lambda cell: (cell.row, cell.column) in errors,
        error=lambda cell, run: errors[cell.row, cell.column],
    )
    (bullets,) = summarise_start(study_results(STUDIES["start"], results, "smoke", 1))
    (text,) = bullets.items
    assert "on 1 of 2 benchmarks: 1D Allen–Cahn 1 against 2 % of UNO; 3D Maxwell 60 against" in text
