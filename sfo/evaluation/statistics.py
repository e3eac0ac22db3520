"""What a mean over seeds is worth, and whether one model beats another on the same samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10, sqrt

import numpy as np
from scipy.special import stdtrit

# So many resampled differences are held at a time, 8 MB.
CHUNK = 2**20


@dataclass(frozen=True)
class Interval:
    """A mean and half the width of its confidence interval.

    Attributes:
        mean: Mean of the values.
        half_width: None where one value alone says nothing about the spread.
        n: Number of values.
        level: Level of confidence.

    Example:
        >>> print(Interval(0.4512, 0.0287, n=10))
        0.45 ± 0.03
    """

    mean: float
    half_width: float | None
    n: int
    level: float = 0.95

    def __str__(self) -> str:
        """Rounded where the interval begins: to its first digit, or the second after a 1."""
        if self.half_width is None or self.half_width == 0:
            return f"{self.mean:.3g}" + (" ± 0" if self.half_width == 0 else "")
        exponent = floor(log10(self.half_width))
        decimals = (1 if self.half_width < 1.95 * 10**exponent else 0) - exponent
        shift = 0
        if decimals > 4 and self.mean != 0:
            shift = max(floor(log10(abs(self.mean))), exponent)
        places = max(0, decimals + shift)
        mean, half_width = (f"{x / 10**shift:.{places}f}" for x in (self.mean, self.half_width))
        return f"({mean} ± {half_width})e{shift}" if shift else f"{mean} ± {half_width}"


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """The mean over seeds and its confidence interval by Student's t distribution.

        x̄ ± t_{n−1} s / √n,        s² = Σ (xᵢ − x̄)² / (n − 1)

    Args:
        values: One value per seed.
        level: Probability that such intervals cover the true mean.

    Example:
        >>> print(mean_interval([1.0, 2.0, 3.0]))
        2 ± 2
    """
    x = _finite("values", values)
    _check_level(level)
    if len(x) == 1:
        return Interval(float(x[0]), None, 1, level)
    t = stdtrit(len(x) - 1, (1 + level) / 2)
    return Interval(float(x.mean()), float(t * x.std(ddof=1) / sqrt(len(x))), len(x), level)


@dataclass(frozen=True)
class Comparison:
    """Errors of two models on the same samples; made by `compare`.

    Attributes:
        difference: Mean of first − second: negative where the first is better.
        lower, upper: Ends of its confidence interval; None for a single sample.
        reduction: 1 − (mean of first) / (mean of second), as the paper quotes gains; None
            where the second makes no error.
        wins: Share of the samples on which the first is better; a tie is half a win.
        p_value: Wilcoxon's signed-rank test, two-sided; 1 where all pairs are equal.
        n: Number of samples.
        level: Level of confidence.

    Example:
        >>> gain = compare([0.1, 0.2, 0.3], [0.2, 0.3, 0.4])
        >>> isinstance(gain, Comparison), round(gain.difference, 3), round(gain.reduction, 3)
        (True, -0.1, 0.333)
    """

    difference: float
    lower: float | None
    upper: float | None
    reduction: float | None
    wins: float
    p_value: float
    n: int
    level: float


def compare(
    first: Sequence[float],
    second: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Two models by their errors on the same samples, pair by pair.

    Which samples are hard is common to both and drops out of the differences dᵢ = firstᵢ −
    secondᵢ. Errors are skewed, so the interval is a bootstrap's: the quantiles of the mean of n
    differences drawn from the n with replacement.

    It speaks of these two trained models and of samples like these. Whether one *method* is
    better also takes several seeds of each: `mean_interval`.

    Args:
        first, second: `Errors.per_sample` of the two.
        level: Level of confidence.
        resamples: Number of draws.
        seed: Seed of the draws.

    Example:
        >>> compare([0.1, 0.2, 0.3], [0.2, 0.3, 0.4]).wins
        1.0
    """
    x, y = _finite("first", first), _finite("second", second)
    _check_level(level)
    if len(x) != len(y) or resamples < 1:
        raise ValueError(
            "`first` and `second` must be errors on the same samples and `resamples` at least 1, "
            f"got {len(x)} and {len(y)} errors, resamples={resamples}."
        )
    from scipy.stats import wilcoxon  # a second, of which most commands have no use

    d = x - y
    lower, upper = _bootstrap(d, level, resamples, seed) if len(d) > 1 else (None, None)
    return Comparison(
        difference=float(d.mean()),
        lower=lower,
        upper=upper,
        reduction=float(1 - x.mean() / y.mean()) if y.mean() != 0 else None,
        wins=float((d < 0).mean() + (d == 0).mean() / 2),
        p_value=float(wilcoxon(d).pvalue) if d.any() else 1.0,
        n=len(d),
        level=level,
    )


def _bootstrap(d: np.ndarray, level: float, resamples: int, seed: int) -> tuple[float, float]:
    """Quantiles of the mean of resampled values."""
    generator = np.random.default_rng(seed)
    step = max(1, CHUNK // len(d))
    means = [
        d[generator.integers(len(d), size=(min(step, resamples - start), len(d)))].mean(1)
        for start in range(0, resamples, step)
    ]
    lower, upper = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return float(lower), float(upper)


def _finite(name: str, values: Sequence[float]) -> np.ndarray:
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or len(x) == 0 or not np.isfinite(x).all():
        raise ValueError(
            f"`{name}` must be one or more finite numbers, got {list(values)[:8]}. "
            "A run that diverged has no place in a mean: count it apart."
        )
    return x


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"`level` must be between 0 and 1, as in 0.95, got {level}.")
