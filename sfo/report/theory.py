"""The theory in numbers: every table and figure of `docs/theory.md`, in one run."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table as RichTable
from torch import Tensor

from sfo.experiments.blocks import Entry, Heading, Row, Table, Text
from sfo.pdes import AllenCahn, CahnHilliard, DiffusionReaction
from sfo.pdes.derivative import Central, Spectral
from sfo.report import markdown
from sfo.report import theory_figures as figures
from sfo.theory.approximation import (
    decay_rate,
    error_bound,
    modes_guaranteed,
    powers,
    projection_errors,
    sharp_error_bounds,
)
from sfo.theory.construct import ConstructedSolver
from sfo.theory.linearise import compressibility, implicit_green
from sfo.theory.problems import steady_diffusion_reaction

ROOTS = (0.5, 0.9, 0.99, 0.999, 0.9999)
TOLERANCES = tuple(10.0**-k for k in range(2, 13))
OTHER_BASES = ("hankel", "chebyshev", "fourier", "random")
HANKEL_LIMIT = 1024
"""`hankel` takes O(n³): longer kernels are not measured with it."""
TITLE = "The theory in numbers"
TABLE_STARTS = (f"# {TITLE}\n", "### USB modes for ρᵗ, t = 0..N−1")
"""How a tables.md begins that was written here, now and by earlier versions."""

Section = tuple[Heading, Text, Table]
"""A table, with its heading and what its columns are."""


@dataclass(frozen=True)
class Measurements:
    """Relative errors ‖g − P_L g‖/‖g‖ of g = ρᵗ for every ρ in `ROOTS`, and their bounds.

    Attributes:
        usb: For each N, `(roots, L + 1)`.
        explicit: The bound (4) of `sfo.theory.approximation`, likewise.
        sharp: The bound (1), likewise.
        others: For each N and basis name, likewise.
    """

    usb: dict[int, Tensor]
    explicit: dict[int, Tensor]
    sharp: dict[int, Tensor]
    others: dict[tuple[int, str], Tensor]


def measure_projections(
    lengths: Sequence[int], n_modes: int, full: int, capped: int = 128
) -> Measurements:
    """Project ρᵗ on every basis.

    Args:
        lengths: The N for the USB.
        n_modes: The largest L for the USB.
        full: The N at which the other bases are followed to the last mode.
        capped: The largest L of the other bases at the longest N.
    """
    roots = torch.tensor(ROOTS, dtype=torch.float64)
    usb, explicit, sharp, others = {}, {}, {}, {}
    for n in lengths:
        g = powers(roots, n)
        norm = g.norm(dim=-1, keepdim=True)
        most = min(n_modes, n)
        usb[n] = projection_errors(g, most) / norm
        bound = [[error_bound(r, n, m) for m in range(most + 1)] for r in ROOTS]
        explicit[n] = torch.tensor(bound, dtype=torch.float64) / norm
        sharp[n] = torch.stack([sharp_error_bounds(r, n, most) for r in ROOTS]) / norm
    for n in {full, max(lengths)}:
        g = powers(roots, n)
        for name in OTHER_BASES:
            if name == "hankel" and n > HANKEL_LIMIT:
                continue
            most = n if n == full else min(capped, n)
            others[n, name] = projection_errors(g, most, name) / g.norm(dim=-1, keepdim=True)
    return Measurements(usb, explicit, sharp, others)


def usb_table(measured: Measurements) -> Section:
    """Modes for each ε, the fitted rate, and how straight L is in log 1/ε."""
    shown = TOLERANCES[::2]
    rows = []
    for n, errors in measured.usb.items():
        for i, rho in enumerate(ROOTS):
            needed = [_first(errors[i], eps) for eps in TOLERANCES]
            slope, straight = _line(needed)
            norm = float(powers(rho, n).norm())
            rows.append(
                [
                    f"{n:,}",
                    f"{rho:g}",
                    f"{decay_rate(errors[i]):.2f}",
                    f"{math.pi**2 / (2 * math.log(8 * n - 4)):.2f}",
                    *[_count(_first(errors[i], eps)) for eps in shown],
                    f"{slope:.1f}",
                    f"{straight:.4f}",
                    str(modes_guaranteed(rho, n, shown[-1] * norm)),
                ]
            )
    return _section(
        "USB modes for ρᵗ, t = 0..N−1",
        "L for a relative error ε; s fitted to error ≈ C exp(−sL) and the s that the bound "
        "guarantees; modes per decade of ε and R² of the straight line through ε = 1e-2 … 1e-12; "
        "the L that the bound guarantees for the last ε.",
        ["N", "ρ", "s", "s bound", *[f"{e:.0e}" for e in shown], "per decade", "R²", "bound"],
        rows,
    )


def basis_table(measured: Measurements, n: int) -> Section:
    """The same kernels in every basis, with the factor by which the USB needs fewer modes."""
    names = [name for name in OTHER_BASES if (n, name) in measured.others]
    rows = []
    for i, rho in enumerate(ROOTS):
        for eps in (1e-2, 1e-4, 1e-8):
            usb = _first(measured.usb[n][i], eps)
            cells = []
            for name in names:
                errors = measured.others[n, name][i]
                cells.append(_against_usb(_first(errors, eps), usb, len(errors) - 1))
            rows.append([f"{rho:g}", f"{eps:.0e}", _count(usb), *cells])
    note = "Modes for a relative error ε; in brackets, as a multiple of the USB's."
    if "hankel" not in names:
        note += f" hankel is O(n³) and measured to N = {HANKEL_LIMIT:,} only."
    return _section(f"Against the other bases, N = {n:,}", note, ["ρ", "ε", "usb", *names], rows)


def crossover_table(lengths: Sequence[int], eps: float = 1e-4) -> Section:
    """Where polynomials overtake the USB: kernels as long as the window."""
    rows = []
    for windows in (1, 3, 10, 20, 30, 50, 100, 300):
        row = [str(windows)]
        for n in lengths:
            if windows >= n:
                row.append("–")
                continue
            g = powers(1 - windows / n, n)
            most = min(n, 256)
            usb, chebyshev = (
                _first(projection_errors(g, most, basis) / g.norm(), eps)
                for basis in ("usb", "chebyshev")
            )
            row.append(f"{_count(usb, most)} / {_count(chebyshev, most)}")
        rows.append(row)
    return _section(
        f"USB against chebyshev, modes for a relative error {eps:.0e}",
        "usb / chebyshev, by the number N(1 − ρ) of decay lengths in the window.",
        ["N(1 − ρ)", *[f"N = {n:,}" for n in lengths]],
        rows,
    )


def outside_table(n: int) -> Section:
    """Kernels that the theorem does not cover, and those the paper's remark claims."""
    t = torch.arange(n, dtype=torch.float64)
    cases = {
        "1/(1+t)": 1 / (1 + t),
        "1/√(1+t)": (1 + t) ** -0.5,
        "δ: b = 0": (t == 0).double(),
        "Gaussian, width N/16": torch.exp(-((16 * t / n) ** 2)),
        "0.9ᵗ cos(0.1t): complex roots": 0.9**t * torch.cos(0.1 * t),
        "0.9ᵗ cos(t): complex roots": 0.9**t * torch.cos(t),
        "0.99ᵗ cos(0.3t): complex roots": 0.99**t * torch.cos(0.3 * t),
        "(−0.5)ᵗ: a negative root": (-0.5) ** t,
        "(−0.9)ᵗ: a negative root": (-0.9) ** t,
        "0.9ᵗ + 0.9ᴺ⁻ᵗ: symmetric, on a circle": 0.9**t + 0.9 ** (n - t),
    }
    bases = ("usb", "hankel", "chebyshev", "fourier")
    rows = []
    for name, g in cases.items():
        row = [name]
        for basis in bases:
            errors = projection_errors(g, n, basis) / g.norm()
            row.append(" / ".join(_count(_first(errors, eps)) for eps in (1e-2, 1e-4, 1e-8)))
        rows.append(row)
    distance = torch.arange(1 - n // 2, n // 2).abs()
    two_sided = 0.9 ** distance.double()
    row = ["the same on two-sided modes (rows)"]
    for basis in bases:
        errors = projection_errors(two_sided, n - 1, basis, "two_sided") / two_sided.norm()
        row.append(" / ".join(_count(_first(errors, eps)) for eps in (1e-2, 1e-4, 1e-8)))
    rows.append(row)
    return _section(
        f"Beyond real roots in [0, 1), N = {n:,}",
        "Modes for relative errors 1e-2 / 1e-4 / 1e-8.",
        ["kernel", *bases],
        rows,
    )


def constructed_table(sizes: Sequence[int]) -> Section:
    """The steady example, solved by a layer that was never trained."""
    rows = []
    diffusion = torch.tensor([[1.0, 0.3], [0.3, 2.0]], dtype=torch.float64)
    reaction = 3 * diffusion @ diffusion + 2 * torch.eye(2, dtype=torch.float64)
    for n in sizes:
        x = torch.arange(1, n + 1, dtype=torch.float64) / (n + 1)
        f = torch.stack([1 + torch.sin(9 * x), torch.cos(5 * x)], dim=1)
        ends = torch.tensor([[0.5, 1.0], [-1.0, 0.2]], dtype=torch.float64)
        problem = steady_diffusion_reaction(diffusion, reaction, f, *ends)
        direct = problem.solve()
        for eps in (1e-2, 1e-4, 1e-6, 1e-8):
            solver = ConstructedSolver(problem.stencil, n, eps)
            error = solver.solve(problem) - direct
            scale = f.norm() + ends.norm()
            rows.append(
                [
                    f"{n:,}",
                    f"{eps:.0e}",
                    str(solver.n_modes),
                    f"{solver.certified:.1e}",
                    f"{error.norm() / scale:.1e}",
                    f"{error.abs().max():.1e}",
                    f"{error.norm() / direct.norm():.1e}",
                ]
            )
    return _section(
        "A constructed SFO solves the coupled steady example",
        "−D u″ + R u = f on (0, 1), d = 2, Dirichlet ends, against the direct solve. Certified "
        "and measured: ‖error‖/(‖f‖ + ‖ends‖).",
        ["n", "ε", "L", "certified", "measured", "max error", "relative L2"],
        rows,
    )


def linearised_kernels(n: int, dt: float = 0.01) -> dict[tuple[str, str, str], Tensor]:
    """Implicit-step kernels of the three nonlinear equations: (equation, state, d²) → rows."""
    out = {}
    for pde in (AllenCahn(), DiffusionReaction(), CahnHilliard()):
        x = torch.linspace(pde.lower, pde.upper, n + 1, dtype=torch.float64)[:-1]
        wave = torch.sin(2 * math.pi * x / (pde.upper - pde.lower))
        walls = torch.tanh(50 * wave)
        # A concentration lies in [0, 1], a phase in [−1, 1].
        walls = (1 + walls) / 2 if isinstance(pde, DiffusionReaction) else walls
        states = {"constant": 0.5 + 0 * x, "wave": 0.5 + 0.4 * wave, "walls": walls}
        for state, u in states.items():
            for name, derivatives in (("spectral", Spectral), ("central", Central)):
                green = implicit_green(partial(pde.rhs, derivatives=derivatives), u, dt)
                out[type(pde).__name__, state, name] = green[:: max(1, n // 32)]
    return out


def linearised_table(kernels: dict[tuple[str, str, str], Tensor], n: int, dt: float) -> Section:
    """How compact the kernels are, and how far from one convolution."""
    rows = []
    for key, green in kernels.items():
        most = min(128, green.shape[-1])
        usb = compressibility(green, most)
        chebyshev = compressibility(green, most, "chebyshev")
        rows.append(
            [
                *key,
                *[_count(usb.modes_for(eps), most) for eps in (1e-2, 1e-4, 1e-6)],
                f"{usb.rate:.2f}",
                _count(chebyshev.modes_for(1e-2), most),
                _count(chebyshev.modes_for(1e-4), most),
                f"{usb.variation:.3f}",
            ]
        )
    return _section(
        f"Linearised benchmarks, n = {n:,}, dt = {dt:g}",
        "Two-sided rows (half of them even) for the worst of 32 sources, relative error; fitted "
        "rate per row; the same for chebyshev; and how much the kernel differs from its mean over "
        "the sources, which no convolution represents.",
        [
            "equation",
            "state",
            "∂²",
            "1e-2",
            "1e-4",
            "1e-6",
            "s",
            "cheb 1e-2",
            "cheb 1e-4",
            "varies",
        ],
        rows,
    )


def run(out: Path, quick: bool = False, console: Console | None = None) -> str:
    """Measure everything, write the figures and `tables.md` into `out`, return the Markdown.

    Args:
        out: Folder for the results; made if it is not there.
        quick: Small sizes, a few seconds, for a smoke test.
        console: Where to print the tables; None prints nothing.
    """
    lengths = (64, 256) if quick else (256, 1024, 4096, 16384, 65536)
    full = 256 if quick else 1024
    n, dt = (128, 0.01) if quick else (1024, 0.01)
    out = Path(out)
    own = out / "tables.md"
    is_own = own.exists() and own.read_text(encoding="utf-8").startswith(TABLE_STARTS)
    if out.exists() and not is_own and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out} exists and holds other things; choose another with --out.")
    out.mkdir(parents=True, exist_ok=True)
    measured = measure_projections(lengths, n_modes=64 if quick else 100, full=full)
    kernels = linearised_kernels(n, dt)
    tables = [
        usb_table(measured),
        *[basis_table(measured, length) for length in sorted({full, max(lengths)})],
        crossover_table((64, 256) if quick else (256, 1024, 4096)),
        outside_table(full),
        constructed_table((63,) if quick else (63, 255, 1023)),
        linearised_table(kernels, n, dt),
    ]
    figures.kernel_decay(ROOTS, out / "kernel_decay.png")
    figures.coefficient_decay(ROOTS, full, out / "coefficient_decay.png")
    figures.error_against_modes(ROOTS, measured.usb, measured.sharp, out / "error.png")
    figures.bases_and_bound(
        ROOTS,
        {"usb": measured.usb[full]} | {k[1]: v for k, v in measured.others.items() if k[0] == full},
        {"bound (1)": measured.sharp[full], "bound (4)": measured.explicit[full]},
        full,
        out / "bases.png",
    )
    figures.modes_against_tolerance(ROOTS, TOLERANCES, measured.usb, out / "modes.png")
    figures.linearised(kernels, out / "linearised.png")
    text = markdown.document(TITLE, [block for section in tables for block in section])
    (out / "tables.md").write_text(text, encoding="utf-8")
    if console is not None:
        for section in tables:
            console.print(_for_terminal(*section))
    return text


def _section(
    title: str, about: str, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> Section:
    lines = tuple(Row(first, tuple(map(Entry, rest))) for first, *rest in rows)
    anchor = re.sub(r"\W+", "-", title.lower()).strip("-")
    return Heading(title, anchor), Text(about), Table("", tuple(columns), lines)


def _for_terminal(heading: Heading, about: Text, table: Table) -> RichTable:
    out = RichTable(title=heading.text, caption=about.text)
    for column in table.columns:
        out.add_column(column, justify="right")
    for row in table.rows:
        out.add_row(row.title, *(entry.text for entry in row.entries))
    return out


def _first(errors: Tensor, eps: float) -> int | None:
    return int((errors <= eps).nonzero()[0]) if bool((errors <= eps).any()) else None


def _count(modes: int | None, tried: int | None = None) -> str:
    if modes is not None:
        return str(modes)
    return "–" if tried is None else f"> {tried}"


def _against_usb(modes: int | None, usb: int | None, tried: int) -> str:
    if usb is None:
        return _count(modes, tried)
    if modes is None:
        return f"> {tried} (> {tried / usb:.1f}×)"
    return f"{modes} ({modes / usb:.1f}×)"


def _line(needed: Sequence[int | None]) -> tuple[float, float]:
    """Slope (modes per decade) and R² of L against log₁₀ 1/ε."""
    points = [(-math.log10(e), m) for e, m in zip(TOLERANCES, needed, strict=True) if m is not None]
    if len(points) < 3:
        return math.nan, math.nan
    x, y = np.array(points, dtype=np.float64).T
    slope, start = np.polyfit(x, y, 1)
    left = ((y - slope * x - start) ** 2).sum()
    total = ((y - y.mean()) ** 2).sum()
    return float(slope), float(1 - left / total) if total > 0 else math.nan
