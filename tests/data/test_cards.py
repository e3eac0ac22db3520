"""The cards say what the code does: sizes, options, defaults, published files, commands."""

import re
import shlex
from dataclasses import fields, is_dataclass
from math import prod
from pathlib import Path

import pytest
from matplotlib.image import imread

from sfo.data.benchmarks import option_names
from sfo.data.published import PUBLISHED
from sfo.registry import BENCHMARKS

DOCS = Path(__file__).parents[2] / "docs"
CARDS = {path.stem: path.read_text() for path in (DOCS / "cards").glob("*.md")}
INDEX = CARDS.pop("README")
NAMES = BENCHMARKS.names()


def card_of(name):
    """The card that a benchmark is on: a variant as published is on that of the paper's."""
    return BENCHMARKS[name].paper_name or name


def part(name):
    """Where a benchmark is described: its card, or the section of its card named after it."""
    card = CARDS[card_of(name)]
    if name in CARDS:
        return card.split("\n## As published")[0]
    return re.search(rf"\n## As published: `{name}`\n(.*?)\n## ", card, re.DOTALL)[1]


def rows(text, columns):
    """The cells of all table rows of so many columns."""
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line) for line in lines if len(line) == columns]


def defaults(benchmark):
    """Of the options, and of the constants of the equation."""
    owners = [benchmark, benchmark.pde]
    known = {f.name: getattr(owner, f.name) for owner in owners for f in fields(owner)}
    return {name: value for name, value in known.items() if not is_dataclass(value)}


def test_every_benchmark_has_a_card():
    assert set(CARDS) == {card_of(name) for name in NAMES}
    assert set(PUBLISHED) == {BENCHMARKS[name].paper_name for name in NAMES} - {None}


@pytest.mark.parametrize("name", NAMES)
def test_the_index_leads_to_it(name):
    card = card_of(name)
    assert re.search(rf"\[.*\]\({card}\.md\).*`{name}`", INDEX)
    assert f"`{name}`" in CARDS[card].splitlines()[0]


@pytest.mark.parametrize("name", NAMES)
def test_sizes(name):
    """The table of scales, row by row."""
    benchmark = BENCHMARKS[name]
    expected = []
    for title, scale in benchmark.scales.items():
        stored = benchmark.stored(scale)[0]
        grids = benchmark.grid(scale), stored, stored.subsample(scale.stride)
        points = [" × ".join(f"{n:,}" for n in grid.shape) for grid in grids]
        expected.append((title, f"{scale.samples:,}", *points, str(scale.frames)))
    assert rows(part(name), 6)[-3:] == expected


@pytest.mark.parametrize("name", CARDS)
def test_file_sizes(name):
    """What desk and paper files weigh: their numbers in float32, and at most 15 % beside them."""
    benchmark, sizes = BENCHMARKS[name], re.findall(r"([\d.]+) ([MG])B", part(name))
    for scale, (number, unit) in zip(("desk", "paper"), sizes, strict=False):
        grid, times = benchmark.stored(benchmark.scale(scale))
        fields = len(benchmark.names) * len(times) + len(benchmark.static_names)
        least = 4 * benchmark.scale(scale).samples * fields * prod(grid.shape)
        written = float(number) * {"M": 1e6, "G": 1e9}[unit]
        assert 0.99 * least < written < 1.15 * least, scale


@pytest.mark.parametrize("name", NAMES)
def test_options(name):
    """Every option with its default; a variant's section has those that differ."""
    written = {row[0]: row[1] for row in rows(part(name), 3)}
    original = card_of(name)
    if name not in CARDS and "as above" in part(name):
        written = {**{row[0]: row[1] for row in rows(part(original), 3)}, **written}
    benchmark = BENCHMARKS[name]
    known = {f"`{key}`": f"`{value!r}`" for key, value in defaults(benchmark).items()}
    assert {key.strip("`") for key in known} == set(option_names(benchmark))
    assert {key: value for key, value in written.items() if key.startswith("`")} == known


@pytest.mark.parametrize("name", CARDS)
def test_fields(name):
    """How many channels go in, and where time ends."""
    benchmark = BENCHMARKS[name]
    moving = sum(field in benchmark.names for field in benchmark.inputs)
    channels = benchmark.n_input * moving + len(benchmark.inputs) - moving
    assert re.search(rf"\*\*Fields\.\*\* In: .* {channels} channel", CARDS[name])
    steady = not any(field in benchmark.names for field in benchmark.inputs)
    if name != "maxwell" and not steady:
        assert f"0 < t ≤ {benchmark.duration:g}" in CARDS[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files(name):
    """Name, size, checksums, licence and address."""
    file, card = PUBLISHED[name], dict(rows(CARDS[name], 2))
    assert card["name"] == f"`{file.file_name}`"
    assert card["licence"] == file.licence
    where = file.address or re.search(r"https://\S+", file.note)[0]
    assert where in card["from"]
    if file.size is None:
        assert "not known" in card["size"]
    else:
        assert card["size"] == f"{file.size} bytes"
    for kind, digest in (("MD5", file.md5), ("SHA-256", file.sha256)):
        assert digest is None or card[kind] == f"`{digest}`"
        assert digest is not None or "not known" in card.get(kind, card["size"])


@pytest.mark.parametrize("name", CARDS)
def test_pictures(name):
    """Each stands beside the command that makes it, and is small."""
    card = CARDS[name]
    for picture in re.findall(r"\]\(\.\./images/cards/(.*?)\.png\)", card):
        path = f"docs/images/cards/{picture}.png"
        assert f"sfo show {picture} --scale desk --samples 6 --out {path}" in card
        file = DOCS.parent / path
        assert file.stat().st_size < 300_000
        assert min(imread(file).shape[:2]) > 300
    assert f"../images/cards/{name}.png" in card


@pytest.mark.parametrize("page", ["README", *CARDS])
def test_commands_can_be_typed(page):
    """Names, scales, options and files in the commands exist."""
    text = {**CARDS, "README": INDEX}[page]
    commands = [shlex.split(line, comments=True) for line in re.findall(r"^ *sfo .*", text, re.M)]
    assert len(commands) >= 5
    made = {command[-1] for command in commands if "--out" in command}
    for _, command, target, *arguments in commands:
        if command == "doctor":
            published = {file.file_name for file in PUBLISHED.values()}
            assert Path(target).name in published | made
            continue
        assert target in (PUBLISHED if command == "download" else BENCHMARKS)
        given = dict(zip(arguments[::2], arguments[1::2], strict=True))
        assert set(given) <= {"--scale", "--samples", "--out", "--option"}
        if command != "download":
            BENCHMARKS[target].scale(given.get("--scale", "desk"))
        if "--option" in given:
            key, value = given["--option"].split("=")
            default = defaults(BENCHMARKS[target])[key]
            BENCHMARKS[target].with_options(**{key: type(default)(value)})
