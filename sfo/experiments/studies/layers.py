"""What a layer is made of: its basis, its pointwise update, its index."""

from sfo.experiments import paper
from sfo.experiments.studies.cells import AS_PAPER, PAPER_BENCHMARKS, printed_in, sfo_cells
from sfo.experiments.study import Study
from sfo.registry import STUDIES

STUDIES.register("basis")(
    Study(
        "basis",
        "Fixed orthonormal bases, %",
        "SFO with other bases. usb_dense is the basis as the paper's own code computes it, by a "
        "dense eigensolver that returns noise beyond the first dozen modes.",
        sfo_cells(
            {
                "usb": AS_PAPER,
                "usb_dense": dict(basis="usb_dense"),
                "fourier": dict(basis="fourier"),
                "chebyshev": dict(basis="chebyshev"),
                "random": dict(basis="random"),
            }
        ),
        printed_in(paper.BASIS),
        titles={
            "usb": "USB",
            "usb_dense": "USB, dense eigensolver",
            "fourier": "Fourier",
            "chebyshev": "Chebyshev",
        },
        least_columns=2,
    )
)
STUDIES.register("glu")(
    Study(
        "glu",
        "GLU against MLP, %",
        "The pointwise update of a layer.",
        sfo_cells({"mlp": AS_PAPER, "glu": dict(update="glu")}),
        printed_in(paper.GLU),
        titles={"mlp": "MLP", "glu": "GLU"},
        least_columns=2,
    )
)
STUDIES.register("index")(
    Study(
        "index",
        "Tied index against multi-index, L = 6, %",
        "L modes against L^M, where M is the number of axes.",
        sfo_cells(
            {"tied": dict(n_modes=6), "multi": dict(n_modes=6, index="multi")},
            PAPER_BENCHMARKS[4:],
        ),
        printed_in(paper.INDEX),
        titles={"tied": "tied index", "multi": "multi-index"},
        least_columns=2,
    )
)
