"""What the documents show is true: their code runs, their commands exist, their links lead on."""

import functools
import re
import shlex

import pytest
from pages import DOCS, OWN, PAGES, ROOT, TUTORIALS, blocks, briefly, name_of

import sfo.zoo
from sfo import cli
from sfo.registry import BENCHMARKS, MODELS

PYTHON = [
    page
    for page in OWN
    if page.parent != TUTORIALS and any(kind == "python" for kind, _ in blocks(page))
]
ALONE = [
    page
    for page in PYTHON
    if name_of(page) == "README.md" or all(kind != "bash" for kind, _ in blocks(page))
]
"""Pages whose Python needs no command; tests/test_page_commands.py runs the others."""
HARDENING = DOCS / "hardening.md"


@pytest.mark.parametrize("page", ALONE, ids=name_of)
def test_code_runs(page, tmp_path, monkeypatch, registries):
    """Python blocks of a page one after the other, with one epoch each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFO_DATA", str(tmp_path / "data"))
    names = {"__name__": "__main__"}
    for kind, text in blocks(page):
        if kind == "python":
            exec(compile(briefly(text), page.name, "exec"), names)


def commands(page):
    """Lines of any block, and of the text, that call `sfo`."""
    text = page.read_text()
    code = [body for kind, body in blocks(page) if kind not in ("python", "text")]
    code += re.findall(r"`(sfo [^`\n]+)`", text)
    lines = "\n".join(code).replace("\\\n", " ").splitlines()
    typed = {re.sub(r"^\s*(\w*\$ +)?", "", line).strip() for line in lines}
    return sorted(line for line in typed if re.match(r"sfo [a-z-]+", line))


@pytest.mark.parametrize("page", OWN, ids=name_of)
def test_commands_can_be_typed(page, monkeypatch):
    """Every command and option that a page shows exists; nothing is run."""

    def idle(command):
        @functools.wraps(command)
        def nothing(*args, **kwargs):
            return None

        return nothing

    monkeypatch.setattr(cli, "COMMANDS", {k: idle(v) for k, v in cli.COMMANDS.items()})
    monkeypatch.setattr(cli.plugins, "load_all", lambda plugins: None)
    for line in commands(page):
        # [--option value] may be left out or typed.
        words = shlex.split(re.sub(r"\[(--.*?)\]", r"\1", line), comments=True)[1:]
        assert words[0] in cli.COMMANDS or words[0].startswith("--"), line
        if "…" in line or len(words) == 1 or any(word.isupper() for word in words):
            continue  # A pattern, such as `sfo train --model NAME`.
        assert _accepted(words), line


def _accepted(words):
    try:
        cli.main(words)
    except SystemExit as stop:
        return not stop.code
    return True


def anchors(page):
    """Of its headings, as the site makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", page.read_text()):
        if "://" in target:
            continue
        there = page.parent / target if target else page
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), f"{target}#{anchor}"


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


def test_the_readme_says_what_the_report_says(monkeypatch):
    """After another report: `python docs/assemble.py readme`."""
    monkeypatch.syspath_prepend(DOCS)
    import assemble

    readme = (ROOT / "README.md").read_text()
    assert assemble.result_sentence() in readme
    assert assemble.start_sentence() in readme


def test_the_readme_says_what_speaks_against_a_difference(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    import assemble

    assert "one seed" in assemble.doubt("**1.01 (1 seed)**", "PINO 1.86 ± 0.1 (paper FNO 0.4)")
    assert "overlap" in assemble.doubt("**0.07 ± 0.02**", " PINO 0.08 ± 0.03 (paper SVD-NO 0.33)")
    assert not assemble.doubt("**0.177 ± 0.011**", " neuraloperator FNO 0.39 ± 0.05 (paper – )")


def test_errors_on_a_finer_grid_are_those_of_the_cards():
    """Of the pretrained models that the page names."""
    text = (DOCS / "guides" / "other_grids.md").read_text()
    for name, title in (("burgers", "Burgers"), ("darcy", "Darcy"), ("allen_cahn", "Allen–Cahn")):
        card = sfo.zoo.card(name)
        own, finer = re.search(rf"{title} (?:has )?([\d.]+)\D*? and ([\d.]+)", text).groups()
        assert float(own) == float(f"{card['test_error_percent']:.2g}")
        assert float(finer) == float(f"{card['double_grid_error_percent']:.2g}")


def test_every_equation_can_be_drawn(monkeypatch):
    """With the letters that it has: a symbol that matplotlib does not know is an error."""
    monkeypatch.syspath_prepend(DOCS)
    import assemble

    text = "".join(page.read_text() for page in OWN)
    formulas = re.findall(r"\$\$(.+?)\$\$", text, re.S)
    assert len(formulas) >= 10
    for formula in formulas:
        drawn = assemble.outlines(formula)
        assert drawn.count("Z") >= 5, formula
    page = assemble.with_equations("a\n\n$$ x^2 $$\n\n```text\n$$ x $$\n```\n")
    assert page.count("<svg") == 1, "code stays as it is"


def test_the_start_page_counts_as_the_package_does():
    """Variants of a benchmark, made as published files were, are no equations of their own."""
    words = (DOCS / "index.md").read_text()
    numbers = dict(enumerate(["nine", "ten", "eleven", "twelve", "thirteen"], start=9))
    assert f"{numbers[len(MODELS.names()) - 1]} models to compare it with" in words
    cards = [card for card in (DOCS / "cards").glob("*.md") if card.name != "README.md"]
    assert f"{numbers[len(cards)]} equations" in words
    assert {card.stem for card in cards} <= set(BENCHMARKS.names())


def test_every_word_of_the_glossary_is_linked():
    """A word that no page leads to is explained to nobody."""
    text = "".join(page.read_text() for page in OWN)
    for anchor in anchors(DOCS / "glossary.md") - {"glossary"}:
        assert f"glossary.md#{anchor})" in text, anchor


def test_tests_that_pages_name_exist():
    """As `tests/test_files.py::test_one_lock_…`: file and function."""
    text = "".join(page.read_text() for page in OWN)
    named = set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text))
    assert len(named) > 50, "docs/hardening.md names one for each fault"
    for file, function in named:
        assert (ROOT / file).is_file(), file
        there = re.findall(r"^(?:async )?def (test_\w+)", (ROOT / file).read_text(), re.M)
        assert not function or function in there, f"{file}::{function}"


def test_every_fault_of_the_list_has_a_test():
    rows = re.findall(r"^\| (\d+) \|.*`tests/[\w/]+\.py::\w+`", HARDENING.read_text(), re.M)
    assert {int(line) for line in rows} == set(range(1, 13))
