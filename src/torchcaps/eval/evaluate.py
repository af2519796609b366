"""A model over a whole split, in large batches: the scores that every metric and figure is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from torchcaps.data.augment import Augmentations
from torchcaps.data.loader import evaluation_batches
from torchcaps.data.multimnist import MultiMNIST
from torchcaps.data.source import Split
from torchcaps.data.window import to_unit_float
from torchcaps.errors import TorchcapsError
from torchcaps.eval import metrics
from torchcaps.eval.intervals import Proportion
from torchcaps.eval.precision import full_precision
from torchcaps.eval.two_classes import RocCurve, TwoClassMetrics, roc_curve, two_class_metrics
from torchcaps.models import CapsuleModel, Model
from torchcaps.models.mode import evaluation_mode

__all__ = [
    "CLASS_COLUMNS",
    "EvaluationResult",
    "Watch",
    "can_reconstruct",
    "check_size",
    "evaluate",
    "evaluate_pairs",
    "spread_pairs",
]

BATCH_SIZE = 500
CLASS_COLUMNS = ("class", "examples", "wrong", "error", "most often taken for")  # of class_rows
Watch = Callable[[int, int], None]  # told how many of how many examples are done


@dataclass(frozen=True)
class EvaluationResult:
    """Scores and truth of every example, on the CPU; the metrics follow from them.

    Shape:
        scores: ``[N, J]``. labels: int64 ``[N]``, int64 ``[N, 2]`` for pairs, or bool ``[N, J]``.
        reconstruction_errors: sum of squared pixel differences, ``[N]`` or ``None`` without a decoder. For one class
            the reconstruction is that of the longest capsule, as in the paper; for pairs it is the mean over the two
            digits, each drawn from its own capsule and compared with that digit alone.
    """

    scores: Tensor
    labels: Tensor
    reconstruction_errors: Tensor | None = None

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def truth(self) -> Tensor:
        """Which classes are there, bool ``[N, J]``."""
        return metrics.true_classes(self.labels, self.scores.shape[1])

    @cached_property
    def named(self) -> Tensor:
        """Which classes the model names, bool ``[N, J]``."""
        return metrics.predicted_classes(self.scores, self.labels)

    @property
    def is_multi_label(self) -> bool:
        return self.labels.ndim == 2

    @property
    def error_name(self) -> str:
        """What :attr:`error` counts."""
        if not self.is_multi_label:
            return "error"
        return f"{'pictures' if self.labels.dtype == torch.bool else 'pairs'} with an error"

    @property
    def error(self) -> Proportion:
        """Classification error; for pictures of several classes, those not matched exactly."""
        return metrics.exact_match_error(self.scores, self.labels)

    @property
    def label_error(self) -> Proportion:
        return metrics.label_error(self.scores, self.labels)

    @property
    def confusion(self) -> Tensor:
        return metrics.confusion_matrix(self.scores, self.labels)

    @property
    def calibration(self) -> metrics.Calibration:
        return metrics.calibration(self.scores, self.labels)

    @property
    def has_two_classes(self) -> bool:
        """Whether every example shows one of two classes."""
        return not self.is_multi_label and self.scores.shape[1] == 2

    def two_class_metrics(self, positive: int) -> TwoClassMetrics:
        """Sensitivity, specificity and precision where class ``positive`` is the positive one of two."""
        self._check_two_classes()
        return two_class_metrics(self.named[:, 1].long(), self.labels, positive)

    def roc_curve(self, positive: int) -> RocCurve | None:
        """By the score of class ``positive`` less that of the other, which decides; its area is that of either class.

        There is none where all examples are of one class.
        """
        self._check_two_classes()
        scores = self.scores.double()
        return roc_curve(scores[:, positive] - scores[:, 1 - positive], self.labels == positive)

    def _check_two_classes(self) -> None:
        if not self.has_two_classes:
            raise ValueError(
                f"these metrics are of one of two classes an example, got {self.scores.shape[1]} classes and labels of "
                f"shape {list(self.labels.shape)}"
            )

    @property
    def mean_reconstruction_error(self) -> float | None:
        return None if self.reconstruction_errors is None else float(self.reconstruction_errors.double().mean())

    def class_rows(self, classes: Sequence[str]) -> list[tuple[str, ...]]:
        """Of each class, in words: name, examples, wrong ones, error, and what it is most often taken for."""
        rows: list[tuple[str, ...]] = []
        confusion = self.confusion
        for j, name in enumerate(classes):
            total, right = float(self.truth[:, j].sum()), float(confusion[j, j])
            others = confusion[j].clone()
            others[j] = 0
            worst = int(others.argmax())
            share = f"{100 * (total - right) / total:.2f} %" if total else "–"
            taken = f"{classes[worst]} ({float(others[worst]):.4g})" if others[worst] > 0 else ""
            rows.append((name, f"{total:.0f}", f"{total - right:.0f}", share, taken))
        return rows

    def wrong(self) -> Tensor:
        """Positions of the examples that are wrong, the most confident mistake first."""
        positions = (self.named != self.truth).any(dim=1).nonzero()[:, 0]
        invented = self.scores.masked_fill(~self.named | self.truth, 0).amax(dim=1)
        missing = self.scores.masked_fill(~self.truth | self.named, 1).amin(dim=1)
        doubt = (invented - missing)[positions]
        return positions[doubt.argsort(descending=True, stable=True)]

    def as_dict(self) -> dict[str, Any]:
        """The metrics as plain numbers, for JSON."""
        error, calibration = self.error, self.calibration
        facts: dict[str, Any] = {
            "examples": len(self),
            "errors": error.count,
            "error_percent": error.percent,
            "error_percent_interval": [100 * bound for bound in error.interval],
            "confidence": error.confidence,
        }
        if self.is_multi_label:
            labels = self.label_error
            facts["label_errors"], facts["labels"] = labels.count, labels.total
            facts["label_error_percent"] = labels.percent
        facts["expected_calibration_error"] = calibration.expected_error
        facts["reconstruction_error"] = self.mean_reconstruction_error
        facts["confusion"] = self.confusion.tolist()
        return facts


def can_reconstruct(model: Model) -> bool:
    """Whether the model has a decoder."""
    return isinstance(model, CapsuleModel) and model.decoder is not None


def evaluate(
    model: Model, split: Split, batch_size: int = BATCH_SIZE, augment: Augmentations | None = None
) -> EvaluationResult:
    """Every example of a split once, in order, on the device where the model lies and in its floating-point type.

    ``augment`` is the pipeline that training used; only its fixed parts act (the central crop, the standardisation).

    Example:
        >>> import torchcaps
        >>> from torchcaps.data import sample_digits
        >>> model = torchcaps.create_model("small-cnn", channels=4, hidden=16)
        >>> len(evaluate(model, sample_digits("test")))
        500
    """
    if not len(split):
        raise TorchcapsError("there is nothing to evaluate: the split holds no pictures")
    device = next(model.parameters()).device
    batches = evaluation_batches(split, batch_size, device, augment)
    return _collect(model, ((batch.images, batch.labels, None) for batch in batches))


def evaluate_pairs(
    model: Model, pairs: MultiMNIST, indices: Tensor, batch_size: int = BATCH_SIZE, watch: Watch | None = None
) -> EvaluationResult:
    """The pairs of these indices (int64 ``[N]``); a pair counts as right only if both digits are named.

    A batch is made where ``pairs`` lies and forgotten after use; scores and labels are kept, 60 bytes a pair.
    ``watch(done, total)`` is called after each batch.
    """
    device = next(model.parameters()).device

    done = 0

    def batches() -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        nonlocal done
        for part in indices.split(batch_size):
            batch = pairs.pairs(part.to(pairs.device))
            yield to_unit_float(batch.images.to(device)), batch.labels, to_unit_float(batch.singles.to(device))
            done += len(part)
            if watch is not None:
                watch(done, len(indices))

    return _collect(model, batches())


def spread_pairs(pairs: MultiMNIST, count: int) -> Tensor:
    """Indices of ``count`` pairs, evenly spaced, so that every base digit has its share: int64 ``[count]``."""
    count = min(count, len(pairs))
    if count < 1:
        raise TorchcapsError(f"at least one pair is needed to evaluate, got {count}")
    return torch.arange(count) * len(pairs) // count


@torch.no_grad()
def _collect(model: Model, batches: Iterator[tuple[Tensor, Tensor, Tensor | None]]) -> EvaluationResult:
    dtype = next(model.parameters()).dtype
    scores, labels, errors = [], [], []
    with evaluation_mode(model), full_precision():
        for images, truth, singles in batches:
            check_size(model, images)
            out = model(images.to(dtype))
            scores.append(out.scores.float().cpu())
            labels.append(truth.cpu())
            if can_reconstruct(model):
                errors.append(_drawing_errors(model, out, images, truth.to(images.device), singles).float().cpu())
    return EvaluationResult(torch.cat(scores), torch.cat(labels), torch.cat(errors) if errors else None)


def _drawing_errors(model: Model, out: Any, images: Tensor, truth: Tensor, singles: Tensor | None) -> Tensor:
    assert isinstance(model, CapsuleModel)
    if singles is None:
        several = truth.dtype == torch.bool  # drawn together, as in training
        named = metrics.predicted_classes(out.scores, truth) if several else out.lengths.argmax(dim=1)
        picture = model.reconstruct(out.capsules, named)
        return metrics.reconstruction_errors(picture, images)
    digits = [
        metrics.reconstruction_errors(model.reconstruct(out.capsules, truth[:, place]), singles[:, place])
        for place in range(truth.shape[1])
    ]
    return torch.stack(digits).mean(dim=0)


def check_size(model: Model, images: Tensor) -> None:
    if tuple(images.shape[1:]) != tuple(model.image_shape):
        expected, came = ("×".join(map(str, shape)) for shape in (model.image_shape, images.shape[1:]))
        raise TorchcapsError(
            f"the model takes pictures of {expected} (channels×height×width), but the data has {came}; evaluate on the "
            "data it was trained for, or train a model for these pictures"
        )
