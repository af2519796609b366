"""What is asked of a test that says yes or no: sensitivity, specificity, precision, the ROC curve and its area."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torchcaps.eval.intervals import Proportion

__all__ = ["RocCurve", "TwoClassMetrics", "roc_curve", "two_class_metrics"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class RocCurve:
    """Share of positives found against share of negatives taken for positives, for every threshold of the scores.

    Attributes:
        false_positives, true_positives: shares, float64 ``[T]``, from (0, 0) to (1, 1); equal scores are one step.
        area: the chance that a positive scores higher than a negative, an equal score counted by half.
        interval: DeLong's 95 % interval of the area; none where no example varies, as where all are told apart.
    """

    false_positives: Tensor
    true_positives: Tensor
    area: float
    interval: tuple[float, float] | None

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.area:.4f}"
        low, high = self.interval
        return f"{self.area:.4f} ({100 * CONFIDENCE:g} % interval {low:.4f} … {high:.4f})"


@dataclass(frozen=True)
class TwoClassMetrics:
    """One of two classes taken as the positive one; a share of nothing is ``None``.

    Attributes:
        positive: number of the positive class.
        sensitivity: of all positives, those that are named positive.
        specificity: of all negatives, those that are named negative.
        precision: of all that are named positive, those that are.
    """

    positive: int
    sensitivity: Proportion | None
    specificity: Proportion | None
    precision: Proportion | None

    def items(self) -> list[tuple[str, Proportion | None]]:
        """The measures by name."""
        measures = {"sensitivity": self.sensitivity, "specificity": self.specificity, "precision": self.precision}
        return list(measures.items())

    def as_dict(self, classes: Sequence[str]) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        facts: dict[str, Any] = {"positive": classes[self.positive]}
        for name, measure in self.items():
            facts[f"{name}_percent"] = None if measure is None else measure.percent
            facts[f"{name}_percent_interval"] = None if measure is None else [100 * bound for bound in measure.interval]
        return facts


def two_class_metrics(named: Tensor, labels: Tensor, positive: int) -> TwoClassMetrics:
    """Count what was named against the truth.

    Shape:
        named: class numbers ``[N]``, 0 or 1. labels: the same.

    Example:
        >>> metrics = two_class_metrics(torch.tensor([1, 1, 0, 0]), torch.tensor([1, 0, 0, 0]), positive=1)
        >>> metrics.sensitivity.share, metrics.precision.share
        (1.0, 0.5)
    """
    here, said = labels == positive, named == positive
    right = int((here & said).sum())
    return TwoClassMetrics(
        positive,
        _share(right, int(here.sum())),
        _share(int((~here & ~said).sum()), int((~here).sum())),
        _share(right, int(said.sum())),
    )


def roc_curve(scores: Tensor, positives: Tensor) -> RocCurve | None:
    """The curve of scores that should be high for positives; none where there are only positives, or none.

    Shape:
        scores: ``[N]``. positives: bool ``[N]``.

    Example:
        >>> print(roc_curve(torch.tensor([0.9, 0.4, 0.6, 0.1]), torch.tensor([True, True, False, False])).area)
        0.75
    """
    P, N = int(positives.sum()), int((~positives).sum())
    if not P or not N:
        return None
    order = scores.argsort(descending=True, stable=True)
    ranked = scores[order]
    last_of_equals = torch.cat((ranked[1:] != ranked[:-1], torch.ones(1, dtype=torch.bool)))
    start = torch.zeros(1, dtype=torch.float64)
    found = torch.cat((start, positives[order].double().cumsum(0)[last_of_equals]))
    taken = torch.cat((start, (~positives[order]).double().cumsum(0)[last_of_equals]))
    area = float(((taken[1:] - taken[:-1]) * (found[1:] + found[:-1])).sum()) / (2 * P * N)
    return RocCurve(taken / N, found / P, area, _delong(scores, positives, area))


def _delong(scores: Tensor, positives: Tensor, area: float) -> tuple[float, float] | None:
    """From the share of negatives that each positive beats, and of positives that beat each negative."""
    high, low = scores[positives], scores[~positives]
    if len(high) < 2 or len(low) < 2:
        return None
    beaten = _share_below(high, low)
    beating = 1 - _share_below(low, high)
    variance = float(beaten.var() / len(high) + beating.var() / len(low))
    if variance == 0:
        return None
    reach = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(variance)
    return max(0.0, area - reach), min(1.0, area + reach)


def _share_below(values: Tensor, others: Tensor) -> Tensor:
    """For each value, how many of the others are lower, equal ones counted by half."""
    ranked = others.sort().values.contiguous()
    values = values.contiguous()
    lower, to_equal = torch.searchsorted(ranked, values), torch.searchsorted(ranked, values, right=True)
    return (lower + to_equal).double() / (2 * len(ranked))


def _share(count: int, total: int) -> Proportion | None:
    return Proportion(count, total) if total else None
