"""sfo.fit: arrays in, a run out."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import sfo
from sfo.training import checkpoint
from sfo.training.own_data import needs_normaliser

sys.path.append(str(Path(__file__).parents[1] / "training"))
from small_runs import dying_at, ended, in_child, traces

SMALL = dict(hidden_channels=8, n_modes=4, n_layers=1)


def steady(samples=20, shape=(12, 10), channels=2, seed=0):
    """Fields of several channels, and products of them: no equation in time."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(samples, channels, *shape)).astype("f4")
    return a, np.concatenate([a[:, :1] * 2, a[:, :1] - a[:, -1:]], 1)


def quick(a, u, out, **more):
    return sfo.fit(a, u, out=out, settings=SMALL, **{"epochs": 2, "batch_size": 4, **more})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    a, u = steady()
    return a, u, quick(a, u, tmp_path_factory.mktemp("own") / "run")


def test_errors_are_those_of_samples_that_were_held_out(done):
    a, u, run = done
    test = list(sfo.data.arrays.split_by_share(len(a)).test)
    ids = json.loads((run.folder / "data.json").read_text())["ids"]
    assert not set(test) & {*ids["train"], *ids["validation"]}
    off = (run.predict(a[test]) - u[test]).reshape(len(test), -1)
    expected = np.linalg.norm(off, axis=1) / np.linalg.norm(u[test].reshape(len(test), -1), axis=1)
    np.testing.assert_allclose(run.errors.per_sample, expected, rtol=1e-4)
    assert run.experiment.data.paper_name is None


def test_a_run_is_loaded_elsewhere(done, tmp_path):
    a, u, run = done
    moved = tmp_path / "moved"
    run.folder.rename(moved)
    try:
        again = sfo.load_run(moved)
        one = sfo.SFO.from_pretrained(moved)
        np.testing.assert_array_equal(again.predict(a[:3]), run.predict(a[:3]))
        assert torch.equal(again.predict(torch.tensor(a[0])), one(torch.tensor(a[:1]))[0])
        assert again.errors == run.errors
        again.model.save_pretrained(tmp_path / "model")
        assert torch.equal(
            sfo.SFO.from_pretrained(tmp_path / "model")(torch.tensor(a)), one(torch.tensor(a))
        )
        picture = again.plot(tmp_path / "new" / "picture.png", a, u)
        assert picture.read_bytes().startswith(b"\x89PNG")
        with pytest.raises(ValueError, match="trained on arrays in memory, which must be given"):
            again.plot(tmp_path / "none.png")
    finally:
        moved.rename(run.folder)


def test_the_model_knows_the_units_of_its_data(tmp_path):
    """Amplitudes of 10⁶ beside 10⁻³ are normalised, and a saved model does it by itself."""
    a, u = steady(shape=(16,))
    a, u = a * np.float32(1e-3), u * np.float32(1e6) + np.float32(2e6)
    run = quick(a, u, tmp_path / "run")
    assert run.experiment.train.normaliser == "standard"
    model = sfo.SFO.from_pretrained(tmp_path / "run")
    assert torch.equal(model(torch.tensor(a)), run.predict(torch.tensor(a)))
    np.testing.assert_allclose(model.units.u_deviation.flatten(), u.std((0, 2)), rtol=0.2)
    assert run.errors.relative_l2 < 1


@pytest.mark.parametrize(
    ("scale", "shift", "needed"),
    [(1.0, 0.0, False), (0.01, 0.0, True), (30.0, 0.0, True), (1.0, 2.0, False), (1.0, 9.0, True)],
)
def test_normalisation_where_amplitudes_ask_for_it(scale, shift, needed):
    a = np.random.default_rng(0).normal(size=(40, 1, 32))
    assert needs_normaliser(sfo.Arrays.of(a, scale * a + shift)) is needed
    assert needs_normaliser(sfo.Arrays.of(scale * a + shift, a)) is needed
    # What is constant in all samples has no amplitude.
    assert not needs_normaliser(sfo.Arrays.of(np.concatenate([a, 0 * a + 1], 1), a))


@pytest.mark.parametrize(
    ("shape", "meaning"),
    [
        ((16,), dict(names=("h",))),
        ((9,), dict(times=(0.0, 0.5), grid=sfo.Grid((9,), (-1.0,), (1.0,)))),
        ((5, 6, 4), dict(names=("h", "v"))),
        ((4, 3, 4, 3), {}),
    ],
)
def test_any_dimension_and_any_grid(shape, meaning, tmp_path):
    a, u = steady(samples=10, shape=shape)
    run = sfo.fit(a, u, epochs=1, out=tmp_path, settings=dict(hidden_channels=4), **meaning)
    assert run.predict(a[0]).shape == u[0].shape
    assert (tmp_path / "predictions.png").exists()
    loaded = sfo.load_run(tmp_path)
    assert loaded.experiment == run.experiment


def test_killed_at_a_checkpoint_and_called_again_to_the_same_bits(done, tmp_path):
    a, u, run = done

    def killed():
        dying_at(checkpoint, "save", 2)
        quick(a, u, tmp_path / "run")

    assert ended(in_child(killed)) == -9
    assert not (tmp_path / "run" / "record.json").exists()
    again = quick(a, u, tmp_path / "run")
    assert traces(again.folder) == traces(run.folder)
    assert (again.folder / "record.json").read_bytes() == (run.folder / "record.json").read_bytes()


def test_memory_maps_and_files_train_to_the_same_bits(done, tmp_path):
    a, u, run = done
    for name, values in (("a", a), ("u", u)):
        np.memmap(tmp_path / name, "f4", "w+", shape=values.shape)[:] = values
    maps = [np.memmap(tmp_path / n, "f4", "r", shape=v.shape) for n, v in (("a", a), ("u", u))]
    again = quick(*maps, tmp_path / "run")
    assert traces(again.folder) == traces(run.folder)


def test_other_data_are_refused_and_nothing_is_overwritten(done):
    a, u, run = done
    before = {p: p.stat().st_mtime_ns for p in run.folder.rglob("*") if p.is_file()}
    with pytest.raises(ValueError, match=r"The data are not those .* `data\.arrays\.sha256` is"):
        quick(a, u + 1, run.folder)
    with pytest.raises(ValueError, match=r"was begun with other settings: `train\.epochs` is 2"):
        quick(a, u, run.folder, epochs=3)
    assert before == {p: p.stat().st_mtime_ns for p in run.folder.rglob("*") if p.is_file()}


def test_a_failed_start_leaves_the_folder_free(tmp_path):
    a, u = steady()
    out = tmp_path / "run"
    with pytest.raises(ValueError, match="modes do not fit an axis"):
        sfo.fit(a, u, out=out, epochs=1, settings=dict(n_modes=90, support="one_sided"))
    assert not list(out.glob("*.json"))
    with pytest.raises(ValueError, match="`epoch` is not a known key; known: epochs"):
        sfo.fit(a, u, out=out, epoch=1)
    assert quick(a, u, out).errors


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda a, u: sfo.fit(a), "`u` is missing"),
        (lambda a, u: sfo.fit(dict(a=a, u=u)), "got dict; pass inputs and solutions as two arrays"),
        (lambda a, u: sfo.fit(a, u, model=sfo.SFO), "the name of a registered model, got SFO"),
        (lambda a, u: sfo.fit(a, u, lr=1e-3), "`lr` is called `learning_rate` here, got lr=0.001"),
        (lambda a, u: sfo.fit(a, u, device="cuda"), "`device` is called `accelerator` here"),
        (lambda a, u: sfo.fit(a, u, epoch=3), "Did you mean `epochs`"),
        (lambda a, u: sfo.fit(a[:2], u[:2]), "At least 3 samples are needed"),
        (lambda a, u: sfo.fit(a, u, model="sof"), "Unknown model 'sof'"),
        (lambda a, u: sfo.fit(a, u, preset="paper"), "The paper has no SFO for data of your own"),
        (lambda a, u: sfo.fit(a, u, physics=0.1), "`physics` needs the equation of a benchmark"),
        (lambda a, u: sfo.fit("none.npz"), "No data: none.npz does not exist"),
        (lambda a, u: sfo.fit(a, u, rollout=1), "`rollout` must be the frames of the input"),
    ],
)
def test_what_is_wrong_in_one_sentence(call, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=sentence) as caught:
        call(*steady())
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda a: a[:, :1], "The input must be .sample, 2, .grid. on 2 axes"),
        (lambda a: a + 1j, "`a` must be real"),
        (lambda a: np.where(np.arange(20).reshape(-1, 1, 1, 1) == 7, np.nan, a), "Sample 7 of `a`"),
        (lambda a: a[:0], "The input must not be empty"),
    ],
)
def test_bad_inputs_for_a_prediction(change, sentence, done):
    a, _, run = done
    with pytest.raises(ValueError, match=sentence):
        run.predict(change(a))
