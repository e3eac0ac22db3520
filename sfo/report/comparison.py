"""Runs side by side: errors, cost, settings that differ, and curves of the validation error."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sfo.evaluation.metric import metric_names, metric_text, metric_title
from sfo.experiments.blocks import (
    Block,
    Command,
    Details,
    Entry,
    Heading,
    Picture,
    Problems,
    Row,
    Table,
    Text,
    png,
    ranked,
)
from sfo.plot.curves import training_curves
from sfo.report.folders import ReportedFolder, ReportedRun
from sfo.report.provenance import train_command
from sfo.titles import title as title_of

COST = {
    "seconds_per_epoch": ("seconds per epoch", 1.0),
    "training_memory": ("memory of a step, MB", 1e-6),
    "samples_per_second": ("predictions per second", 1.0),
    "flops": ("GFLOP per prediction", 1e-9),
}
"""What is shown of a run's cost.json: title, and the factor to its unit."""


def compare_runs(folders: Sequence[ReportedFolder]) -> tuple[str, list[Block]]:
    """Title and blocks of the comparison, a section for each set of data."""
    runs = _distinct(run for folder in folders for run in folder.runs)
    blocks: list[Block] = []
    bad = tuple(problem for folder in folders for problem in folder.problems)
    if not runs:
        raise ValueError(f"There is no run to report: {' '.join(bad) or 'the folders hold none.'}")
    if bad:
        blocks.append(Problems("Left out of this comparison:", bad))
    blocks.append(
        Text(
            "Errors are on the test samples, with the weights of the epoch that had the lowest "
            "validation error. Of runs on the same data the lowest error is bold and the second "
            "lowest underlined (in Markdown: italic)."
        )
    )
    groups: dict[str, list[ReportedRun]] = {}
    for run in runs:
        groups.setdefault(run.experiment.data.model_dump_json(), []).append(run)
    for number, group in enumerate(groups.values(), start=1):
        blocks += _section(group, number)
    title = f"Comparison of {len(runs)} runs" if len(runs) > 1 else f"The run {runs[0].label}"
    return title, blocks


def _distinct(runs: Iterable[ReportedRun]) -> list[ReportedRun]:
    """The runs with labels that differ."""
    out: list[ReportedRun] = []
    seen: dict[str, int] = {}
    for run in runs:
        seen[run.label] = seen.get(run.label, 0) + 1
        again = f" ({seen[run.label]})" if seen[run.label] > 1 else ""
        out.append(replace(run, label=run.label + again))
    return out


def _section(runs: Sequence[ReportedRun], number: int) -> list[Block]:
    data = runs[0].experiment.data
    kind = f"{data.scale} scale" if data.arrays is None else "data of your own"
    title = f"{title_of(data.benchmark)}, {kind}"
    blocks: list[Block] = [Heading(title, f"data-{number}"), error_table(runs)]
    finished = [run for run in runs if run.record is not None]
    if finished:
        blocks.append(metric_table(finished).fitted_to_page())
    if len(runs) > 1:
        blocks.append(difference_table(runs).fitted_to_page())
    histories = {run.label: list(run.history) for run in runs if run.history}
    if histories:
        caption = "Validation and training error against the epoch."
        blocks.append(Picture(f"curves-{number}", png(training_curves(histories)), caption))
    commands = (Command(train_command(run.experiment)) for run in runs)
    return [*blocks, Details("The command for each run", tuple(commands))]


def error_table(runs: Sequence[ReportedRun]) -> Table:
    """A row per run: its error, how it was found, and its cost where it was measured."""
    keys = [key for key in COST if any(run.cost and run.cost.get(key) for run in runs)]
    errors, others = [], []
    for run in runs:
        record = run.record
        if record is None:
            errors.append(Entry("not finished"))
            others.append([Entry("–")] * 3)
        else:
            percent = record.errors.percent
            # A diverged run has no number to compare.
            value = percent if percent < float("inf") else None
            errors.append(Entry(f"{percent:.4g}", value))
            texts = (
                f"{100 * record.validation:.4g}",
                f"{record.best_epoch + 1} of {record.epochs}",
                f"{record.parameters:,}",
            )
            others.append([Entry(text) for text in texts])
        others[-1] += [_cost_entry(run, key) for key in keys]
    rows = [
        Row(run.label, (error, *rest))
        for run, error, rest in zip(runs, ranked(errors), others, strict=True)
    ]
    titles = ("error, %", "validation, %", "best epoch", "parameters")
    columns = ("", *titles, *(COST[key][0] for key in keys))
    notes = tuple(
        f"{run.label} has {len(run.history)} of {run.experiment.train.epochs} epochs; `sfo resume` "
        "completes it."
        for run in runs
        if run.record is None
    )
    return Table("Errors and cost", columns, tuple(rows), notes)


def _cost_entry(run: ReportedRun, key: str) -> Entry:
    value = (run.cost or {}).get(key)
    return Entry("–" if value is None else f"{COST[key][1] * value:.3g}")


def metric_table(runs: Sequence[ReportedRun]) -> Table:
    """Every metric of every run; "–" where a Record was made before there was the metric."""
    errors = [run.record.errors for run in runs if run.record is not None]
    rows = tuple(
        Row(metric_title(metric), tuple(Entry(metric_text(metric, e)) for e in errors))
        for metric in metric_names(*errors)
    )
    return Table("Every metric", ("", *(run.label for run in runs)), rows)


def difference_table(runs: Sequence[ReportedRun]) -> Table:
    """The settings in which the runs differ."""
    settings = [_flat(run.experiment.model_dump(mode="json")) for run in runs]
    keys = dict.fromkeys(key for entries in settings for key in entries)
    rows = tuple(
        Row(key, tuple(Entry(str(entries.get(key, "–"))) for entries in settings))
        for key in keys
        if len({json.dumps(entries.get(key)) for entries in settings}) > 1
    )
    columns = ("", *(run.label for run in runs))
    notes = () if rows else ("None: the runs have the same settings.",)
    return Table("Settings that differ", columns, rows, notes, kind="words")


def _flat(entries: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their path, as in train.learning_rate."""
    out: dict[str, Any] = {}
    for key, value in entries.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out
