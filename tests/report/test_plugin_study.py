"""A study in a user's module: its runs alone make a table; what it adds is shown as it says."""

import importlib.util
import sys

import pytest
from read_html import Tables
from synthetic import record

from sfo.experiments import blocks
from sfo.experiments.results import Results
from sfo.experiments.study import as_study, study_names
from sfo.experiments.study_results import study_results
from sfo.registry import BENCHMARKS, MODELS, STUDIES
from sfo.report.build import write

PLUGIN = '''
from sfo.data.catalogue import AllenCahnBenchmark
from sfo.experiments.study import Cell
from sfo.models.fno import FNO
from sfo.registry import BENCHMARKS, MODELS, STUDIES
from sfo.training.config import Experiment


class Mine(AllenCahnBenchmark):
    name, title, paper_name = "mine", "My equation", "allen_cahn"


BENCHMARKS.register("mine")(Mine())


@MODELS.register("my_fno")
class MyFNO(FNO):
    title = "My FNO"


@STUDIES.register("of-mine")
def of_mine(scale, seeds):
    """Two models on my equation, %

    Which of them is better.
    """
    return [
        Cell("mine", model, Experiment.of("mine", model, scale=scale), seeds)
        for model in ("fno", "my_fno")
    ]
'''

WITH_ITS_OWN_WAY = """
from matplotlib.figure import Figure

from sfo.experiments.blocks import Entry, Row, Table, pictures
from sfo.experiments.present import usual_blocks
from sfo.experiments.study import Cell, Study
from sfo.registry import STUDIES
from sfo.training.config import Experiment

PROTOCOLS = (
    dict(optimizer="adam", learning_rate=1e-3, batch_size=8),
    dict(optimizer="adamw", learning_rate=4e-3, batch_size=4, schedule="cosine"),
)


def cells(scale, seeds):
    run = Experiment.of("allen_cahn", "fno", scale=scale)
    return [Cell("allen_cahn", "tuned", run, seeds, protocols=PROTOCOLS, trial_least=1)]


def present(found):
    seconds = found.epoch_seconds("allen_cahn", "fno")
    own = Table("Seconds", ("", "one epoch"), (Row("FNO", (Entry(f"{seconds:g}"),)),))
    return [*usual_blocks(found), own, *pictures(("own", Figure(), "My picture."))]


STUDIES.register("of-my-own")(
    Study(
        "of-my-own", "My own", "By my protocols.", cells,
        titles={"tuned": "as chosen"}, present=present,
        limits=lambda found: ["My machine is old."],
    )
)
"""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import a module of its own file, and forget what it registered."""
    before = [dict(registry._entries) for registry in (BENCHMARKS, MODELS, STUDIES)]

    def load(name, text):
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)

    yield load
    for registry, entries in zip((BENCHMARKS, MODELS, STUDIES), before, strict=True):
        registry._entries.clear()
        registry._entries.update(entries)


def test_a_list_of_cells_is_shown_with_its_means_and_the_best(load, tmp_path):
    """Titles are the registered ones, or the names; intervals over the seeds; the best bold."""
    load("plugin_of_mine", PLUGIN)
    results = Results(tmp_path / "results")
    for cell in as_study("of-mine").cells("smoke", 2):
        for run in cell.runs(results):
            error = {"fno": 0.02, "my_fno": 0.01}[cell.column] * (1 + 0.1 * run.seed)
            results.keep(record(run, error))
    write(results.folder)
    sections = Tables((results.folder / "report.html").read_text()).sections
    header, line = sections["of-mine"][0]
    assert [cell[0] for cell in header] == ["", "fno", "My FNO"]
    assert [cell[0] for cell in line] == ["My equation", "2.1 ± 1.3", "1.1 ± 0.6"]
    assert [cell[2] for cell in line[1:]] == ["second", "best"]
    assert [row[0][0] for row in sections["limits"][0][1:]] == ["My equation"]
    text = (results.folder / "report.md").read_text()
    assert "## Two models on my equation, %\n\nWhich of them is better.\n" in text
    assert "sfo reproduce of-mine --scale smoke --seeds 2" in text
    assert "Records of no study" not in text


def test_users_studies_come_after_the_packages_own(load):
    """Also where a plugin was imported before the package's studies were."""
    own = study_names()
    load("plugin_of_mine", PLUGIN)
    entries = dict(STUDIES._entries)
    STUDIES._entries.clear()
    STUDIES._entries.update({"of-mine": entries.pop("of-mine"), **entries})
    assert study_names() == [*own, "of-mine"]
    assert own[0] == "main"


def test_a_study_has_its_own_protocols_tables_and_pictures(load, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "png", lambda figure: b"my bytes")
    load("plugin_of_my_own", WITH_ITS_OWN_WAY)
    results = Results(tmp_path / "results")
    results.keep_table(
        "runtime", {"seconds": {"allen_cahn": {"fno": 1.5}}, "rounds": 1, "scale": "smoke"}
    )
    (cell,) = as_study("of-my-own").cells("smoke", 1)
    first, second = cell.trials()
    assert (first.train.epochs, first.train.batch_size) == (1, 8)
    assert (second.train.optimizer, second.train.schedule) == ("adamw", "cosine")
    results.keep(record(first, validation=0.2))
    results.keep(record(second, validation=0.1))
    (run,) = cell.runs(results)
    assert (run.train.batch_size, run.train.learning_rate) == (4, 4e-3)
    results.keep(record(run, 0.01))
    found = study_results(as_study("of-my-own"), results, "smoke", 1)
    errors, protocols, own, picture = found.study.present(found)
    assert errors.columns == ("", "as chosen")
    assert protocols.title == "Protocol"
    assert protocols.rows[0].entries[0].text == "adamw cosine 0.004 batch 4"
    assert "adam 0.001 batch 8; adamw cosine 0.004 batch 4" in protocols.notes[0]
    assert own.rows[0].entries[0].text == "1.5"
    assert (picture.name, picture.content) == ("own", b"my bytes")
    write(results.folder)
    assert (results.folder / "figures" / "own.png").read_bytes() == b"my bytes"
    text = (results.folder / "report.md").read_text()
    assert "![My picture.](figures/own.png)" in text
    assert "- My machine is old.\n" in text
