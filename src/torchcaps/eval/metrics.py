"""What a model got right, from its scores alone: errors, exact match, confusion, calibration.

A score is one number in [0, 1] for each class: the length of its capsule, or a baseline's probability. The truth is
a class number for each example, or a multi-hot row where a picture shows several classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from torchcaps import ops
from torchcaps.eval.intervals import Proportion

__all__ = [
    "PRESENCE_THRESHOLD",
    "Calibration",
    "CalibrationBin",
    "calibration",
    "confusion_matrix",
    "exact_match_error",
    "label_error",
    "predicted_classes",
    "reconstruction_errors",
    "true_classes",
]

PRESENCE_THRESHOLD = 0.5  # for pictures whose number of classes differs from one to the next


def true_classes(labels: Tensor, num_classes: int) -> Tensor:
    """Class numbers ``[N]`` or ``[N, K]``, or bool ``[N, J]``, as bool ``[N, J]``."""
    return labels if labels.dtype == torch.bool else ops.multi_hot(labels, num_classes).bool()


def predicted_classes(scores: Tensor, labels: Tensor) -> Tensor:
    """The classes a model names, bool ``[N, J]``, by the kind of the labels and not by their values.

    Class numbers ``[N]``: the highest score, the first of equals. Class numbers ``[N, K]``, as the two digits of
    MultiMNIST: the K highest scores; K belongs to the task. Any number of classes, bool ``[N, J]``: every score above
    0.5. Training counts by the same rule.
    """
    if labels.dtype == torch.bool:
        return scores > PRESENCE_THRESHOLD
    best = scores.argmax(dim=1, keepdim=True) if labels.ndim == 1 else scores.topk(labels.shape[1], dim=1).indices
    return torch.zeros_like(scores, dtype=torch.bool).scatter_(1, best, True)


def exact_match_error(scores: Tensor, labels: Tensor) -> Proportion:
    """Examples whose classes were not all named, or with others besides: for one class, the classification error.

    Shape:
        scores: ``[N, J]``. labels: ``[N]``, ``[N, K]`` or bool ``[N, J]``.

    Example:
        >>> scores = torch.tensor([[0.9, 0.1, 0.2], [0.3, 0.2, 0.8]])
        >>> print(exact_match_error(scores, torch.tensor([0, 1])))
        50.00 % (1 of 2; 95 % interval 9.45 … 90.55 %)
    """
    truth = _checked(scores, labels)
    wrong = (predicted_classes(scores, labels) != truth).any(dim=1)
    return Proportion(int(wrong.sum()), len(wrong))


def label_error(scores: Tensor, labels: Tensor) -> Proportion:
    """True classes that were not named, out of all true classes; for one class, the same as the exact error."""
    truth = _checked(scores, labels)
    missed = truth & ~predicted_classes(scores, labels)
    return Proportion(int(missed.sum()), max(1, int(truth.sum())))


def confusion_matrix(scores: Tensor, labels: Tensor) -> Tensor:
    """How often class i (row) was called class j (column), float64 ``[J, J]``.

    With several classes in a picture, a class that was named counts on the diagonal; one that was missed is divided
    evenly among the classes named without being there.
    """
    truth = _checked(scores, labels)
    named = predicted_classes(scores, labels)
    missed, invented = (truth & ~named).double(), (named & ~truth).double()
    shares = invented / invented.sum(dim=1, keepdim=True).clamp(min=1)
    return torch.diag((truth & named).sum(dim=0).double()) + missed.T @ shares


@dataclass(frozen=True)
class CalibrationBin:
    """Predictions whose confidence lies in (``low``, ``high``]; ``accuracy`` and ``confidence`` are means."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Bins that are not empty, and the expected calibration error over them; none where no class was named."""

    bins: tuple[CalibrationBin, ...]
    expected_error: float | None


def calibration(scores: Tensor, labels: Tensor, num_bins: int = 15) -> Calibration:
    r"""Expected calibration error: how far a score is from the chance of being right.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \left| \mathrm{accuracy}_b - \mathrm{confidence}_b \right|

    over bins of equal width (Guo et al. 2017). The confidence of a prediction is the score of the class it names: the
    length of the longest capsule. With several classes in a picture each named class is one prediction; where none is
    named in any picture, there is no error to speak of.
    The margin loss asks for 0.9 and no more, so a capsule network that is always right still has an error near 0.1.

    Example:
        >>> calibration(torch.tensor([[0.75, 0.0], [0.0, 0.75]]), torch.tensor([0, 0])).expected_error
        0.25
    """
    if num_bins < 1:
        raise ValueError(f"calibration needs at least one bin, got {num_bins}")
    truth = _checked(scores, labels)
    named = predicted_classes(scores, labels)
    confidence, right = scores[named].double(), truth[named].double()
    edges = torch.linspace(0, 1, num_bins + 1, dtype=torch.float64)
    place = torch.bucketize(confidence, edges).sub(1).clamp(0, num_bins - 1)
    bins = []
    for index in range(num_bins):
        inside = place == index
        if count := int(inside.sum()):
            mean_confidence, accuracy = float(confidence[inside].mean()), float(right[inside].mean())
            bins.append(CalibrationBin(float(edges[index]), float(edges[index + 1]), count, mean_confidence, accuracy))
    total = sum(part.count for part in bins)
    expected = sum(part.count / total * abs(part.accuracy - part.confidence) for part in bins)
    return Calibration(tuple(bins), expected if bins else None)


def reconstruction_errors(reconstruction: Tensor, images: Tensor) -> Tensor:
    """Sum of squared pixel differences of each picture, ``[B]``; the loss of the paper without its factor 0.0005."""
    return ops.reconstruction_loss(reconstruction, images, scale=1.0, reduction="none")


def _checked(scores: Tensor, labels: Tensor) -> Tensor:
    if scores.ndim != 2 or not len(scores):
        raise ValueError(f"scores must be [N, J] with at least one example, got {list(scores.shape)}")
    truth = true_classes(labels, scores.shape[1])
    if truth.shape != scores.shape:
        raise ValueError(f"{list(scores.shape)} scores need as many truths, got labels {list(labels.shape)}")
    return truth
