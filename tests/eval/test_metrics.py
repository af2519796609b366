"""Metrics against scikit-learn and slow loops."""

from __future__ import annotations

import pytest
import torch
from sklearn import metrics as reference

from torchcaps.eval import (
    EvaluationResult,
    calibration,
    confusion_matrix,
    exact_match_error,
    label_error,
    reconstruction_errors,
)
from torchcaps.eval.metrics import Calibration
from torchcaps.train.objective import is_wrong

N, J = 300, 7


@pytest.fixture
def scores():
    return torch.rand(N, J)


def test_one_class_is_scikit_learns(scores):
    labels = torch.randint(J, (N,))
    named = scores.argmax(1)
    expected = reference.confusion_matrix(labels, named, labels=range(J))
    assert (confusion_matrix(scores, labels).numpy() == expected).all()
    error = exact_match_error(scores, labels)
    assert error.share == pytest.approx(1 - reference.accuracy_score(labels, named))
    assert error.total == N
    assert label_error(scores, labels) == error


def test_pairs_count_only_when_both_are_right(scores):
    labels = torch.stack([torch.randperm(J)[:2] for _ in range(N)])
    expected_exact = expected_missed = 0
    for row, pair in zip(scores, labels, strict=True):
        named = set(row.sort(descending=True).indices[:2].tolist())
        expected_exact += named != set(pair.tolist())
        expected_missed += len(set(pair.tolist()) - named)
    assert exact_match_error(scores, labels).count == expected_exact
    missed = label_error(scores, labels)
    assert (missed.count, missed.total) == (expected_missed, 2 * N)
    assert 0 < expected_exact < N


def test_confusion_of_pairs_counts_every_label_once(scores):
    labels = torch.stack([torch.randperm(J)[:2] for _ in range(N)])
    confusion = confusion_matrix(scores, labels)
    torch.testing.assert_close(confusion.sum(1), torch.bincount(labels.flatten(), minlength=J).double())
    found = 2 * N - label_error(scores, labels).count
    assert confusion.diagonal().sum() == found


def test_pictures_with_different_numbers_of_classes_are_judged_by_a_threshold():
    scores = torch.tensor([[0.9, 0.6, 0.1], [0.4, 0.2, 0.7], [0.2, 0.1, 0.3]])
    truth = torch.tensor([[True, True, False], [True, False, True], [False, False, False]])
    assert exact_match_error(scores, truth).count == 1
    assert label_error(scores, truth).count == 1
    assert (1 - exact_match_error(scores, truth).share) == pytest.approx(
        reference.accuracy_score(truth.numpy(), (scores > 0.5).numpy())
    )


def test_calibration_by_hand():
    scores = torch.tensor([[0.95, 0.0], [0.93, 0.0], [0.0, 0.55], [0.52, 0.1]])
    result = calibration(scores, torch.tensor([0, 1, 1, 0]), num_bins=10)
    upper, lower = result.bins[1], result.bins[0]
    assert (upper.count, upper.accuracy, upper.confidence) == (2, 0.5, pytest.approx(0.94))
    assert (lower.count, lower.accuracy, lower.confidence) == (2, 1.0, pytest.approx(0.535))
    assert result.expected_error == pytest.approx(0.5 * 0.44 + 0.5 * 0.465)


@pytest.mark.parametrize("num_bins", [1, 4, 15])
def test_calibration_is_that_of_a_slow_loop(scores, num_bins):
    labels = torch.randint(J, (N,))
    expected = 0.0
    for place in range(num_bins):
        inside = [
            (float(row.max()), int(row.argmax()) == int(label))
            for row, label in zip(scores, labels, strict=True)
            if place / num_bins < float(row.max()) <= (place + 1) / num_bins
        ]
        if inside:
            confidence, right = (sum(column) / len(inside) for column in zip(*inside, strict=True))
            expected += len(inside) / N * abs(confidence - right)
    result = calibration(scores, labels, num_bins)
    assert result.expected_error == pytest.approx(expected, abs=1e-6)
    assert sum(part.count for part in result.bins) == N


def test_a_confidence_that_is_the_chance_has_no_error():
    scores = torch.zeros(100, 2)
    scores[:, 0] = 0.75
    labels = (torch.arange(100) % 4 == 0).long()
    assert calibration(scores, labels).expected_error == pytest.approx(0)


def test_a_confidence_on_an_edge_belongs_to_the_bin_below():
    bins = calibration(torch.tensor([[0.5, 0.0], [0.75, 0.0], [1.0, 0.0]]), torch.zeros(3, dtype=torch.int64), 4).bins
    assert [(part.low, part.high) for part in bins] == [(0.25, 0.5), (0.5, 0.75), (0.75, 1.0)]


def test_where_no_class_is_named_there_is_no_calibration_error():
    silent = EvaluationResult(torch.full((4, 3), 0.2), torch.ones(4, 3, dtype=torch.bool))
    assert silent.calibration == Calibration((), None)
    assert silent.as_dict()["expected_calibration_error"] is None


def test_reconstruction_error_is_a_sum_over_the_picture():
    images, drawn = torch.rand(5, 1, 6, 7), torch.rand(5, 1, 6, 7)
    expected = [float(((a - b) ** 2).sum()) for a, b in zip(drawn, images, strict=True)]
    assert reconstruction_errors(drawn, images).tolist() == pytest.approx(expected)


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"\[N, J\]"):
        exact_match_error(torch.rand(5), torch.zeros(5, dtype=torch.int64))
    with pytest.raises(ValueError, match="as many truths"):
        confusion_matrix(torch.rand(5, 3), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="at least one example"):
        exact_match_error(torch.rand(0, 3), torch.zeros(0, dtype=torch.int64))


@pytest.mark.parametrize("kind", ["one", "two", "any"])
def test_training_and_evaluation_count_by_the_same_rule(kind):
    """With many ties, and where every picture happens to show one class."""
    torch.manual_seed(0)
    scores = torch.randint(0, 4, (1000, 10)) / 3
    first, other = torch.randint(0, 10, (1000,)), torch.randint(1, 10, (1000,))
    two = torch.stack([first, (first + other) % 10], dim=1)
    labels = {"one": first, "two": two, "any": torch.nn.functional.one_hot(first, 10).bool()}[kind]
    assert int(is_wrong(scores, labels).sum()) == exact_match_error(scores, labels).count
