"""Beyond the paper: one change at a time."""

from sfo.experiments.studies.cells import AS_PAPER, PAPER_BENCHMARKS, sfo_cells
from sfo.experiments.study import Study
from sfo.registry import STUDIES

STUDIES.register("design")(
    Study(
        "design",
        "Beyond the paper: one change at a time, %",
        "Kernels that reach to both sides; what lies beyond the edge; a pointwise path beside "
        "the kernel; no normalisation of the lifted field; no normalisation in the layers; "
        "Maxwell's components mixed instead of apart.",
        lambda scale, seeds: [
            cell
            for benchmark in PAPER_BENCHMARKS
            for cell in sfo_cells(
                {
                    "paper": AS_PAPER,
                    "two_sided": dict(support="two_sided"),
                    "zero": dict(support="two_sided", boundary="zero"),
                    "reflect": dict(support="two_sided", boundary="reflect"),
                    "skip": dict(skip=True),
                    "no_lift_norm": dict(lift_norm=None),
                    "no_norm": dict(norm=None),
                    **({"mixed": dict(components=1)} if benchmark == "maxwell" else {}),
                },
                [benchmark],
            )(scale, seeds)
        ],
        titles={
            "paper": "as in the paper",
            "two_sided": "two-sided",
            "zero": "zero beyond the edge",
            "reflect": "reflected",
            "skip": "pointwise path",
            "no_lift_norm": "lift not normalised",
            "no_norm": "no normalisation",
            "mixed": "components mixed",
        },
        least_columns=2,
    )
)
