"""How far the comparison with the paper goes: sizes, data, split, protocol, machine and seeds."""

from collections.abc import Sequence

from sfo.experiments import paper
from sfo.experiments.study import LEAST, PROTOCOLS, TRIAL
from sfo.registry import BENCHMARKS
from sfo.report.blocks import Entry, Row, Table
from sfo.report.found import StudyResults
from sfo.report.measured import dimension
from sfo.training.config import Experiment, Scale


def size_table(scale: Scale, benchmarks: Sequence[str]) -> Table:
    """Samples, points, frames and epochs, beside the paper's."""
    lines = []
    for benchmark in benchmarks:
        kind = BENCHMARKS[benchmark]
        size, published = kind.scale(scale), kind.scale("paper")
        grid = kind.stored(size)[0].subsample(size.stride).shape
        shape, n_dim = paper.SHAPES[benchmark][0], dimension(benchmark)
        ours = Experiment.of(benchmark, scale=scale).train
        theirs = Experiment.of(benchmark, scale="paper").train
        pairs = (
            (f"{size.samples:,}", f"{published.samples:,}"),
            (_times(grid), _times(shape[:n_dim])),
            (str(size.frames), str(published.frames)),
            (str(ours.epochs), str(theirs.epochs)),
            (str(ours.batch_size), str(theirs.batch_size)),
        )
        lines.append(Row(kind.title, tuple(Entry(a, published=b) for a, b in pairs)))
    columns = ("", "samples", "points a model sees", "frames", "epochs", "batch")
    return Table("Sizes", columns, tuple(lines))


def limits(scale: Scale, studies: Sequence[StudyResults]) -> list[str]:
    """What keeps the numbers here from being the paper's."""
    seeds = sorted({found.seeds for found in studies})
    cells = [f.cell for found in studies for f in found.cells.values()]
    out = [
        f"Scale: all runs here are at the {scale} scale, see the table below. Fewer samples and "
        "epochs raise every error, and not every model's alike."
        if scale != "paper"
        else "Scale: the paper's samples, points, frames and epochs.",
        "Data: generated from the equations by this package, not the published files. The cards "
        "of the benchmarks say what is known of the differences.",
        "Split: 80 % of the samples train, 10 % select the epoch and the protocol, and another "
        "10 % are reported. The paper has 90 % and 10 %: it selects on the samples it reports.",
        "Machine: one CPU thread a run. Times are to be compared on one benchmark.",
        f"Seeds: {' or '.join(map(str, seeds)) or 'none'}, by the study, where the paper has "
        f"{paper.SEEDS}; the data are the same for all seeds.",
    ]
    if any(cell.tuned for cell in cells):
        out.append(
            f"Protocol: in the main table, for each model and benchmark the best of "
            f"{len(PROTOCOLS)} by trials over 1/{TRIAL} of the epochs, at least {LEAST}; the "
            "paper has one for all. The other studies have the paper's, shortened."
        )
    return out


def _times(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))
