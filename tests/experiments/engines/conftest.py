"""One small data set for all engines."""

import os

import pytest

from sfo.data import load_benchmark


@pytest.fixture(scope="session", autouse=True)
def data_folder(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("data") / "data"
        patch.setitem(os.environ, "SFO_DATA", str(folder))
        load_benchmark("allen_cahn", "smoke", workers=1)
        yield folder
