"""How sure a measured number is: Wilson's interval for an error, mean ± s.d. and Student's interval over seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "Proportion",
    "SeedSummary",
    "difference_of_means",
    "student_quantile",
    "summarize_seeds",
    "wilson_interval",
]


def wilson_interval(count: int, total: int, confidence: float = 0.95) -> tuple[float, float]:
    r"""Wilson's score interval of a share ``count / total``; it stays inside 0 … 1 and is honest near 0.

    .. math:: \frac{\hat p + z^2/2n \pm z\sqrt{\hat p (1 - \hat p)/n + z^2/4n^2}}{1 + z^2/n}

    Example:
        >>> low, high = wilson_interval(25, 10_000)
        >>> f"{100 * low:.2f} … {100 * high:.2f} %"
        '0.17 … 0.37 %'
    """
    if total < 1 or not 0 <= count <= total:
        raise ValueError(f"a share needs 0 ≤ count ≤ total and total ≥ 1, got {count} of {total}")
    z = statistics.NormalDist().inv_cdf((1 + _checked(confidence)) / 2)
    share = count / total
    middle = share + z * z / (2 * total)
    reach = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    # At the ends the exact bound is 0 or 1; rounding would leave a crumb beside it.
    low = 0.0 if count == 0 else (middle - reach) / scale
    high = 1.0 if count == total else (middle + reach) / scale
    return low, high


@dataclass(frozen=True)
class Proportion:
    """So many of so many, with its interval; ``str`` gives it as a percentage.

    Example:
        >>> print(Proportion(9, 500))
        1.80 % (9 of 500; 95 % interval 0.95 … 3.39 %)
    """

    count: int
    total: int
    confidence: float = 0.95

    @property
    def share(self) -> float:
        return self.count / self.total

    @property
    def percent(self) -> float:
        return 100 * self.share

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval, as shares."""
        return wilson_interval(self.count, self.total, self.confidence)

    @property
    def interval_text(self) -> str:
        low, high = self.interval
        return f"{100 * low:.2f} … {100 * high:.2f} %"

    def __str__(self) -> str:
        return (
            f"{self.percent:.2f} % ({self.count:,} of {self.total:,}; "
            f"{100 * self.confidence:g} % interval {self.interval_text})"
        )


@dataclass(frozen=True)
class SeedSummary:
    """One number measured with several seeds.

    Attributes:
        deviation: sample standard deviation (n − 1), ``None`` for a single value.
        interval: Student's confidence interval of the mean; ``None`` for a single value, and where all are equal: they
            say nothing of how far another would lie, and an interval of no width would say too much.
    """

    values: tuple[float, ...]
    mean: float
    deviation: float | None
    interval: tuple[float, float] | None
    confidence: float

    def __str__(self) -> str:
        if self.deviation is None:
            return f"{self.mean:.3f} (one seed)"
        seeds = f"{len(self.values)} seeds"
        if self.interval is not None:
            low, high = self.interval
            seeds += f"; {100 * self.confidence:g} % interval of the mean {low:.3f} … {high:.3f}"
        return f"{self.mean:.3f} ± {self.deviation:.3f} ({seeds})"


def summarize_seeds(values: Sequence[float], confidence: float = 0.95) -> SeedSummary:
    """Mean, sample standard deviation and Student's interval of the mean; no interval where all values are equal.

    Example:
        >>> print(summarize_seeds([0.25, 0.26, 0.24]))
        0.250 ± 0.010 (3 seeds; 95 % interval of the mean 0.225 … 0.275)
    """
    if not values:
        raise ValueError("a summary over seeds needs at least one value, got none")
    mean = statistics.fmean(values)
    if len(values) == 1:
        return SeedSummary(tuple(values), mean, None, None, _checked(confidence))
    deviation = statistics.stdev(values)
    if deviation == 0:
        return SeedSummary(tuple(values), mean, deviation, None, _checked(confidence))
    reach = student_quantile((1 + _checked(confidence)) / 2, len(values) - 1) * deviation / math.sqrt(len(values))
    return SeedSummary(tuple(values), mean, deviation, (mean - reach, mean + reach), confidence)


def difference_of_means(
    values: Sequence[float], base: Sequence[float], confidence: float = 0.95
) -> tuple[float, tuple[float, float] | None]:
    r"""Mean of ``values`` less that of ``base``, and Welch's interval of it.

    There is no interval where one has a single value, nor where neither differs within itself.

    .. math:: \bar x - \bar y \pm t_\nu \sqrt{s_x^2/n + s_y^2/m}

    The degrees of freedom ν are those of Welch and Satterthwaite, rounded down: the interval is rather too wide.

    Example:
        >>> difference, (low, high) = difference_of_means([0.30, 0.31, 0.32], [0.25, 0.26, 0.27])
        >>> f"{difference:.2f}, {low:.3f} … {high:.3f}"
        '0.05, 0.027 … 0.073'
    """
    difference = statistics.fmean(values) - statistics.fmean(base)
    if min(len(values), len(base)) < 2:
        return difference, None
    shares = [statistics.variance(group) / len(group) for group in (values, base)]
    total = sum(shares)
    if total == 0:
        return difference, None
    parts = sum(share**2 / (len(group) - 1) for share, group in zip(shares, (values, base), strict=True))
    degrees = max(1, math.floor(total**2 / parts + 1e-9))
    reach = student_quantile((1 + _checked(confidence)) / 2, degrees) * math.sqrt(total)
    return difference, (difference - reach, difference + reach)


def student_quantile(probability: float, degrees: int) -> float:
    """Quantile of Student's t distribution for a whole number of degrees of freedom, by bisection.

    For whole degrees the distribution function is a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4), so no
    library of special functions is needed.
    """
    if not 0 < probability < 1 or degrees < 1:
        raise ValueError(f"a quantile needs 0 < probability < 1 and degrees ≥ 1, got {probability} and {degrees}")
    if probability < 0.5:
        return -student_quantile(1 - probability, degrees)
    wanted = 2 * probability - 1  # the share within ± t
    low, high = 0.0, 1.0
    while _share_within(high, degrees) < wanted:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if _share_within(middle, degrees) < wanted else (low, middle)
    return (low + high) / 2


def _share_within(t: float, degrees: int) -> float:
    """P(|T| < t)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine_squared = math.cos(angle) ** 2
    odd = degrees % 2 == 1
    term, total = 1.0, 0.0
    for index in range(degrees // 2):
        total += term
        factor = (2 * index + 2) / (2 * index + 3) if odd else (2 * index + 1) / (2 * index + 2)
        term *= factor * cosine_squared
    if odd:
        return 2 / math.pi * (angle + math.sin(angle) * math.cos(angle) * total)
    return math.sin(angle) * total


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"the confidence must lie between 0 and 1, for example 0.95, got {confidence}")
    return confidence
