"""Random command lines and configurations: a sentence or a result, and no file lost or damaged."""

import pytest
from fuzz import command_line, configuration, files, fingerprints, problem_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind, and all modules loaded, so that children need not."""
    import sfo.demo
    import sfo.evaluation.cost
    import sfo.experiments.pretraining
    import sfo.experiments.run
    import sfo.models.export
    import sfo.plot.predictions
    import sfo.report.build
    import sfo.report.theory  # noqa: F401

    made = tmp_path_factory.mktemp("fuzz") / "here"
    made.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SFO_DATA", str(made / "cache"))
        patch.setenv("MPLBACKEND", "Agg")
        patch.chdir(made)
        files(made)
        yield made


def try_lines(numbers, folder):
    before = fingerprints(folder)
    problems = {}
    for number in numbers:
        words = command_line(number)
        problem = problem_of(words, folder, before)
        if problem is not None:
            problems[f"{number}: {words}"] = problem
    assert not problems, "\n\n".join(f"{case}\n{why}" for case, why in problems.items())


def try_configurations(numbers, folder):
    text = (folder / "run" / "experiment.json").read_text()
    path, problems = folder.parent / "config.json", {}
    before = fingerprints(folder)
    for number in numbers:
        made = configuration(number, text)
        path.write_text(made)
        words = ["train", "--config", str(path), "--out", f"../new/config-{number}"]
        problem = problem_of(words, folder, before)
        if problem is not None:
            problems[f"{number}: {made}"] = problem
    assert not problems, "\n\n".join(f"{case}\n{why}" for case, why in problems.items())


def test_some_command_lines(folder):
    try_lines(range(500, 512), folder)


def test_some_configurations(folder):
    try_configurations(range(200, 208), folder)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_command_lines(folder):
    try_lines(range(500), folder)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_hundred_configurations(folder):
    try_configurations(range(200), folder)
