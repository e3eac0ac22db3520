"""Arrays of the user's own: what is read, what is refused, and what is remembered."""

import re
import tracemalloc
import warnings

import h5py
import numpy as np
import pytest
import torch

from sfo.data.arrays import Arrays, split_by_share
from sfo.data.rows import array_rows, channel_moments
from sfo.grid import Grid

RNG = np.random.default_rng(0)
A, U = RNG.normal(size=(7, 2, 6, 5)), RNG.normal(3, 2, size=(7, 4, 6, 5))


def kinds(folder):
    """The same numbers in every kind of array."""
    a, u = A.astype("f4"), U.astype("f4")
    yield "numpy", a, u
    yield "double", a.astype("f8"), u.astype(">f8")
    yield "torch", torch.tensor(a, requires_grad=True), torch.tensor(u)
    maps = []
    for name, values in (("a", a), ("u", u)):
        maps.append(np.memmap(folder / name, "f4", "w+", shape=values.shape))
        maps[-1][:] = values
    yield "memmap", *maps
    file = h5py.File(folder / "both.h5", "w")
    file["a"], file["u"] = a, u
    yield "hdf5", file["a"], file["u"]


def test_every_kind_of_array_gives_the_same_rows_and_fingerprint(tmp_path):
    expected = torch.tensor(A.astype("f4"))
    digests = set()
    for kind, a, u in kinds(tmp_path):
        data = Arrays.of(a, u)
        for rows in (3, slice(1, 6, 2), [4, 0, 4], torch.tensor([6, 2])):
            assert torch.equal(data.a[rows], expected[rows]), kind
        assert torch.equal(data.a.select([5, 1])[:], expected[[5, 1]]), kind
        assert torch.equal(torch.cat(list(data.a.split(3))), expected), kind
        digests.add(data.check())
    assert len(digests) == 1


def test_the_fingerprint_tells_data_apart():
    base = Arrays.of(A, U).check()
    other = A.copy()
    other[6, 1, 5, 4] += 1e-3
    assert Arrays.of(A, U).check() == base
    for a, u in ((other, U), (A[::-1], U), (U[:, :2], U), (A[:, :, :, ::-1], U)):
        assert Arrays.of(a, u).check() != base


def test_moments_are_those_of_all_samples_at_once(monkeypatch):
    monkeypatch.setattr("sfo.data.rows.READ_NUMBERS", 250)
    mean, variance = channel_moments(array_rows(1e4 + U))
    torch.testing.assert_close(mean, torch.tensor(1e4 + U.mean((0, 2, 3))), rtol=1e-7, atol=0)
    # Of the numbers as they are read, in float32.
    read = (1e4 + U).astype("f4").astype("f8")
    torch.testing.assert_close(variance, torch.tensor(read.var((0, 2, 3))), rtol=1e-10, atol=0)


def test_a_file_larger_than_what_is_held_in_memory(tmp_path):
    """Going through 192 MB, and gathering batches from it, never holds a quarter of them."""
    shape = (768, 1, 256, 256)
    a = np.memmap(tmp_path / "a", "f4", "w+", shape=shape)
    a[::100] = 1.0
    tracemalloc.start()
    try:
        data = Arrays.of(a, a)
        data.check()
        mean, _ = channel_moments(data.a)
        pairs = data.pairs(split_by_share(len(data)), "train")
        for first in range(0, len(pairs), 8):
            pairs.a[torch.arange(first, min(first + 8, len(pairs)))].sum()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert float(mean) == pytest.approx(8 / 768)
    assert peak < 48e6


def refused(a, u, **meaning):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Arrays.of(a, u, **meaning).check()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("a", "u", "sentence"),
    [
        (A, U[:5], r"`a` and `u` must have as many samples, got 7 and 5\."),
        (A, U[:, :, :5], r"on the same grid, got \(6, 5\) and \(5, 5\)"),
        (A[:, :1, :, 0], U[:, :1, :5, 0], r"got \(6,\) and \(5,\); resample one of them\."),
        (A.astype(int), U, r"`a` must be floating point, got int64; convert it"),
        (A, U.astype(bool), r"`u` must be floating point, got bool"),
        (A + 1j, U, r"`a` must be real, got complex128; pass real and imaginary part as two"),
        (A, torch.tensor(U) + 1j, r"`u` must be real, got complex128"),
        (A[0, 0], U, r"`a` must be \(sample, channel, \*grid\) with one axis of points or more"),
        (U[:, 0, 0], U, r"got the shape \(7, 5\); a\[:, None\] gives it a channel axis"),
        (A, U[:, 0], r"must be on the same grid.*if `u` has no channel axis, u\[:, None\]"),
        (
            A.transpose(0, 2, 3, 1),
            U.transpose(0, 2, 3, 1),
            r"of the shapes \(7, 6, 5, 2\) and \(7, 6, 5, 4\)\. Channels come second.*moveaxis",
        ),
        (
            A[:, :1].transpose(0, 2, 3, 1),
            U[:, :1].transpose(0, 2, 3, 1),
            r"two points or more along the last axis.*Channels come second.*moveaxis\(a, -1, 1\)",
        ),
        (torch.ones(7, 2, 6, 5).int(), U, r"got int32; convert it, as with a\.float\(\)"),
        (dict(a=A), U, r"got dict; pass inputs and solutions as two arrays"),
        (A[:, :, :0], U[:, :, :0], r"none of them empty, got the shape \(7, 2, 0, 5\)"),
        (
            [1.0, 2.0],
            U,
            r"NumPy or torch array \(sample, channel, \*grid\), got list; np\.stack\(a\)",
        ),
    ],
)
def test_what_is_no_array_of_samples(a, u, sentence):
    assert re.search(sentence, refused(a, u))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_number_that_is_none_is_named(bad):
    u = U.copy()
    u[4, 3, 2, 1] = bad
    with np.errstate(over="ignore"):
        message = refused(A, u)
    assert message.startswith("Sample 4 of `u` holds NaN or infinity, first in channel 3 at the")
    assert "point (2, 1)" in message


@pytest.mark.parametrize(
    ("meaning", "sentence"),
    [
        (dict(names=("h", "u", "v")), r"as many channels for each of 3 `names`, got 4 in all"),
        (dict(times=(0.0, 1.0, 2.0)), r"as many channels for each of 3 `times`, got 4 in all"),
        (
            dict(names=("h", "u"), times=(0.0, 1.0, 2.0)),
            r"a channel for each of 2 `names` at each of 3 `times`, got 4 in all",
        ),
        (dict(grid=(6, 5)), r"`grid` must be a Grid, got \(6, 5\); as in sfo\.Grid"),
        (dict(times=(0.0, 0.0)), r"`times` must be finite and increase, got \(0\.0, 0\.0\)"),
        (dict(names=("h", "h")), r"`names` must differ from each other"),
        (dict(inputs=("h",)), r"`inputs` must name the fields of a's 2 channels"),
        (dict(grid=Grid((6,), (0.0,), (1.0,))), r"`grid` must have the points of the arrays, \(6"),
    ],
)
def test_a_meaning_that_does_not_fit(meaning, sentence):
    assert re.search(sentence, refused(A, U, **meaning))


@pytest.mark.parametrize(
    ("a", "u", "sentence"),
    [
        ((9, 16, 16), (9, 16, 16), r"16 and 16 channels on 16 points.*pass a\[:, None\]"),
        ((9, 20, 24), (9, 20, 24), r"20 and 20 channels on 24 points.*pass a\[:, None\]"),
        ((9, 8, 8, 8), (9, 8, 8, 8), r"8 and 8 channels on 8 × 8 points.*pass a\[:, None\]"),
        ((9, 16, 16, 3), (9, 16, 16, 3), r"If the fields have no channel|Channels come second"),
        ((9, 32, 16, 3), (9, 1, 16, 3), r"32 and 1 channels on 16 × 3 points\. Channels come"),
    ],
)
def test_shapes_that_mostly_mean_something_else(a, u, sentence):
    """They are taken, with a warning, unless something is said of grid, names or times."""
    a, u = np.ones(a), np.ones(u)
    with pytest.warns(UserWarning, match=sentence):
        Arrays.of(a, u)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Arrays.of(a, u, times=range(u.shape[1]))


@pytest.mark.parametrize(
    ("a", "u"), [((9, 10, 64), (9, 10, 64)), ((9, 1, 16, 16), (9, 16, 16, 16)), ((9, 4, 4, 4),) * 2]
)
def test_usual_shapes_are_read_in_silence(a, u):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Arrays.of(np.ones(a), np.ones(u))


def test_channels_are_fields_by_their_frames():
    assert Arrays.of(A, U).names == ("u1", "u2", "u3", "u4")
    assert Arrays.of(A, U).times == (0.0,)
    two = Arrays.of(A, U, names=("h", "v"))
    assert two.times == (0.0, 1.0)
    field = Arrays.of(A, U, times=(0.0, 0.1, 0.2, 0.5), inputs=("u", "k"))
    assert field.names == ("u",)
    values = two.pairs(split_by_share(7), "train").trajectory(two.u[:])
    np.testing.assert_array_equal(values[:, 1, 0], U[:, 1].astype("f4"))


@pytest.mark.parametrize(("n", "share", "sizes"), [(3, 0.1, (1, 1, 1)), (50, 0.2, (30, 10, 10))])
def test_a_split_has_every_sample_once(n, share, sizes):
    split = split_by_share(n, share)
    parts = split.train, split.validation, split.test
    assert tuple(map(len, parts)) == sizes
    assert sorted(sum(parts, ())) == list(range(n))
    assert split_by_share(n, share) == split


@pytest.mark.parametrize(
    ("n", "share", "sentence"),
    [(2, 0.1, "At least 3 samples are needed"), (9, 0.5, "`validation` must be a share between")],
)
def test_too_few_samples_to_split(n, share, sentence):
    with pytest.raises(ValueError, match=sentence):
        split_by_share(n, share)


@pytest.mark.parametrize("size", [1e20, 1e30, 1e-15, 1e-20, 1e-42, 1e-50, 0.0])
@pytest.mark.parametrize("which", ["a", "u"])
def test_numbers_whose_squares_float32_does_not_hold(which, size):
    """Their errors were 0, so that a model was "trained" without learning, or NaN."""
    given = dict(a=A, u=U) | {which: size * {"a": A, "u": U}[which]}
    with pytest.raises(ValueError, match=rf"largest absolute value of `{which}`.*divide `{which}`"):
        Arrays.of(**given).check()


@pytest.mark.parametrize("size", [1e-11, 1e13])
def test_numbers_of_usual_sizes_are_taken(size):
    assert Arrays.of(size * A, size * U).check()


def test_masked_values_are_not_taken_for_numbers():
    masked = np.ma.masked_array(A, mask=A > 1)
    with pytest.raises(ValueError, match=r"`a` must have no masked values"):
        Arrays.of(masked, U)
    assert Arrays.of(masked.filled(0.0), U).check()
    assert Arrays.of(np.ma.masked_array(A), U).check() == Arrays.of(A, U).check()


@pytest.mark.parametrize(
    ("a", "sentence"),
    [
        (torch.empty(7, 2, 6, 5, device="meta"), "got one on the meta device"),
        (torch.tensor(A).to_sparse(), "got one of the layout torch.sparse_coo"),
        (np.float64(1.0), "got a single number"),
    ],
)
def test_tensors_without_numbers_in_rows(a, sentence):
    with pytest.raises(ValueError, match=rf"`a` must be .*{sentence}"):
        Arrays.of(a, U)


@pytest.mark.parametrize(
    ("meaning", "sentence"),
    [
        (dict(names=("\x1b[31m",)), "`names` must be text that can be printed"),
        (dict(names=("",)), "`names` must be text that can be printed"),
        (dict(inputs=("a", 1)), "`inputs` must be text that can be printed"),
        (dict(times=0.5), "`times` must be numbers, one per frame, got 0.5"),
        (dict(times=("now", "then", "later", "")), "`times` must be numbers, one per frame"),
        (dict(grid=5), "`grid` must be a Grid, got 5"),
    ],
)
def test_a_meaning_of_the_wrong_kind(meaning, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Arrays.of(A, U, **meaning)


def test_a_share_of_the_wrong_kind():
    with pytest.raises(ValueError, match=r"share between 0 and 0\.5, got x"):
        split_by_share(20, "x")  # type: ignore[arg-type]


def test_a_text_is_no_list_of_names():
    """Its letters were taken for names of fields."""
    a = np.ones((5, 2, 16), "f4")
    for bad in ("uv", b"uv", 5):
        for label in ("names", "inputs"):
            with pytest.raises(ValueError, match=rf"`{label}` must be a list of names, got"):
                Arrays.of(a, a, **{label: bad})
    assert Arrays.of(a, a, names=["u", "v"]).names == ("u", "v")
