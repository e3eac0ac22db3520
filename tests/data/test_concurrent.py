"""Two commands at once on one cache: each ends well, and no file is lost or damaged."""

import os
import random
import tempfile
from pathlib import Path

import pytest
from data.tiny import Tiny, TinyGroups
from training.small_runs import ended, in_child

from sfo import cli
from sfo.data.download import download
from sfo.data.generate import generate
from sfo.data.hdf5 import DataFile
from sfo.data.published import PublishedFile


def make(kind, path, temporary):
    tempfile.tempdir = str(temporary)
    temporary.mkdir(exist_ok=True)
    generate(kind, path, scale="smoke", workers=1)


def spellings(folder):
    """The same file by its name, through a linked folder, through a link to it, and relative."""
    (folder / "cache").mkdir()
    (folder / "linked").symlink_to(folder / "cache")
    (folder / "link.hdf5").symlink_to(folder / "cache" / "file.hdf5")
    return [
        folder / "cache" / "file.hdf5",
        folder / "linked" / "file.hdf5",
        folder / "link.hdf5",
        Path(os.path.relpath(folder / "cache" / "file.hdf5")),
    ]


@pytest.mark.parametrize("other", [0, 1, 2, 3])
def test_two_generations_of_one_file(other, tmp_path):
    """Whatever their temporary folders and however they spell the path."""
    kind = Tiny(seconds=0.05) if other % 2 else TinyGroups(seconds=0.05)
    truth = generate(kind, tmp_path / "truth", scale="smoke", workers=1).read_bytes()
    paths = spellings(tmp_path)
    pair = [
        in_child(make, kind, path, tmp_path / f"tmp-{number}")
        for number, path in enumerate([paths[0], paths[other]])
    ]
    assert [ended(process) for process in pair] == [0, 0]
    assert paths[0].read_bytes() == truth
    assert (tmp_path / "link.hdf5").is_symlink()
    assert {p.name for p in paths[0].parent.iterdir()} == {"file.hdf5", ".file.hdf5.lock"}


def test_a_file_is_read_again_before_it_gets_its_name(tmp_path, monkeypatch):
    """What the disk kept is not what was written: nothing must appear under the final name."""
    from sfo.data import hdf5

    store = hdf5._write_tensor

    def faulty(file, *rest):
        store(file, *rest)
        file["tensor"][2, 1, 3] += 1

    monkeypatch.setattr(hdf5, "_write_tensor", faulty)
    with pytest.raises(OSError, match=r"not written as it should be.*sample 2 .*checksum"):
        generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)
    assert not (tmp_path / "file").exists()
    monkeypatch.undo()
    assert len(DataFile(generate(Tiny(), tmp_path / "file", scale="smoke", workers=1))) == 10


def test_a_finished_file_in_a_read_only_folder_is_found(tmp_path, monkeypatch):
    """Nothing is to be written, so no lock is needed either."""
    path = generate(Tiny(), tmp_path / "file", scale="smoke", workers=1)

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("sfo.data.generate.lock_path", refuse)
    assert generate(Tiny(), path, scale="smoke", workers=1) == path
    with pytest.raises(OSError, match=r"Cannot write .*other: Permission denied.*--out"):
        generate(Tiny(), tmp_path / "other", scale="smoke", workers=1)


def test_a_download_guards_the_file_that_a_link_leads_to(tmp_path, monkeypatch):
    """The lock and the part lie beside the file, not beside the link."""
    (tmp_path / "store").mkdir()
    (tmp_path / "waves.h5").symlink_to(tmp_path / "store" / "waves.h5")
    file = PublishedFile("waves", "waves.h5", "http://x.invalid/", 3, None, None, "", "")
    monkeypatch.setattr("sfo.data.download._complete", lambda part, *rest: part.path.touch())
    with pytest.raises(OSError, match="moved aside"):
        download("waves", tmp_path, published={"waves": file})
    assert {p.name for p in (tmp_path / "store").iterdir()} == {".waves.h5.lock", "waves.h5.bad"}


COMMANDS = [
    "generate allen_cahn --scale smoke --samples 12 --workers {workers}",
    "generate burgers --scale smoke --samples 6 --workers {workers}",
    "show allen_cahn --scale smoke --samples 12 --out {out}.png",
    "train --benchmark allen_cahn --scale smoke --samples 12 --epochs 1 --model.n-modes 4 "
    "--model.hidden-channels 8 --model.n-layers 1 --out {out}",
    "train --benchmark allen_cahn --scale smoke --samples 12 --epochs 1 --model fno "
    "--model.hidden-channels 8 --model.n-layers 1 --out shared-{round}",
]


def command(words, environment, folder):
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = environment["TMPDIR"]
    Path(environment["TMPDIR"]).mkdir(exist_ok=True)
    with open(os.devnull, "w") as quiet:
        os.dup2(quiet.fileno(), 1)
        os.dup2(quiet.fileno(), 2)
    cli.main(words)


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_pairs_of_commands_on_one_cache(tmp_path):
    """Every pair begins with an empty cache; what is in it then has the bytes of one alone.

    Two runs in one folder cannot both be: the second is refused with exit code 2.
    """
    # So that children need not import them.
    import sfo.evaluation.cost
    import sfo.experiments.progress
    import sfo.experiments.run
    import sfo.plot.fields
    import sfo.plot.predictions  # noqa: F401

    rng = random.Random(1)
    (tmp_path / "linked").symlink_to(tmp_path)
    truth: dict[str, bytes] = {}
    for number in range(100):
        cache = tmp_path / f"cache-{number}"
        cache.mkdir()
        started = []
        chosen = rng.choices(COMMANDS, k=2)
        for half, text in enumerate(chosen):
            words = text.format(out=f"out-{number}-{half}", workers=half + 1, round=number).split()
            data = tmp_path / rng.choice([".", "linked"]) / cache.name
            environment = {"SFO_DATA": str(data), "TMPDIR": str(tmp_path / f"tmp-{half}")}
            started.append(in_child(command, words, environment, tmp_path))
        # Each takes seconds; on a busy machine perhaps a minute.
        codes = [ended(process, 300) for process in started]
        both = chosen[0] == chosen[1] == COMMANDS[-1]
        assert sorted(codes) in ([[0, 2]] if both else [[0, 0]]), chosen
        for path in cache.glob("*.hdf5"):
            assert path.read_bytes() == truth.setdefault(path.name, path.read_bytes()), path
            assert all(DataFile(path).raw(i) for i in range(len(DataFile(path))))
        assert not [p for p in cache.iterdir() if p.suffix not in (".hdf5", ".lock")]
