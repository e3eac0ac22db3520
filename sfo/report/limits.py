"""How far the comparison with the paper goes: sizes, data, split, protocol, machine and seeds."""

from collections.abc import Sequence

from sfo.data.benchmarks import ScaleName
from sfo.experiments import paper
from sfo.experiments.blocks import Entry, Row, Table
from sfo.experiments.measurement_tables import dimension
from sfo.experiments.study_results import StudyResults
from sfo.registry import BENCHMARKS
from sfo.titles import title
from sfo.training.config import Experiment


def size_table(scale: ScaleName, studies: Sequence[StudyResults]) -> Table:
    """Samples, points, frames and epochs of the studies' benchmarks, beside the paper's."""
    used = {f.cell.experiment.data.benchmark for found in studies for f in found.cells.values()}
    known = [b for b in paper.SHAPES if b in used or not studies]
    lines = []
    for benchmark in (*known, *sorted(used - paper.SHAPES.keys())):
        kind = BENCHMARKS[benchmark]
        size = kind.scale(scale)
        grid = kind.stored(size)[0].subsample(size.stride).shape
        ours = Experiment.of(benchmark, scale=scale).train
        texts = (
            f"{size.samples:,}",
            _times(grid),
            str(size.frames),
            str(ours.epochs),
            str(ours.batch_size),
        )
        theirs = _published_sizes(benchmark) if benchmark in paper.SHAPES else len(texts) * ("",)
        pairs = zip(texts, theirs, strict=True)
        lines.append(Row(title(benchmark), tuple(Entry(a, published=b) for a, b in pairs)))
    columns = ("", "samples", "points a model sees", "frames", "epochs", "batch")
    return Table("Sizes", columns, tuple(lines))


def _published_sizes(benchmark: str) -> tuple[str, ...]:
    size = BENCHMARKS[benchmark].scale("paper")
    train = Experiment.of(benchmark, scale="paper").train
    return (
        f"{size.samples:,}",
        _times(paper.SHAPES[benchmark][0][: dimension(benchmark)]),
        str(size.frames),
        str(train.epochs),
        str(train.batch_size),
    )


def limits(scale: ScaleName, studies: Sequence[StudyResults]) -> list[str]:
    """What keeps the numbers here from being the paper's."""
    seeds = sorted({found.seeds for found in studies})
    out = [
        f"Scale: all runs here are at the {scale} scale, see the table below. Fewer samples and "
        "epochs raise every error, and not every model's alike."
        if scale != "paper"
        else "Scale: the paper's samples, points, frames and epochs.",
        "Data: generated from the equations by this package, not the published files. The cards "
        "of the benchmarks say what is known of the differences.",
        "Split: 80 % of the samples train, 10 % select the epoch and the protocol, and another "
        "10 % are reported. The paper has 90 % and 10 %: it selects on the samples it reports.",
        "Machine: one CPU thread per run. Times are to be compared on one benchmark.",
        f"Seeds: {' or '.join(map(str, seeds)) or 'none'}, by the study, where the paper has "
        f"{paper.SEEDS}; the data are the same for all seeds.",
    ]
    own = [s for found in studies if found.study.limits for s in found.study.limits(found)]
    return [*out, *dict.fromkeys(own)]


def _times(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))
