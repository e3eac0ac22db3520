"""Marks go by what a reader sees."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfo.evaluation.statistics import Interval
from sfo.experiments.blocks import (
    Bullets,
    Details,
    Entry,
    Heading,
    Picture,
    Problems,
    Row,
    Table,
    Text,
    printed,
    ranked,
)
from sfo.report import markdown, page

widths = st.none() | st.floats(1e-7, 1e3)


def marks(*entries):
    return [entry.mark for entry in ranked(entries)]


@given(st.floats(1e-6, 1e4), widths)
def test_the_printed_mean_is_read_back(mean, width):
    """To within the precision of print, which is at most the interval or three digits."""
    text = str(Interval(mean, width, n=3))
    assert printed(text) == pytest.approx(mean, rel=0.006, abs=width or 0)


def test_ties_are_both_best():
    assert marks(Entry("0.05 ± 0.01", 0.051), Entry("0.05 ± 0.02", 0.049), Entry("0.07", 0.07)) == [
        "best",
        "best",
        "second",
    ]


def test_close_is_no_tie():
    """0.049 and 0.05 print differently: the lower mean is best."""
    assert marks(Entry("0.049", 0.049), Entry("0.05", 0.0495)) == ["best", "second"]


def test_what_is_missing_is_not_ranked():
    assert marks(Entry("–"), Entry("2", 2.0), Entry("failed"), Entry("1", 1.0)) == [
        "",
        "second",
        "",
        "best",
    ]


def test_a_lone_number_is_not_the_best():
    assert marks(Entry("–"), Entry("2", 2.0)) == ["", ""]


EVIL = "<script>alert(1)</script>"


@pytest.mark.parametrize("document", [markdown.document, page.document])
def test_names_are_text_in_both_languages(document):
    """A run's folder may be called like a script; no reader's browser is to run it."""
    table = Table(EVIL, (EVIL, EVIL), (Row(EVIL, (Entry(EVIL),)),), notes=(EVIL,))
    blocks = [
        Heading(EVIL, "x"),
        Text(EVIL),
        Bullets((EVIL,)),
        Problems(EVIL, (EVIL,)),
        Picture("name", b"", EVIL),
        Details(EVIL, (table,)),
        table,
    ]
    assert "<script>" not in document(EVIL, blocks)
    assert "&lt;script" in document(EVIL, blocks)
