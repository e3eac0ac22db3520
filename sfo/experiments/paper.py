"""Every number that the paper prints in a table or plots in a curve, and where they disagree.

The paper is "SFO: Learning PDE Solution Operators via Hilbert Spectral Basis". Errors are relative
L₂ errors in percent, whatever the paper's scale: a factor in front of a row says how the digits,
which are the printed ones, become percent. A ± is half of a 95 % interval over ten seeds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Published:
    """An error in percent, and half the width of its interval where the paper gives one."""

    mean: float
    half_width: float | None = None

    def __rmul__(self, factor: float) -> "Published":
        width = None if self.half_width is None else factor * self.half_width
        return Published(factor * self.mean, width)


Name = TypeVar("Name", str, int)
Number = TypeVar("Number", float, Published)
Errors = Mapping[str, Mapping[str, Published]]
Counts = Mapping[int, Mapping[str, int]]


def _times(factor: float, row: Mapping[Name, Number]) -> dict[Name, Number]:
    return {name: factor * value for name, value in row.items()}


SEEDS = 10
"""Runs behind each mean of `MAIN`."""

TENTH = 1 / 10
"""To percent from 10 × L₂(%), as the tables print Diffusion-Sorption."""

FRACTION = 100
"""To percent from a fraction, as the curves over the rank are plotted."""

THOUSANDTHS = 1000
"""To the percent of `MAIN` from the Maxwell rows of `RANK`, `SUBSAMPLE` and `BOUNDARY`, which give
0.040 where `MAIN` gives 40.8: not percent, and not a fraction, which would be 0.408. Should `MAIN`
be ten times too large rather than these three ten times too small, divide all of them by ten."""

# The rows below are kept as rows, to be compared with the printed ones.
# fmt: off

SHAPES: Mapping[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "allen_cahn": ((256,), (256, 101)),
    "diffusion_sorption": ((256,), (256, 101)),
    "diffusion_reaction": ((256,), (256, 101)),
    "cahn_hilliard": ((1024,), (1024, 101)),
    "shallow_water": ((128, 128), (128, 128, 101)),
    "maxwell": ((32, 32, 32, 2, 6), (32, 32, 32, 8, 6)),
}
"""Table "Summary of PDE datasets": input and output. Shallow Water's are of (h, b) and (h, u, v)
each; Maxwell's end with time steps and components."""

MAIN: Errors = {
    "allen_cahn": dict(
        sfo=Published(0.05, 0.012), svd_no=Published(0.07, 0.007), fno=Published(0.08, 0.001),
        mno=Published(0.07, 0.021), uno=Published(0.30, 0.013), pino=Published(0.08, 0.001),
        mpnn=Published(0.33, 0.009), transolver=Published(0.53, 0.002),
        deeponet=Published(16.5, 0.230),
    ),
    "diffusion_sorption": _times(TENTH, dict(
        sfo=Published(1.08, 0.006), svd_no=Published(1.09, 0.002), fno=Published(1.09, 0.001),
        mno=Published(1.09, 0.001), uno=Published(1.10, 0.001), pino=Published(1.09, 0.001),
        mpnn=Published(2.86, 0.004), transolver=Published(1.14, 0.005),
        deeponet=Published(1.14, 0.001),
    )),
    "diffusion_reaction": dict(
        sfo=Published(0.22, 0.021), svd_no=Published(0.33, 0.010), fno=Published(0.39, 0.014),
        mno=Published(0.38, 0.020), uno=Published(0.40, 0.001), pino=Published(0.43, 0.014),
        mpnn=Published(0.39, 0.015), transolver=Published(0.44, 0.002),
        deeponet=Published(0.61, 0.001),
    ),
    "cahn_hilliard": dict(
        sfo=Published(0.08, 0.005), svd_no=Published(0.47, 0.037), fno=Published(0.13, 0.004),
        mno=Published(0.18, 0.014), uno=Published(0.56, 0.013), pino=Published(0.16, 0.010),
        mpnn=Published(0.59, 0.011), transolver=Published(1.10, 0.035),
        deeponet=Published(8.86, 0.149),
    ),
    "shallow_water": dict(
        sfo=Published(0.38, 0.088), svd_no=Published(0.39, 0.042), fno=Published(0.49, 0.022),
        mno=Published(8.15, 4.480), uno=Published(0.52, 0.042), pino=Published(0.46, 0.002),
        mpnn=Published(0.50, 0.031), transolver=Published(0.61, 0.096),
        deeponet=Published(1.11, 0.235),
    ),
    "maxwell": dict(
        sfo=Published(40.8, 0.103), svd_no=Published(63.5, 0.020), fno=Published(50.3, 0.031),
        mno=Published(115.3, 3.45), uno=Published(50.4, 0.019), pino=Published(56.1, 0.127),
        mpnn=Published(74.4, 0.684), transolver=Published(83.6, 0.072),
        deeponet=Published(86.1, 0.596),
    ),
}
"""Table "Mean L₂ relative error (%)" of all models."""

CLAIMS: Mapping[str, float] = {
    "allen_cahn": 28.57, "diffusion_sorption": 0.9, "diffusion_reaction": 33.33,
    "cahn_hilliard": 38.46, "shallow_water": 2.56, "maxwell": 18.81,
}
"""Text below that table: by how many percent SFO's error is less than the best baseline's."""

LARGEST_CLAIM = 40
"""Abstract, introduction and conclusion: "up to" so many percent."""

RUNTIME: Mapping[str, Mapping[str, float]] = {
    "allen_cahn": dict(sfo=2.09, svd_no=5.87, deeponet=1.09, fno=1.61, uno=2.06, pino=2.57,
                       transolver=2.96, mno=3.36),
    "diffusion_sorption": dict(sfo=1.64, svd_no=4.95, deeponet=1.52, fno=1.48, uno=1.98, pino=2.11,
                               transolver=2.87, mno=2.52),
    "diffusion_reaction": dict(sfo=2.12, svd_no=13.64, deeponet=1.74, fno=1.65, uno=2.16, pino=2.22,
                               transolver=3.09, mno=3.24),
    "cahn_hilliard": dict(sfo=1.85, svd_no=2.71, deeponet=18.73, fno=1.65, uno=2.18, pino=2.27,
                          transolver=3.28, mno=2.72),
    "shallow_water": dict(sfo=19.11, svd_no=84.40, deeponet=19.81, fno=13.77, uno=19.23, pino=14.55,
                          transolver=19.13, mno=15.47),
    "maxwell": dict(sfo=71.15, svd_no=180.53, deeponet=67.56, fno=58.28, uno=34.95, pino=63.21,
                    transolver=75.32, mno=100.54),
}
"""Table "Training time per epoch (in seconds)"."""

RUNTIME_BY_DIMENSION: Mapping[int, Mapping[str, float]] = {
    1: dict(sfo=1.93, svd_no=6.79, fno=1.60, uno=2.10, pino=2.29, transolver=3.05, mno=2.96,
            deeponet=5.77),
    2: dict(sfo=19.11, svd_no=84.40, fno=13.77, uno=19.23, pino=14.55, transolver=19.13, mno=15.47,
            deeponet=19.81),
    3: dict(sfo=71.15, svd_no=180.53, fno=58.28, uno=34.95, pino=63.21, transolver=75.32,
            mno=100.54, deeponet=67.56),
}
"""Table "Runtime (seconds per epoch) averaged by dimension"."""

PARAMETERS_IN_SHORT: Mapping[int, Mapping[str, str]] = {
    1: dict(sfo="283k", svd_no="586k", fno="300k", uno="1.09M", pino="300k", transolver="326k",
            mno="311k", deeponet="3.45M"),
    2: dict(sfo="406k", svd_no="973k", fno="478k", uno="5.98M", pino="478k", transolver="605k",
            mno="721k", deeponet="429M"),
    3: dict(sfo="119k", svd_no="125k", fno="3.28M", uno="90.22M", pino="3.28M", transolver="4.13M",
            mno="8.98M", deeponet="52.03M"),
}
"""The same table, in parentheses."""

# FNO and PINO share a column.
PARAMETERS: Counts = {n_dim: {**row, "pino": row["fno"]} for n_dim, row in {
    1: dict(sfo=283_413, svd_no=586_193, deeponet=3_451_237, fno=300_325, uno=1_097_051,
            transolver=326_629, mno=311_781),
    2: dict(sfo=406_053, svd_no=973_289, deeponet=429_143_808, fno=478_277, uno=5_984_051,
            transolver=605_717, mno=721_877),
    3: dict(sfo=119_304, svd_no=125_452, deeponet=52_034_992, fno=3_287_780, uno=90_221_664,
            transolver=4_129_985, mno=8_984_586),
}.items()}
"""Table "Average number of learnable parameters by PDE dimension"."""

SELECTED: Mapping[str, tuple[int, int]] = {
    "allen_cahn": (16, 64), "diffusion_sorption": (20, 32), "diffusion_reaction": (20, 64),
    "cahn_hilliard": (20, 64), "shallow_water": (20, 64), "maxwell": (20, 32),
}
"""Table "Selected L and d per PDE"."""

SEARCHED: tuple[tuple[int, ...], tuple[int, ...]] = ((16, 20), (32, 64, 128))
"""Section "Hyperparameter Tuning": the values of L and of d from which they were selected."""

BASIS: Errors = {
    "allen_cahn": dict(
        usb=Published(0.05, 0.01), fourier=Published(0.17, 0.01), chebyshev=Published(0.05, 0.03),
        random=Published(0.16, 0.01),
    ),
    "diffusion_sorption": _times(TENTH, dict(
        usb=Published(1.08, 0.01), fourier=Published(1.13, 0.02), chebyshev=Published(1.12, 0.01),
        random=Published(1.14, 0.00),
    )),
    "diffusion_reaction": dict(
        usb=Published(0.22, 0.02), fourier=Published(0.24, 0.03), chebyshev=Published(0.24, 0.02),
        random=Published(0.24, 0.02),
    ),
    "cahn_hilliard": dict(
        usb=Published(0.08, 0.01), fourier=Published(0.12, 0.01), chebyshev=Published(0.07, 0.01),
        random=Published(0.13, 0.00),
    ),
    "shallow_water": dict(
        usb=Published(0.38, 0.09), fourier=Published(0.57, 0.06), chebyshev=Published(0.58, 0.04),
        random=Published(0.61, 0.05),
    ),
    "maxwell": dict(
        usb=Published(40.9, 0.10), fourier=Published(44.4, 0.10), chebyshev=Published(44.5, 0.16),
        random=Published(44.8, 0.44),
    ),
}
"""Table "… for the orthogonal-basis and GLU ablations", left half."""

GLU: Errors = {
    "allen_cahn": dict(mlp=Published(0.05, 0.01), glu=Published(0.05, 0.01)),
    "diffusion_sorption": _times(TENTH, dict(
        mlp=Published(1.08, 0.01), glu=Published(1.08, 0.01),
    )),
    "diffusion_reaction": dict(mlp=Published(0.22, 0.02), glu=Published(0.23, 0.03)),
    "cahn_hilliard": dict(mlp=Published(0.08, 0.01), glu=Published(0.09, 0.01)),
    "shallow_water": dict(mlp=Published(0.38, 0.08), glu=Published(0.37, 0.09)),
    "maxwell": dict(mlp=Published(40.85, 0.103), glu=Published(38.55, 0.075)),
}
"""The same table, right half."""

INDEX: Errors = {
    "shallow_water": dict(tied=Published(0.61, 0.10), multi=Published(0.65, 0.08)),
    "maxwell": dict(tied=Published(53.78, 1.10), multi=Published(56.14, 2.83)),
}
"""Table "… tied-index vs. multi-index"."""

INDEX_MODES: Mapping[str, Mapping[str, int]] = {
    "shallow_water": dict(tied=6, multi=36), "maxwell": dict(tied=6, multi=216),
}
"""The same table, L and L^M."""

INDEX_PARAMETERS: Mapping[str, Mapping[str, int]] = {
    "shallow_water": dict(tied=176_677, multi=668_197), "maxwell": dict(tied=61_960, multi=922_120),
}
"""The same table, second row."""

INDEX_CLAIMS: Mapping[str, float] = {"shallow_water": 3.8, "maxwell": 14.9}
"""Text above that table: how many times more parameters the multi-index takes."""

RANK: Mapping[str, Mapping[int, float]] = {
    "allen_cahn": _times(FRACTION, {
        4: 0.00106, 8: 0.00075925, 12: 0.0007513, 16: 0.000518799, 20: 0.00052903, 24: 0.00065851,
        32: 0.0006570}),
    "diffusion_sorption": _times(FRACTION, {
        4: 0.00114858, 8: 0.0011512, 12: 0.0011444, 16: 0.001107600, 20: 0.001118932,
        24: 0.001118932, 32: 0.0011022140}),
    "cahn_hilliard": _times(FRACTION, {
        4: 0.00457776, 8: 0.0018036329, 12: 0.0011909, 16: 0.0009352, 20: 0.0007163, 24: 0.00068763,
        32: 0.000676445}),
    "maxwell": _times(THOUSANDTHS, {
        4: 0.05452498, 8: 0.0540688095, 16: 0.04414862, 20: 0.044192, 24: 0.046175056,
        32: 0.0457321}),
}
"""Figure "Test loss vs. rank L": by L, the losses before they are normalised."""

RANK_LIMITS: Mapping[str, tuple[float, float]] = {
    "allen_cahn": (FRACTION * 0.000518799, FRACTION * 0.00106),
    "diffusion_sorption": (FRACTION * 0.0011022140, FRACTION * 0.0011512),
    "cahn_hilliard": (FRACTION * 0.000676445, FRACTION * 0.00457776),
    "maxwell": (THOUSANDTHS * 0.04414862, THOUSANDTHS * 0.0569406071),
}
"""The same figure: the losses that it draws at 0 and at 1."""

WIDTH: Mapping[str, Mapping[int, float]] = {
    "allen_cahn": {32: 0.11, 64: 0.05, 128: 0.06},
    # The caption does not say so, but `MAIN` does: this row too is 10 × L₂(%).
    "diffusion_sorption": _times(TENTH, {32: 1.12, 64: 1.08, 128: 1.10}),
    "diffusion_reaction": {32: 0.24, 64: 0.22, 128: 0.27},
    "cahn_hilliard": {32: 0.21, 64: 0.08, 128: 0.11},
    "shallow_water": {32: 0.40, 64: 0.38, 128: 0.39},
    "maxwell": {32: 40.85, 64: 55.23, 128: 59.56},
}
"""Table "L₂ relative error (%) for varying lifting dimension d": by d."""

SUBSAMPLE: Mapping[str, Mapping[int, float]] = {
    "allen_cahn": {2: 0.057, 4: 0.054, 6: 0.051, 8: 0.061, 10: 0.074},
    "diffusion_sorption": _times(TENTH, {2: 1.092, 4: 1.068, 6: 0.808, 8: 0.565, 10: 0.4406}),
    "diffusion_reaction": {2: 0.236, 4: 0.292, 6: 0.288, 8: 0.282, 10: 0.360},
    "cahn_hilliard": {2: 0.084, 4: 0.068, 6: 0.096, 8: 0.075, 10: 0.105},
    "shallow_water": {2: 0.601, 4: 0.601, 6: 0.932, 8: 1.552, 10: 1.555},
    "maxwell": _times(THOUSANDTHS, {2: 0.038, 4: 0.043, 6: 0.049, 8: 0.058, 10: 0.062}),
}
"""Table "L₂ relative error (%) across grid resolutions": by stride s."""

BOUNDARY: Mapping[str, Mapping[str, float]] = {
    "allen_cahn": dict(full=0.052, boundary=0.056, interior=0.050),
    "diffusion_sorption": _times(TENTH, dict(full=1.119, boundary=1.401, interior=0.451)),
    "diffusion_reaction": dict(full=0.242, boundary=0.242, interior=0.242),
    "cahn_hilliard": dict(full=0.072, boundary=0.081, interior=0.069),
    "shallow_water": dict(full=0.394, boundary=0.099, interior=0.471),
    "maxwell": _times(THOUSANDTHS, dict(full=0.040, boundary=0.042, interior=0.034)),
}
"""Table "Boundary vs. interior relative L₂ error (in %)"."""

COEFFICIENTS: Mapping[str, tuple[tuple[int, float], ...]] = {
    name: tuple(enumerate(magnitudes, start=1)) for name, magnitudes in {
        "allen_cahn": (
            3.9318442, 3.9401011, 2.8274977, 2.4563622, 2.4380355, 2.2674465, 2.1615543, 1.9698896,
            1.8920445, 1.6758238, 1.8185999, 2.0246053, 1.8918247, 1.7851831, 1.9551882, 2.2644284,
        ),
        "diffusion_sorption": (
            1.2891567, 0.96365774, 0.75482148, 0.69299412, 0.79357636, 0.7544446, 0.68381041,
            0.6305126, 0.60594189, 0.57850027, 0.51803517, 0.48989668, 0.47475231, 0.44846418,
            0.4139401, 0.39543915, 0.36910275, 0.37191623, 0.36549753, 0.40952578,
        ),
        "diffusion_reaction": (
            2.0344992, 2.00368, 1.5870484, 1.1051441, 1.0237104, 1.167325, 1.2336972, 1.1005946,
            0.86098617, 0.69441676, 0.67945987, 0.67440712, 0.60706371, 0.57316959, 0.65533209,
            0.58808571, 0.54016036, 0.44686103, 0.52462894, 0.63001537,
        ),
        "cahn_hilliard": (
            2.5906072, 2.3156216, 2.2359695, 2.13448, 2.1144969, 2.4880245, 2.1127443, 2.1133435,
            2.4909306, 2.1601806, 1.7438855, 2.0320044, 2.3193636, 2.0074909, 1.7627034, 2.1904857,
            2.2796738, 2.0094874, 1.6889458, 2.9823902,
        ),
        "shallow_water": (
            0.48258135, 0.45599329, 0.3127279, 0.38140482, 0.46915141, 0.40440956, 0.33070013,
            0.31235549, 0.27859277, 0.22541586, 0.21419625, 0.2352352, 0.20438558, 0.14561149,
            0.19403258, 0.14084645, 0.18578768, 0.13477245, 0.13838045, 0.096348315,
        ),
        "maxwell": (
            0.82454365, 1.0228369, 1.0880984, 1.1698523, 1.1825653, 1.1246837, 1.1603529, 1.0221179,
            0.95661509, 0.94955671, 0.8759166, 0.82723695, 0.85766751, 0.71817315, 0.69946951,
            0.6292913, 0.031619769, 0.2652027, 0.44308624, 0.13204467,
        ),
    }.items()
}
"""Figures "Magnitude of learned Hilbert spectral coefficients" and, in the appendix, "Average
magnitude …": (l, ‖Θₗ‖_F averaged over layers). The first figure repeats three curves of the second
to the last digit."""

# fmt: on

INCONSISTENCIES: tuple[str, ...] = (
    "SELECTED gives Diffusion-Sorption d = 32, but in WIDTH the best is d = 64: 0.108 %, which is "
    "the error in MAIN, against 0.112 %.",
    "SFO's 283,413 parameters in 1D are the mean over SELECTED; with d = 64 for "
    "Diffusion-Sorption, the width that has MAIN's error, it would be 351,973.",
    "L is selected from 16 and 20, and SELECTED has 20 where RANK is lower at 16: "
    "Diffusion-Sorption (0.1119 % against 0.1108 %) and Maxwell (44.19 % against 44.15 %).",
    "No rank in RANK comes down to MAIN's error on Diffusion-Sorption (0.1102 % against 0.1080 %) "
    "or Maxwell (44.15 % against 40.80 %).",
    "RANK has the same ten digits for Diffusion-Sorption at L = 20 and L = 24.",
    "RANK lacks L = 12 on Maxwell, and the figure scales that curve by a loss of 0.0569406071 that "
    "it does not show; the largest shown is 0.0545250.",
    "RANK is said to level off from L = 16 on, but Allen-Cahn is 27 % worse at L = 24 and "
    "Cahn-Hilliard 28 % better at L = 32 than at L = 16.",
    "The Maxwell rows of RANK, SUBSAMPLE and BOUNDARY print thousandths of MAIN's errors, 0.040 "
    "for 40.8: not percent, as two captions say, and as fractions ten times too small.",
    "WIDTH prints Diffusion-Sorption as 1.08 where MAIN has 0.108 %, with no word of the factor in "
    "its caption.",
    "WIDTH is said to be stable on most benchmarks, but the worst d has 2.2, 2.6 and 1.5 times the "
    "error of the best on Allen-Cahn, Cahn-Hilliard and Maxwell, three of the six.",
    "CLAIMS has 18.81 % for Maxwell; MAIN gives 18.89 %, and SFO's 40.85 of WIDTH gives 18.79 %.",
    "SFO's error on Maxwell is 40.8 in MAIN, 40.9 in BASIS, and 40.85 in GLU and WIDTH.",
    "SFO's half width on Shallow Water is 0.088 in MAIN, 0.09 in BASIS, and 0.08 in GLU.",
    "The abstract's 40 % is more than the largest entry of CLAIMS, 38.46 %.",
    "GLU is said to perform alike, but on Maxwell it is 2.30 points better, 22 half widths.",
    "DeepONet and UNO are said to be orders of magnitude larger than SFO; in 1D they are 12.2 and "
    "3.9 times as large.",
    "PARAMETERS_IN_SHORT cuts off where it should round, as in 1.09M for UNO's 1,097,051, but "
    "rounds Transolver's 4,129,985 to 4.13M.",
    "MPNN is in MAIN but not in RUNTIME, nor in PARAMETERS, which is said to hold all baselines.",
    "SFO is said to be among the fastest on most benchmarks; it is among the first three of eight "
    "on 3 of 6, and fifth on Maxwell.",
    "SUBSAMPLE is said to degrade most in higher dimensions, but from MAIN to s = 10 the error "
    "grows 1.52 times on Maxwell and 1.64 times on Diffusion-Reaction.",
    "SUBSAMPLE is said to raise the error in general, Diffusion-Sorption apart, but it is below "
    "MAIN's interval on Cahn-Hilliard at s = 4 (0.068 %) and on Maxwell at s = 2 (38 %).",
    "SUBSAMPLE has grids of n/s points, but 6 and 10 divide none of the n in SHAPES.",
    "BOUNDARY's error on the full grid is outside MAIN's interval on Diffusion-Sorption (0.1119 % "
    "against 0.1080 ± 0.0006 %) and Maxwell (40 % against 40.8 ± 0.103 %).",
    "BOUNDARY is said to show a gap on Diffusion-Sorption and Maxwell, where the larger error is "
    "3.1 and 1.2 times the smaller, but Shallow Water has the largest, 4.8 times.",
    "SHAPES has 1,024 points for Cahn-Hilliard, but DeepONet's 3,451,237 parameters in 1D are "
    "those for 256 points throughout; with 1,024 the mean would be 3,475,813.",
    "SHAPES has two fields in and three out for Shallow Water, but the parameters of SFO and FNO "
    "in 2D, 406,053 and 478,277, are those for one in and one out.",
    "COEFFICIENTS are said to decrease with l on all but one benchmark, but Cahn-Hilliard's "
    "largest is at l = 20, and Maxwell's grow up to l = 5 and drop 20 times from l = 16 to l = 17.",
)
"""Where the paper disagrees with itself, in this module's terms."""
