"""A folder of results with a report, made once."""

import pytest
from synthetic import fill, measurements

from sfo.report.build import write


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """The main table with two seeds, where MNO has none on Maxwell, parameters and times."""
    folder = tmp_path_factory.mktemp("results")
    results = fill(folder, "main", seeds=2, only=lambda c: (c.row, c.column) != ("maxwell", "mno"))
    measurements(results)
    write(folder)
    return folder
