"""The demo writes what it promises."""

import re

import pytest

from sfo import demo
from sfo.models import SFO
from sfo.training.fit import load_best


def test_demo_trains_both_and_reports(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    records = demo.run(tmp_path / "out", epochs=1, samples=12)
    text = (tmp_path / "out" / "demo.html").read_text()
    for label, record in records.items():
        assert f"<td>{label}</td>" in text
        assert f"{record.errors.percent:.3f}</td>" in text
    assert text.count("data:image/png;base64,") == 1 + len(records)
    assert not re.search(r'(src|href)="http', text)
    assert isinstance(load_best(tmp_path / "out" / "sfo-recommended"), SFO)
    assert "Report:" in capsys.readouterr().out
    assert "by Muon in batches of 8 samples, with a learning rate that rises to 0.01" in text
    assert "{&#x27;" not in text
    assert "{'" not in text
    demo._clear(tmp_path / "out")
    left = [path.name for path in (tmp_path / "out").iterdir()]
    assert left == ["demo.html"], "all that a demo writes is known as the demo's"


def test_demo_overwrites_nothing_but_a_demo(tmp_path):
    (tmp_path / "thesis.tex").write_text("ten years of work")
    with pytest.raises(ValueError, match="holds no demo"):
        demo.run(tmp_path)
    (tmp_path / "demo.html").write_text("an earlier demo")
    inside = tmp_path / "sfo-recommended" / "checkpoints"
    inside.mkdir(parents=True)
    (inside / "best.safetensors").write_text("its run")
    with pytest.raises(ValueError, match=r"not the demo's, such as thesis.tex"):
        demo.run(tmp_path)
    (tmp_path / "thesis.tex").rename(tmp_path / "sfo-recommended" / "thesis.tex")
    with pytest.raises(ValueError, match=r"such as sfo-recommended.thesis.tex"):
        demo.run(tmp_path)
    assert (inside / "best.safetensors").exists()
    assert (tmp_path / "sfo-recommended" / "thesis.tex").read_text() == "ten years of work"


def test_a_demo_that_was_stopped_can_be_begun_again(tmp_path, monkeypatch):
    def stopped(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(demo, "run_experiment", stopped)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            demo.run(tmp_path / "out", epochs=1, samples=12)
