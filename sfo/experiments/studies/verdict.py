"""What the main table says, in sentences that are computed from it."""

from dataclasses import dataclass

from sfo.evaluation.statistics import compare
from sfo.experiments import paper
from sfo.experiments.blocks import Entry, Row, Table, printed_alike
from sfo.experiments.present import EMPTY_ENTRY, error_entry
from sfo.experiments.study_results import CellResults, StudyResults

SFO_COLUMNS = {"sfo": "SFO as in the paper", "sfo_recommended": "SFO as recommended"}
"""The columns that are SFO; each is compared with the other models, not with one another."""


@dataclass(frozen=True)
class Standing:
    """One SFO column on one benchmark, beside the models that are not SFO.

    Args:
        row: The benchmark.
        own: Its entry.
        others: Entries of the other models that are available.
    """

    row: str
    own: Entry
    others: dict[str, Entry]

    @property
    def rival(self) -> str:
        """The best other model."""
        return min(self.others, key=lambda column: _value(self.others[column]))

    @property
    def best(self) -> bool:
        """Whether no other is better, as far as the numbers are printed."""
        return self.rank == 1

    @property
    def rank(self) -> int:
        """One more than the number of models that are better."""
        better = [
            entry
            for entry in self.others.values()
            if _value(entry) < _value(self.own) and not printed_alike(entry, self.own)
        ]
        return 1 + len(better)

    @property
    def factor(self) -> float:
        """The error as a multiple of the rival's."""
        rival = _value(self.others[self.rival])
        return _value(self.own) / rival if rival else float("inf")


def standings(results: StudyResults, column: str) -> list[Standing]:
    """How an SFO column stands on the benchmarks where there is something to compare it with."""
    out = []
    for row in results.rows:
        entries = {
            c: error_entry(results.cells[row, c], results.seeds)
            for c in results.columns
            if (row, c) in results.cells
        }
        known = {c: entry for c, entry in entries.items() if entry.value is not None}
        others = {c: entry for c, entry in known.items() if c not in SFO_COLUMNS}
        if column in known and others:
            out.append(Standing(row, known[column], others))
    return out


def published_standing(row: str) -> Standing:
    """SFO in the paper's main table."""
    entries = {c: Entry(f"{p.mean:.6g}", p.mean) for c, p in paper.MAIN[row].items()}
    return Standing(row, entries.pop("sfo"), entries)


def sentences(results: StudyResults) -> list[str]:
    """How often SFO is best, and by how much it is not; then what the paper says."""
    complete = all(f.interval() is not None for f in results.cells.values())
    rest = "" if complete else ", of the available cells"
    out = []
    for column, title in SFO_COLUMNS.items():
        places = standings(results, column)
        if not places:
            out.append(f"{title}: no cell is available to compare.")
            continue
        best = [s for s in places if s.best]
        text = (
            f"{title} has the lowest error, or one that prints alike, on {len(best)} of "
            f"{_benchmarks(len(places))}{rest}"
        )
        behind = [
            f"{results.title(s.row)}, where it has {s.factor:.2f} times the error of "
            f"{results.plain_title(s.rival)} ({_value(s.own):.3g} against "
            f"{_value(s.others[s.rival]):.3g} %)"
            for s in places
            if not s.best
        ]
        out.append(text + ("; not on " + "; ".join(behind) if behind else "") + ".")
    theirs = [published_standing(row) for row in results.rows]
    out.append(
        f"In the paper SFO has the lowest error on {sum(s.best for s in theirs)} of "
        f"{_benchmarks(len(theirs))}."
    )
    return out


def rank_table(results: StudyResults) -> Table:
    """SFO's place beside the paper's, and whether the other models come in the same order."""
    by_row = {column: {s.row: s for s in standings(results, column)} for column in SFO_COLUMNS}
    lines = []
    for row in results.rows:
        theirs = published_standing(row)
        rivals = [by_row[column][row] for column in SFO_COLUMNS if row in by_row[column]]
        entries = [
            Entry(_rank_text(s), published=_rank_text(theirs) if column == "sfo" else "")
            if (s := by_row[column].get(row))
            else Entry("–", published=_rank_text(theirs) if column == "sfo" else "")
            for column in SFO_COLUMNS
        ]
        best = Entry(
            f"{results.plain_title(rivals[0].rival)} {rivals[0].others[rivals[0].rival].text}"
            if rivals
            else "–",
            published=f"{results.plain_title(theirs.rival)} {theirs.others[theirs.rival].text}",
        )
        order = _order(rivals[0], theirs) if rivals else EMPTY_ENTRY
        lines.append(Row(results.title(row), (*entries, best, order)))
    columns = ("", *SFO_COLUMNS.values(), "best other model, %", "order of the others, Kendall's τ")
    notes = (
        "A place is among the models that are not SFO and this one; in brackets, its error as a "
        "multiple of the best other's.",
        "Kendall's τ: 1 where the models that are not SFO come in the paper's order, −1 where in "
        "the reverse, 0 where the two have nothing to do with one another.",
    )
    return Table("SFO's place", columns, tuple(lines), notes)


def paired_table(results: StudyResults) -> Table:
    """SFO as recommended against the best other model, sample by sample, seed by seed."""
    lines = []
    for s in standings(results, "sfo_recommended"):
        ours, rival = results.cells[s.row, "sfo_recommended"], results.cells[s.row, s.rival]
        for seed in sorted(_by_seed(ours).keys() & _by_seed(rival).keys()):
            first, second = _by_seed(ours)[seed], _by_seed(rival)[seed]
            c = compare(first, second)
            ends = (
                "" if c.lower is None else f" ({100 * c.lower:+.2g} to {100 * (c.upper or 0):+.2g})"
            )
            ratio = "–" if c.reduction is None else f"{1 - c.reduction:.2f}×"
            texts = (
                results.plain_title(s.rival),
                str(seed),
                f"{100 * c.difference:+.2g}{ends}",
                ratio,
                f"{100 * c.wins:.0f} % of {c.n}",
                f"{c.p_value:.1g}",
            )
            lines.append(Row(results.title(s.row), tuple(Entry(text) for text in texts)))
    columns = (
        "",
        "best other",
        "seed",
        "difference, % points (95 %)",
        "error as a multiple",
        "better on samples",
        "p (Wilcoxon)",
    )
    note = (
        "Errors of two trained models on the same test samples; negative differences are in SFO's "
        "favour. The interval is over samples, not over seeds; the best other model is the best "
        "by its mean over the seeds, on these very samples."
    )
    return Table("SFO as recommended against the best other model", columns, tuple(lines), (note,))


def _by_seed(cell: CellResults) -> dict[int, list[float]]:
    return {
        record.experiment.seed: record.errors.per_sample
        for record in cell.records
        if record.errors.percent < float("inf")
    }


def _order(ours: Standing, theirs: Standing) -> Entry:
    common = [column for column in theirs.others if column in ours.others]
    if len(common) < 3:
        return EMPTY_ENTRY
    from scipy.stats import kendalltau  # a second, of which a run has no use

    tau = kendalltau(
        [_value(ours.others[c]) for c in common], [_value(theirs.others[c]) for c in common]
    ).statistic
    return Entry(f"{tau:.2f} ({len(common)} models)")


def _rank_text(s: Standing) -> str:
    return f"{s.rank} of {1 + len(s.others)} ({s.factor:.2f}×)"


def _benchmarks(n: int) -> str:
    return f"{n} benchmark{'' if n == 1 else 's'}"


def _value(entry: Entry) -> float:
    return float("inf") if entry.value is None else entry.value
