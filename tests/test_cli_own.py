"""The commands on data of the user's own, as they are typed."""

import json
import shutil

import h5py
import numpy as np
import pytest
import torch

from sfo.cli import main
from sfo.experiments.record import Record
from sfo.training import checkpoint
from sfo.training.config import Experiment

SMALL = "--model.n-modes 4 --model.hidden-channels 8 --model.n-layers 1 --epochs 2 --batch-size 5"


def make(path, samples=12, seed=0, **changes):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(samples, 1, 16)).astype("f4")
    np.savez(path, **{"a": a, "u": np.concatenate([2 * a, a - 1], 1), **changes})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    make(folder / "burgers.npz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFO_DATA", str(folder / "nothing"))
        main(["train", "--data", str(folder / "burgers.npz"), *SMALL.split(), "--out",
              str(folder / "run")])  # fmt: skip
        yield folder / "run"
    assert not (folder / "nothing").exists(), "a benchmark was generated"


def refusal(line, capsys):
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as stop:
        main(line.split())
    assert stop.value.code == 2
    text = capsys.readouterr().err.strip().splitlines()
    assert text[-1].startswith("sfo: ")
    return text[-1]


def stamps(folder):
    return {p: p.stat().st_mtime_ns for p in folder.rglob("*") if p.is_file() and p.name[0] != "."}


def test_evaluate_agrees_with_the_record(run, tmp_path, capsys):
    main(["evaluate", str(run), "--json-out", str(tmp_path / "errors.json")])
    errors = json.loads((tmp_path / "errors.json").read_text())
    assert errors["relative_l2"] == Record.load(run / "record.json").errors.relative_l2
    make(tmp_path / "other.npz", samples=5, seed=1)
    main(["evaluate", str(run), "--data", str(tmp_path / "other.npz")])
    assert "5 samples of other, 16 points" in capsys.readouterr().out
    # The same numbers elsewhere are the run's own data, of which only the test part counts.
    shutil.copy(run.parent / "burgers.npz", tmp_path / "moved.npz")
    main(["evaluate", str(run), "--data", str(tmp_path / "moved.npz")])
    assert "1 samples of moved, 16 points" in capsys.readouterr().out


def test_evaluate_on_every_second_point(run, tmp_path, capsys):
    """`--grid` takes fewer of the points, with the same result as a file that holds only those."""
    main(f"evaluate {run} --grid 8 --split all --json-out {tmp_path}/a.json".split())
    assert "12 all samples of burgers_data, 8 points" in capsys.readouterr().out
    with np.load(run.parent / "burgers.npz") as file:
        np.savez(tmp_path / "coarse.npz", a=file["a"][..., ::2], u=file["u"][..., ::2])
    main(f"evaluate {run} --data {tmp_path}/coarse.npz --json-out {tmp_path}/b.json".split())
    one, other = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert one == other
    assert "must divide the 16 points that there are, got 5; possible: 16, 8, 4" in refusal(
        f"evaluate {run} --grid 5", capsys
    )
    assert "must divide the 16 points" in refusal(f"evaluate {run} --grid 32", capsys)


def test_predict_and_its_picture(run, tmp_path, capsys):
    a = np.load(run.parent / "burgers.npz")["a"]
    np.save(tmp_path / "a.npy", a[:2])
    main(
        f"predict {run} {tmp_path}/a.npy --out {tmp_path}/u.npy --picture {tmp_path}/u.png".split()
    )
    main(f"predict {run} {run.parent}/burgers.npz --out {tmp_path}/all.npy".split())
    np.testing.assert_allclose(np.load(tmp_path / "u.npy"), np.load(tmp_path / "all.npy")[:2],
                               rtol=1e-5, atol=1e-5)  # fmt: skip
    assert (tmp_path / "u.png").read_bytes().startswith(b"\x89PNG")
    a[1, 0, 3] = np.nan
    np.save(tmp_path / "nan.npy", a)
    assert "Sample 1 of `a` holds NaN" in refusal(f"predict {run} {tmp_path}/nan.npy", capsys)


def test_inputs_that_no_prediction_comes_of(run, tmp_path, capsys, monkeypatch):
    """Complex, empty, no fields, too large for the model: refused, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    a = np.load(run.parent / "burgers.npz")["a"][:2]
    large = np.where([[[False]], [[True]]], 1e300 * a.astype(float), a)
    for name, bad, sentence in (
        ("complex", a + 1j, "`a` must be real, got complex"),
        ("empty", a[:0], "The input must not be empty, got the shape (0, 1, 16)"),
        ("whole", (10 * a).astype(int), "`a` must be floating point, got int64"),
        ("large", large, "The prediction for sample 1 is not finite, though its input is"),
    ):
        np.save(f"{name}.npy", bad)
        np.savez(f"{name}.npz", a=bad)
        for kind in ("npy", "npz"):
            assert sentence in refusal(f"predict {run} {name}.{kind} --out u.npy", capsys)
    assert not (tmp_path / "u.npy").exists()


def test_memory_is_measured_on_request_only(run, tmp_path, monkeypatch):
    """It runs a training step in a process of its own, which takes longer than a short run."""
    asked = []
    monkeypatch.setattr("sfo.evaluation.cost.training_memory", lambda *a, **k: asked.append(a) or 1)
    line = f"train --data {run.parent}/burgers.npz --model fno --model.n-modes 3 --epochs 1"
    main(f"{line} --out {tmp_path}/without".split())
    assert not asked
    main(f"{line} --memory --out {tmp_path}/with".split())
    assert len(asked) == 1


@pytest.mark.parametrize("n_dim", [1, 2, 3])
def test_show_data_of_your_own(n_dim, tmp_path, capsys):
    """Inputs beside solutions: what is drawn is in the file."""
    shape = (5, 6, 7)[:n_dim]
    a = np.random.default_rng(0).normal(size=(6, 2, *shape))
    np.savez(tmp_path / "mine.npz", a=a, u=a[:, :1])
    with h5py.File(tmp_path / "mine.hdf5", "w") as file:
        file["a"], file["u"] = a, a[:, :1]
    pictures = []
    for name in ("mine.npz", "mine.hdf5"):
        main(f"show {tmp_path}/{name} --samples 2 --out {tmp_path}/pictures/{name}.png".split())
        points = " × ".join(map(str, shape))
        text = capsys.readouterr().out
        assert text.startswith(f"mine: 6 samples, a1, a2 → u, {points} points\nPicture: ")
        pictures.append((tmp_path / "pictures" / f"{name}.png").read_bytes())
    assert pictures[0] == pictures[1]
    assert "`samples` must be at least 1" in refusal(
        f"show {tmp_path}/mine.npz --samples 0", capsys
    )


def test_show(run, capsys):
    main(["show", str(run)])
    text = capsys.readouterr().out
    assert "on burgers_data, 12 samples of your own, 16 points, SHA-256 " in text
    assert "2 of 2 epochs" in text


def test_stopped_and_resumed_with_the_file_moved(run, tmp_path, monkeypatch, capsys):
    """The same Record as without a stop; data that are gone or changed are refused first."""
    make(tmp_path / "mine.npz")
    save, out = checkpoint.save, tmp_path / "run"

    def stops(*arguments, **options):
        save(*arguments, **options)
        raise RuntimeError("as if killed")

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", stops)
        with pytest.raises(RuntimeError, match="as if killed"):
            main(f"train --data {tmp_path}/mine.npz {SMALL} --out {out}".split())
    before = stamps(out)
    (tmp_path / "mine.npz").rename(tmp_path / "moved.npz")
    assert "are gone: " in refusal(f"resume {out}", capsys)
    make(tmp_path / "mine.npz", seed=3)
    line = refusal(f"resume {out}", capsys)
    assert "are not the data that the run was trained on: `sha256` was" in line
    assert stamps(out) == before
    main(f"resume {out} --data {tmp_path}/moved.npz".split())
    there, here = (Record.load(folder / "record.json") for folder in (run, out))
    assert here.errors == there.errors


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (dict(u=np.zeros((7, 1, 16), "f4")), "`a` and `u` must have as many samples, got 12 and 7"),
        (dict(u=np.zeros((12, 1, 8), "f4")), "must be on the same grid, got (16,) and (8,)"),
        (dict(u=np.full((12, 1, 16), np.inf, "f4")), "Sample 0 of `u` in "),
        (dict(u=np.zeros((12, 1, 16), int)), "`u` must be floating point, got int64"),
        (dict(u=np.zeros((12, 1, 16), "c8")), "`u` must be real, got complex64"),
        (dict(a=np.ones((2, 1, 4)), u=np.ones((2, 1, 4))), "At least 3 samples are needed"),
    ],
)
def test_bad_data_are_refused(changes, sentence, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "bad.npz", **changes)
    assert sentence in refusal(f"train --data {tmp_path}/bad.npz", capsys)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.npz"]


def test_options_that_do_not_go_together(run, capsys):
    data = run.parent / "burgers.npz"
    assert "`--scale` is for benchmarks" in refusal(f"train --data {data} --scale desk", capsys)
    assert "`--data-seed` is for" in refusal(f"train --data {data} --data-seed 1", capsys)
    assert "are for data of your own" in refusal("train --periodic", capsys)
    assert "pass its own --data" in refusal(f"train --config {run}/experiment.json", capsys)
    assert "holds a run already" in refusal(f"train --data {data} --out {run}", capsys)
    assert "`file` is for benchmarks" in refusal(f"evaluate {run} --file x.hdf5", capsys)


def test_what_this_machine_does_not_have(run, tmp_path, capsys):
    """One line, and a folder that is as free as before."""
    line = f"train --data {run.parent}/burgers.npz --out {tmp_path}/run"
    if not torch.cuda.is_available():
        text = refusal(f"{line} --accelerator cuda", capsys)
        assert "`accelerator` must be one that is here: torch finds no CUDA device" in text
        study = f"reproduce fixed --scale smoke --out {tmp_path}/study"
        for command in (
            f"{line} --devices 0,1",
            study + " --devices 0,1",
            study + " --accelerator cuda",
        ):
            assert refusal(command, capsys).endswith("pass --accelerator cpu.")
        assert "`devices` must be in 1.." in refusal(f"{line} --devices 1000", capsys)
    assert "does not fit into memory" in refusal(f"{line} --model.hidden-channels 900000", capsys)
    assert list(tmp_path.rglob("*.json")) == []


def test_a_configuration_is_changed_by_other_options(run, tmp_path):
    out = tmp_path / "run"
    line = f"train --config {run}/experiment.json --data {run.parent}/burgers.npz --model fno"
    main(f"{line} --model.n-modes 3 --seed 5 --epochs 1 --out {out}".split())
    made, base = (Experiment.load(folder / "experiment.json") for folder in (out, run))
    assert (made.model.name, made.seed, made.train.epochs) == ("fno", 5, 1)
    assert made.model.settings == dict(n_modes=3)
    assert made.train.batch_size == base.train.batch_size
    assert made.data == base.data


def test_a_file_of_no_benchmark_does_not_train_under_its_name(tmp_path, capsys):
    """A PDEBench-like file of another equation is data of one's own, or nothing."""
    with h5py.File(tmp_path / "waves.hdf5", "w") as file:
        file["tensor"] = np.random.default_rng(0).normal(size=(8, 3, 16)).astype("f4")
        file["x-coordinate"], file["t-coordinate"] = np.arange(16) / 16, np.arange(3.0)
    line = f"train --benchmark allen_cahn --file {tmp_path}/waves.hdf5 --out {tmp_path}/a"
    assert "but the run is on allen_cahn" in refusal(line, capsys)
    assert not list(tmp_path.glob("a/*.json"))
    main(f"train --data {tmp_path}/waves.hdf5 {SMALL} --out {tmp_path}/run".split())
    record = Record.load(tmp_path / "run" / "record.json")
    assert record.experiment.data.benchmark == "waves"
    assert len(record.errors.per_time) == 3
