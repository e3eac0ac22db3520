"""A full or broken disk: the run ends with a clear error, and continues when it is mended."""

import errno
import os
import re
import tempfile
import warnings

import pytest
from small_runs import small, traces

from sfo.training.fit import fit
from sfo.training.prepare import load_pairs

CALLS = [(os, "fsync"), (os, "replace"), (os, "link"), (os, "fdopen"), (tempfile, "mkstemp")]


def fail_at(patch, place, error):
    """Let the `place`-th of these calls raise an error; returns a list that counts them."""
    made = []

    def faulty(call):
        def attempt(*arguments, **options):
            made.append(call)
            if len(made) == place:
                raise error
            return call(*arguments, **options)

        return attempt

    for owner, name in CALLS:
        patch.setattr(owner, name, faulty(getattr(owner, name)))
    return made


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "No space left on device"), OSError(errno.EIO, "Input/output error")],
    ids=["full", "broken"],
)
def test_a_fault_at_any_call(tmp_path, error):
    """Odd calls are tried with one error, even ones with the other, beginning with the first."""
    experiment = small(epochs=2, batch_size=20)
    pairs = {part: load_pairs(experiment, part) for part in ("train", "validation")}
    fit(experiment, tmp_path / "whole", **pairs)
    errors, place = [], 1 + (error.errno == errno.EIO)
    while True:
        folder = tmp_path / f"{place}"
        with pytest.MonkeyPatch.context() as patch:
            made = fail_at(patch, place, error)
            try:
                fit(experiment, folder, **pairs)
            except ValueError as raised:
                errors.append(str(raised))
        if len(made) < place:
            break
        fit(experiment, folder, resume="auto", **pairs)
        assert traces(folder) == traces(tmp_path / "whole")
        place += 2
    assert len(errors) > 15
    assert all(re.match(rf"Cannot (save|write) .*{error.strerror}\. ", e) for e in errors)


def test_a_real_limit_on_the_size_of_files(tmp_path):
    resource = pytest.importorskip("resource")
    experiment = small()
    fit(experiment, tmp_path / "whole")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(ValueError, match=r"Cannot save .*step-00000003.*too large\. Earlier"):
            fit(experiment, tmp_path / "full")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    fit(experiment, tmp_path / "full", resume=True)
    assert traces(tmp_path / "full") == traces(tmp_path / "whole")


def test_a_damaged_checkpoint_costs_only_the_steps_since_the_one_before(tmp_path):
    experiment = small()
    fit(experiment, tmp_path)
    whole = traces(tmp_path)
    newest = tmp_path / "checkpoints" / "step-00000009.safetensors"
    damaged = bytearray(newest.read_bytes())
    damaged[-1] ^= 1
    newest.unlink()
    newest.write_bytes(damaged)
    steps_taken = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(
            experiment,
            tmp_path,
            resume=True,
            progress=lambda status: steps_taken.append(status.step),
        )
    assert any("step-00000009.safetensors is refused" in str(w.message) for w in caught)
    assert steps_taken == [7, 8, 9]
    assert traces(tmp_path) == whole
