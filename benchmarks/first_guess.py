"""How much of a solution the first guess leaves.

    python benchmarks/first_guess.py [BENCHMARK ...]

Printed is, for each field, the size of what is left over the field's deviation: the smaller, the
less the network has to learn.
"""

import sys

from sfo.data.rows import Rows, array_rows, channel_moments
from sfo.experiments.studies.cells import PAPER_BENCHMARKS
from sfo.registry import BENCHMARKS
from sfo.training.config import Experiment
from sfo.training.first_guess import first_guess
from sfo.training.prepare import load_pairs


def main(names: list[str]) -> None:
    """Print the shares that are left, on the training samples of the desk scale."""
    for name in names:
        train = load_pairs(Experiment.of(name, preset="recommended"), "train")
        benchmark = BENCHMARKS[name]
        places_differ = not (train.grid.periodic and benchmark.shift_invariant)
        guess = first_guess(train, places_differ=places_differ)
        u = train.u if isinstance(train.u, Rows) else array_rows(train.u)
        means, variances = (m.view(len(train.names), -1) for m in channel_moments(u))
        spread = (variances + (means - means.mean(1, keepdim=True)).square()).mean(1).sqrt()
        left = zip(train.names, (guess.scale / spread).tolist(), strict=True)
        print(name, *(f"{field} {share:.3f}" for field, share in left), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or list(PAPER_BENCHMARKS))
