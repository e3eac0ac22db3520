"""The report of a folder of results: one page of HTML, the same in Markdown, and the figures.

The same results give the same bytes: there are no dates, no machines and no absolute paths in it.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape, unescape
from pathlib import Path

from sfo.data.benchmarks import ScaleName
from sfo.experiments.blocks import (
    Block,
    Bullets,
    Command,
    Details,
    Heading,
    Picture,
    Problems,
    Table,
    Text,
)
from sfo.experiments.measurements import MEASUREMENTS
from sfo.experiments.paper import INCONSISTENCIES
from sfo.experiments.present import study_blocks
from sfo.experiments.results import Results, name
from sfo.experiments.study import as_study, study_names
from sfo.experiments.study_results import StudyResults, scales, study_results
from sfo.experiments.study_results import table as measured_table
from sfo.files import unfinished
from sfo.report import markdown, page
from sfo.report.comparison import compare_runs
from sfo.report.folders import ReportedFolder, read_folder
from sfo.report.limits import limits, size_table
from sfo.report.provenance import provenance


def write(
    *folders: str | os.PathLike[str], out: str | os.PathLike[str] | None = None
) -> list[Path]:
    """Write report.html, report.md and figures/*.png; returns their paths.

    One folder of results gives the report of its studies; run folders, or several folders of any
    kind, give a comparison of their runs. Pictures of an older report that this one does not show
    are removed.

    Args:
        folders: Folders of results, as `sfo reproduce` makes them, run folders, as `sfo train`
            makes them, or folders of run folders.
        out: Where the files go; None: into the folder if there is one, else into ./report.
    """
    paths = [Path(folder) for folder in folders]
    if not paths:
        raise ValueError("Name at least one folder of results or of a run.")
    target = Path(out) if out is not None else paths[0] if len(paths) == 1 else Path("report")
    return save(target, *report([read_folder(path) for path in paths]))


def save(folder: Path, title: str, blocks: Sequence[Block]) -> list[Path]:
    """Write a report into a folder, in both languages, and its pictures."""
    files = {
        f"figures/{block.name}.png": block.content for block in blocks if isinstance(block, Picture)
    }
    files["report.html"] = page.document(title, blocks).encode()
    files["report.md"] = markdown.document(title, blocks).encode()
    own = _former_files(folder)
    for path in files:
        if path not in own and (folder / path).exists():
            raise ValueError(
                f"{folder / path} is there and is not part of a report; it was left as it is, so "
                "move it away or choose another folder with --out."
            )
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with unfinished(folder / path) as made:
            made.write_bytes(content)
    for path in own - set(files):
        (folder / path).unlink(missing_ok=True)
    return [folder / path for path in files]


def _former_files(folder: Path) -> set[str]:
    """The files of the report that a folder holds, if it holds one: both texts, of one title."""
    try:
        text = (folder / "report.md").read_text(encoding="utf-8")
        html = (folder / "report.html").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return set()
    title = text.partition("\n")[0].removeprefix("# ")
    if f"<h1>{escape(unescape(title))}</h1>" not in html:
        return set()
    return {"report.md", "report.html", *re.findall(r"\]\((figures/[\w.-]+\.png)\)", text)}


def report(folders: Sequence[ReportedFolder]) -> tuple[str, list[Block]]:
    """Title and blocks: of the studies, if there is one folder and it has some, or of its runs."""
    if len(folders) == 1 and folders[0].results is not None:
        return study_report(folders[0], folders[0].results)
    return compare_runs(folders)


def study_report(folder: ReportedFolder, results: Results) -> tuple[str, list[Block]]:
    """Title and blocks of the report of studies."""
    kept = [run.record for run in folder.runs if run.record is not None]
    sizes = scales(kept)
    title = f"The Spectral Filtering Operator: results at the {' and '.join(sizes)} scale"
    blocks: list[Block] = []
    bad = folder.problems
    if bad:
        many = f"{len(bad)} files" if len(bad) > 1 else "One file"
        blocks.append(Problems(f"{many} left out of this report:", bad))
    blocks.append(
        Text(
            "Errors are mean relative L2 errors on test samples in percent. Of what is compared "
            "on a benchmark the best is bold and the second best underlined (in Markdown: italic), "
            "among our own numbers; what the paper prints stands beside them in small print."
        )
    )
    if not sizes:
        title = "The Spectral Filtering Operator: results"
        blocks.append(Text("There is no Record here that can be trusted."))
    used: set[str] = set()
    for scale, seeds in sizes.items():
        studies = [study_results(as_study(n), results, scale, seeds) for n in study_names()]
        blocks += _scale_blocks(scale, studies, alone=len(sizes) == 1)
        used |= {run for found in studies for run in _runs(found)}
    blocks += _measurements(results)
    blocks += _paper_blocks()
    extra = [n for record in kept if (n := name(record.experiment)) not in used]
    if extra:
        blocks.append(Heading("Records of no study", "others"))
        blocks.append(Bullets(tuple(f"records/{n}.json" for n in extra)))
    return title, blocks


def _scale_blocks(scale: ScaleName, studies: Sequence[StudyResults], alone: bool) -> list[Block]:
    """All sections of a scale."""
    suffix, prefix = ("", "") if alone else (f" ({scale})", f"{scale}-")
    available = [found for found in studies if found.available()]
    blocks: list[Block] = []
    summaries = [
        b for found in available if found.study.summary for b in found.study.summary(found)
    ]
    if summaries:
        blocks += [Heading(f"In short{suffix}", f"{prefix}short"), *summaries]
    for found in available:
        study = found.study
        blocks.append(Heading(f"{study.title}{suffix}", f"{prefix}{study.name}"))
        blocks += [Text(study.about)] if study.about else []
        blocks.append(Command(found.command))
        blocks += [_fitted(block, study.title, prefix) for block in study_blocks(found)]
        blocks.append(provenance(found))
    absent = [found.study.name for found in studies if not found.available()]
    if absent:
        blocks.append(Heading(f"Not available{suffix}", f"{prefix}absent"))
        blocks.append(Text("Studies without Records here, and the command that makes them:"))
        blocks.append(Command(f"sfo reproduce {' '.join(absent)} --scale {scale}"))
    blocks.append(Heading(f"Limits of the comparison{suffix}", f"{prefix}limits"))
    blocks.append(Bullets(tuple(limits(scale, available))))
    blocks.append(size_table(scale, available))
    return blocks


def _fitted(block: Block, heading: str, prefix: str) -> Block:
    """A study's block as this page takes it."""
    if isinstance(block, Table):
        # The heading is title enough.
        return replace(block.fitted_to_page(), title="" if block.title == heading else block.title)
    return replace(block, name=prefix + block.name) if isinstance(block, Picture) else block


def _measurements(results: Results) -> list[Block]:
    """Parameters and times, where they were measured."""
    blocks: list[Block] = []
    for kind in MEASUREMENTS.in_order():
        values = measured_table(results, kind)
        if values is not None:
            about = MEASUREMENTS[kind]
            scale = f" --scale {values['scale']}" if "scale" in values else ""
            blocks += [Heading(about.title, kind), Text(about.about)]
            table = replace(about.table(values).fitted_to_page(), title="")
            blocks += [Command(f"sfo reproduce {kind}{scale}"), table]
    return blocks


def _paper_blocks() -> list[Block]:
    """What to know of the paper's own numbers."""
    about = Text("Names in capitals are tables of `sfo.experiments.paper`.", kind="note")
    summary = f"{len(INCONSISTENCIES)} places"
    return [
        Heading("Where the paper disagrees with itself", "paper"),
        Details(summary, (about, Bullets(INCONSISTENCIES))),
    ]


def _runs(results: StudyResults) -> list[str]:
    """Names of all runs of a study, trials too."""
    return [name(run) for f in results.cells.values() for run in (*f.runs, *f.cell.trials())]
