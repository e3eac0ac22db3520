"""Pretrained models: what their cards say holds for the weights beside them."""

import json
import shutil
import time

import pytest
import torch

import sfo
from sfo import cli, zoo
from sfo.experiments.pretraining import RECIPES, experiment_of, pretrain
from sfo.experiments.surrogate import Solver, _seconds, interpolated
from sfo.grid import Grid
from sfo.models.pretrained import PretrainedError
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.loss import relative_l2


def fresh_samples(card, count):
    """Samples that neither trained nor tested the model: another seed."""
    benchmark = BENCHMARKS[card["benchmark"]]
    scale = benchmark.scale(card["experiment"]["data"]["scale"])
    solver = Solver(benchmark, scale, 12345, range(count))
    made = solver.solved(scale.n, solver.points)
    return sfo.data.pairs.pairs(made, inputs=benchmark.inputs, n_input=benchmark.n_input)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * (n not in ("allen_cahn", "darcy")))
        for n in zoo.names()
        if n not in ("maxwell", "shallow_water")
    ],
)
def test_errors_on_new_samples_are_those_of_the_card(name):
    """Samples of another seed: were the card's error of training samples, this would be larger."""
    card = zoo.card(name)
    pairs = fresh_samples(card, 8)
    with torch.no_grad():
        error = 100 * relative_l2(sfo.load_pretrained(name)(pairs.a), pairs.u).median()
    assert error < 2.5 * card["test_error_percent"]


@pytest.mark.parametrize("name", zoo.names())
def test_cards_name_the_run_of_the_recipe(name):
    """Weights of an older recipe would go on under the new one's name."""
    card = zoo.card(name)
    assert Experiment(**card["experiment"]) == experiment_of(name)
    model = sfo.load_pretrained(name)
    assert sum(p.numel() for p in model.parameters()) == card["parameters"]
    assert not model.training
    size = sum(path.stat().st_size for path in zoo.folder(name).glob("*.safetensors"))
    assert size <= 1.5e6


def test_every_recipe_is_a_benchmark():
    assert set(zoo.names()) <= set(RECIPES) <= set(BENCHMARKS.names())


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(ValueError, match=r"Unknown pretrained model 'alen_cahn'.*Did you mean"):
        sfo.load_pretrained("alen_cahn")


def test_changed_weights_are_refused(tmp_path, monkeypatch):
    shutil.copytree(zoo.folder("allen_cahn"), tmp_path / "allen_cahn")
    path = next((tmp_path / "allen_cahn").glob("*.safetensors"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    with pytest.raises(PretrainedError, match="SHA-256"):
        sfo.load_pretrained("allen_cahn")


def test_interpolation_is_exact_for_cubics_and_at_common_points():
    """Not-a-knot splines reproduce cubics; a spline passes through its knots."""
    coarse = Grid((12, 10), (0.0, -1.0), (2.0, 1.0), offset=0.5, periodic=False)
    fine = Grid((24, 20), (0.0, -1.0), (2.0, 1.0), offset=0.5, periodic=False)

    def cubic(grid):
        x, y = grid.mesh()
        return (x**3 - 2 * x * y**2 + y).view(1, 1, 1, *grid.shape)

    torch.testing.assert_close(interpolated(cubic(coarse), coarse, fine), cubic(fine))


def test_a_small_recipe_from_equation_to_card(tmp_path, monkeypatch):
    """Train, measure, read again; a second call with another recipe is refused."""
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    # The picture of a run, which takes longer than the run, has tests of its own.
    monkeypatch.setattr("sfo.experiments.run.draw", lambda *_, **__: None)
    small = Experiment.of(
        "allen_cahn",
        "sfo",
        preset="recommended",
        scale="smoke",
        settings=dict(hidden_channels=8, n_layers=1),
        data=dict(samples=24),
        train=dict(epochs=1, batch_size=8, optimizer="muon"),
    )
    card = pretrain("allen_cahn", tmp_path / "run", out=tmp_path / "zoo", experiment=small)
    assert card["grid"] == [64]
    assert json.loads((tmp_path / "zoo" / zoo.CARD).read_text()) == card
    model = sfo.SFO.from_pretrained(tmp_path / "zoo")
    record = json.loads((tmp_path / "run" / "record.json").read_text())
    assert card["test_error_percent"] == pytest.approx(100 * record["errors"]["relative_l2"])
    assert model.arguments["out_channels"] == 11
    with pytest.raises(ValueError, match="another run"):
        pretrain("allen_cahn", tmp_path / "run", out=tmp_path / "zoo")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["allen_cahn"])
def test_the_command_on_a_card_gives_its_errors(name, tmp_path, monkeypatch):
    """From generated data to errors on three grids, on weights that were copied elsewhere."""
    shutil.copytree(zoo.folder(name), tmp_path / name)
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    before = zoo.card(name)
    written = (tmp_path / name / zoo.CARD).stat().st_mtime_ns
    program, *arguments = before["check"].split()
    assert program == "sfo"
    cli.main(arguments)
    assert (tmp_path / name / zoo.CARD).stat().st_mtime_ns > written
    after = zoo.card(name)
    for key in ("test_error_percent", "half_grid_error_percent", "double_grid_error_percent"):
        assert after[key] == pytest.approx(before[key], rel=1e-4), key
    assert after["test_samples"] == before["test_samples"]


def test_the_list_explains_its_columns(capsys):
    """Every title of the table stands below it with what it means."""
    cli.main(["list", "--pretrained"])
    titles = ("test %", "half grid", "double", "ms", "solver ms (points)", "speed-up", "pays off")
    below = capsys.readouterr().out.rpartition("┘")[2]
    assert [title for title in titles if title not in below] == []


def test_a_cards_seconds_are_those_of_a_core_and_not_of_the_clock():
    """On a busy machine Darcy's 10 ms were 83 ms, and training paid off after a third of solves."""
    assert _seconds(lambda: time.sleep(0.3), rounds=1)[0] < 0.2
