"""No command deletes or replaces what it did not make: it refuses, and says the way out."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from data.tiny import Tiny
from training.small_runs import small

from sfo import files
from sfo.cli import main
from sfo.data.generate import generate
from sfo.experiments.blocks import Picture
from sfo.experiments.worker import clean
from sfo.models import SFO
from sfo.models.pretrained import PretrainedError
from sfo.report import theory
from sfo.report.build import save
from sfo.training.folder import RunFolder

OURS = b"\x89PNG\r\n\x1a\nours"


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_report_removes_its_own_old_pictures_only(tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "holiday.png").write_bytes(b"not ours")
    save(tmp_path, "Title", [Picture("old", OURS, "")])
    save(tmp_path, "Title", [Picture("new", OURS, "")])
    left = {p.name for p in (tmp_path / "figures").iterdir()}
    assert left == {"holiday.png", "new.png"}


@pytest.mark.parametrize("name", ["report.md", "report.html", "figures/new.png"])
def test_a_report_replaces_no_file_of_others(name, tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / name).write_text("# Title\n\nwritten by hand")
    before = content(tmp_path)
    with pytest.raises(ValueError, match=f"{name} is there and is not part of a report"):
        save(tmp_path, "Title", [Picture("new", OURS, "")])
    assert content(tmp_path) == before


def test_theory_refuses_a_folder_of_other_things(tmp_path):
    (tmp_path / "tables.md").write_text("# My own tables")
    with pytest.raises(ValueError, match="holds other things"):
        theory.run(tmp_path, quick=True)
    assert (tmp_path / "tables.md").read_text() == "# My own tables"


def test_a_model_is_saved_beside_weights_of_others(tmp_path):
    model = SFO(1, 1, 1, n_modes=2, hidden_channels=8, n_layers=1)
    (tmp_path / "weights-mine.safetensors").write_bytes(b"mine")
    model.save_pretrained(tmp_path)
    next(model.parameters()).data.add_(1)
    model.save_pretrained(tmp_path)
    assert (tmp_path / "weights-mine.safetensors").read_bytes() == b"mine"
    assert len(list(tmp_path.glob("weights-*"))) == 2  # Ours of before is gone.


def test_a_model_replaces_no_configuration_of_others(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(PretrainedError, match=r"config.json is there.*choose another folder"):
        SFO(1, 1, 1, n_modes=2, hidden_channels=8, n_layers=1).save_pretrained(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["config.json"]


@pytest.mark.parametrize("name", ["data.json", "environment.json", "sources.json"])
def test_a_run_takes_no_folder_with_files_of_others(name, tmp_path):
    """They bear names that a run writes, but no run has been here."""
    (tmp_path / name).write_text("mine")
    with (
        pytest.raises(ValueError, match="exists and is not empty"),
        RunFolder(tmp_path).opened(small(), False),
    ):
        pass
    assert content(tmp_path)[(tmp_path / name).relative_to(tmp_path)] == b"mine"


def test_a_run_leaves_hidden_files_of_others(tmp_path):
    """That look like what a kill leaves, but are not."""
    (tmp_path / ".notes.json.20240101").write_text("mine")
    with RunFolder(tmp_path).opened(small(), False):
        pass
    assert (tmp_path / ".notes.json.20240101").read_text() == "mine"


def test_generation_takes_no_folder_of_others_for_its_chunks(tmp_path):
    (tmp_path / "file.parts").mkdir()
    (tmp_path / "file.parts" / "thesis.tex").write_text("mine")
    with pytest.raises(OSError, match=r"other files \(thesis.tex\)"):
        generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)
    assert (tmp_path / "file.parts" / "thesis.tex").read_text() == "mine"


def test_predictions_never_replace_their_inputs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("input.npy", np.ones(3))
    (tmp_path / "link.npy").symlink_to("input.npy")
    before = content(tmp_path)
    with pytest.raises(SystemExit):
        main(["predict", "run", "input.npy", "--out", "link.npy"])
    assert "is the input" in capsys.readouterr().err
    assert content(tmp_path) == before


@pytest.mark.parametrize("words", ["modes --n 16 --n-modes 2 --out mine.png"])
def test_a_picture_replaces_no_file_of_another_kind(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.png").write_text(json.dumps("an only copy"))
    with pytest.raises(SystemExit):
        main(words.split())
    assert "it was left as it is" in capsys.readouterr().err
    assert (tmp_path / "mine.png").read_text() == '"an only copy"'
    (tmp_path / "mine.png").unlink()
    main(words.split())
    main(words.split())  # Its own picture is replaced.


def test_an_error_leaves_the_old_file(tmp_path):
    """And nothing beside it."""
    (tmp_path / "file").write_text("old")

    def interrupted():
        with files.unfinished(tmp_path / "file") as path:
            path.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert content(tmp_path) == {(tmp_path / "file").relative_to(tmp_path): b"old"}


def test_a_finished_run_of_a_study_loses_its_own_checkpoints_only(tmp_path):
    checkpoints = tmp_path / "checkpoints"
    (checkpoints / "mine").mkdir(parents=True)
    (checkpoints / "notes.txt").write_text("mine")
    (checkpoints / "step-00000001.safetensors").write_bytes(b"ours")
    clean(
        SimpleNamespace(experiment=None, keep=True),
        SimpleNamespace(run_folder=lambda experiment: tmp_path),
    )
    assert sorted(path.name for path in checkpoints.iterdir()) == ["mine", "notes.txt"]
