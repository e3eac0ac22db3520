"""The commands about training, as a user types them."""

import json

import numpy as np
import pytest

from sfo.cli import main
from sfo.experiments.record import Record, RecordError

TRAIN = "train --benchmark diffusion_sorption --scale smoke --samples 12 --epochs 2 --batch-size 5"
SMALL = "--model.n-modes 4 --model.hidden-channels 8 --model.n-layers 1"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run of seconds."""
    folder = tmp_path_factory.mktemp("cli")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFO_DATA", str(folder / "data"))
        main([*TRAIN.split(), *SMALL.split(), "--out", str(folder / "run")])
        yield folder / "run"


def code_of(arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def test_the_folder_holds_what_was_promised(run):
    for name in ("experiment", "data", "environment", "record", "cost"):
        assert json.loads((run / f"{name}.json").read_text())
    assert len((run / "metrics.jsonl").read_text().splitlines()) == 2
    assert (run / "predictions.png").read_bytes().startswith(b"\x89PNG")
    record = Record.load(run / "record.json")
    assert record.experiment.model.settings["n_modes"] == 4
    # 12 samples: one tenth, but at least one, is tested.
    assert record.errors.relative_l2 == pytest.approx(np.mean(record.errors.per_sample))


def test_the_same_configuration_file_gives_the_same_record(run, tmp_path, capsys):
    out = tmp_path / "again [red][/b]"  # No markup, but a folder's name.
    main(["train", "--config", str(run / "experiment.json"), "--out", str(out)])
    assert f"{out}: test errors" in capsys.readouterr().out
    assert (out / "record.json").read_bytes() == (run / "record.json").read_bytes()
    assert (out / "metrics.jsonl").read_bytes() == (run / "metrics.jsonl").read_bytes()


def test_evaluate_agrees_with_the_record(run, tmp_path, capsys):
    main(["evaluate", str(run), "--json-out", str(tmp_path / "errors.json")])
    errors = json.loads((tmp_path / "errors.json").read_text())
    assert errors["relative_l2"] == Record.load(run / "record.json").errors.relative_l2
    main(["evaluate", str(run), "--grid", "32"])
    assert "32 points" in capsys.readouterr().out


def test_predict_is_the_model(run, tmp_path):
    from sfo.training.fit import load_best
    from sfo.training.folder import RunFolder
    from sfo.training.prepare import load_pairs

    pairs = load_pairs(RunFolder(run).experiment(), "test")
    np.save(tmp_path / "a.npy", pairs.a[0].numpy())
    main(["predict", str(run), str(tmp_path / "a.npy"), "--out", str(tmp_path / "u.npy")])
    expected = load_best(run)(pairs.a[:1])[0].detach().numpy()
    np.testing.assert_array_equal(np.load(tmp_path / "u.npy"), expected)


def test_show_and_resume_know_that_it_is_finished(run, capsys):
    main(["show", str(run)])
    assert "2 of 2 epochs" in capsys.readouterr().out
    main(["resume", str(run)])
    assert "is finished" in capsys.readouterr().out


def test_an_edited_record_is_refused(run, tmp_path):
    text = (run / "record.json").read_text()
    wrong = text.replace('"best_epoch": ', '"best_epoch": 1')
    (tmp_path / "record.json").write_text(wrong)
    with pytest.raises(RecordError, match="was changed after it was written"):
        Record.load(tmp_path / "record.json")
    assert Record.from_json(text).to_json() == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train --benchmark burger", "Unknown benchmark 'burger'"),
        ("train --model gno", "Unknown model 'gno'"),
        ("train --model.colour 3", "Unknown setting 'colour' of sfo"),
        ("train --model.n-modes many", "n_modes"),
        ("train --model.n-modes", "needs a value"),
        ("train --config none.json", "none.json"),
        ("resume nowhere", "nowhere is not a run"),
        ("evaluate nowhere", "nowhere is not a run"),
        ("predict nowhere none.npy", "none.npy"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code_of(arguments.split()) == 2
    err = capsys.readouterr().err.strip()
    assert message in err
    assert "\n" not in err


def test_bad_files_for_a_run(run, tmp_path, capsys):
    (tmp_path / "text.npy").write_text("hello")
    np.save(tmp_path / "wrong.npy", np.zeros((2, 3, 64)))
    for name, message in (
        ("text.npy", "is neither a .npy or .npz file"),
        ("wrong.npy", "The input must be"),
    ):
        assert code_of(["predict", str(run), str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err
    assert code_of(["evaluate", str(run), "--grid", "37"]) == 2
    assert "`grid` must divide" in capsys.readouterr().err
    assert code_of(["train", "--out", str(run)]) == 2
    assert "holds a run already" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["train", "resume", "evaluate", "predict", "generate", "show"])
def test_help_has_examples(command, capsys):
    assert code_of([command, "--help"]) == 0
    assert f"sfo {command} " in capsys.readouterr().out


@pytest.mark.parametrize("model", ["pino", "svd_no"])
def test_models_with_terms_of_their_own_train(model, run, tmp_path, monkeypatch):
    """The residual of the equation, and the penalty on functions that are not orthogonal."""
    monkeypatch.setenv("SFO_DATA", str(run.parent / "data"))
    main([*TRAIN.split(), "--model", model, "--out", str(tmp_path / "run")])
    record = Record.load(tmp_path / "run" / "record.json")
    assert record.experiment.train.physics == (0.1 if model == "pino" else 0.0)
    rows = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert json.loads(rows[-1])["loss"] < json.loads(rows[0])["loss"]
