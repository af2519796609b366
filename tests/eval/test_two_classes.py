"""Sensitivity, specificity, precision and the ROC curve against scikit-learn, with ties and with one class only."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as reference

from torchcaps.eval import EvaluationResult
from torchcaps.eval.intervals import Proportion
from torchcaps.eval.two_classes import roc_curve, two_class_metrics

TIES = st.integers(0, 4).map(lambda number: number / 4)
EXAMPLES = st.lists(st.tuples(TIES, st.booleans()), min_size=1, max_size=40)


def both_sided(examples: list[tuple[float, bool]]) -> bool:
    return len({positive for _, positive in examples}) == 2


@given(EXAMPLES)
def test_the_curve_and_its_area_are_scikit_learns(examples):
    scores = torch.tensor([score for score, _ in examples])
    positives = torch.tensor([positive for _, positive in examples])
    curve = roc_curve(scores, positives)
    if not both_sided(examples):
        assert curve is None
        return
    false, true, _ = reference.roc_curve(positives, scores, drop_intermediate=False)
    np.testing.assert_allclose(curve.false_positives, false)
    np.testing.assert_allclose(curve.true_positives, true)
    assert curve.area == pytest.approx(reference.roc_auc_score(positives, scores))


@given(EXAMPLES.filter(both_sided))
def test_the_interval_is_delongs(examples):
    """By its definition: the variance over examples of the share of the other class that each one beats."""
    high = [score for score, positive in examples if positive]
    low = [score for score, positive in examples if not positive]
    curve = roc_curve(torch.tensor([*high, *low]), torch.tensor([True] * len(high) + [False] * len(low)))
    wins = [[(a > b) + 0.5 * (a == b) for b in low] for a in high]
    rows, columns = (
        [statistics.mean(row) for row in wins],
        [statistics.mean(column) for column in zip(*wins, strict=True)],
    )
    variances = [statistics.variance(part) / len(part) if len(part) > 1 else math.nan for part in (rows, columns)]
    if not sum(variances) > 0:
        assert curve.interval is None
        return
    reach = 1.959963984540054 * math.sqrt(sum(variances))
    assert curve.interval == pytest.approx((max(0, curve.area - reach), min(1, curve.area + reach)))


@given(EXAMPLES, st.booleans())
def test_the_shares_are_scikit_learns(examples, positive):
    named = torch.tensor([int(score > 0.5) for score, _ in examples])
    labels = torch.tensor([int(label) for _, label in examples])
    found = two_class_metrics(named, labels, int(positive))
    nan = {"zero_division": math.nan}
    expected = {
        "sensitivity": reference.recall_score(labels, named, pos_label=int(positive), **nan),
        "specificity": reference.recall_score(labels, named, pos_label=1 - int(positive), **nan),
        "precision": reference.precision_score(labels, named, pos_label=int(positive), **nan),
    }
    for name, share in found.items():
        assert (share is None) == math.isnan(expected[name])
        assert share is None or share.share == pytest.approx(expected[name])


def test_shares_have_wilsons_interval_and_the_name_of_the_positive_class():
    labels = torch.tensor([1] * 10 + [0] * 20)
    named = torch.tensor([1] * 8 + [0] * 2 + [1] + [0] * 19)
    found = two_class_metrics(named, labels, 1)
    assert (found.sensitivity, found.specificity) == (Proportion(8, 10), Proportion(19, 20))
    facts = found.as_dict(("well", "ill"))
    assert (facts["positive"], facts["precision_percent"]) == ("ill", pytest.approx(100 * 8 / 9))
    assert facts["sensitivity_percent_interval"] == [100 * bound for bound in Proportion(8, 10).interval]


def test_either_class_has_the_same_area_and_the_curve_passes_where_the_model_decides():
    scores = torch.rand(200, 2)
    result = EvaluationResult(scores, (scores[:, 1] + 0.5 * torch.rand(200) > 0.8).long())
    one, other = result.roc_curve(1), result.roc_curve(0)
    assert one.area == pytest.approx(other.area)
    found = result.two_class_metrics(1)
    place = (1 - found.specificity.share, found.sensitivity.share)
    points = torch.stack((one.false_positives, one.true_positives), dim=1)
    assert (points - torch.tensor(place, dtype=torch.float64)).abs().sum(dim=1).min() < 1e-9


def test_other_tasks_have_no_positive_class():
    for scores, labels in (
        (torch.rand(4, 3), torch.tensor([0, 1, 2, 0])),
        (torch.rand(4, 2), torch.rand(4, 2) > 0.5),
    ):
        result = EvaluationResult(scores, labels)
        assert not result.has_two_classes
        with pytest.raises(ValueError, match="one of two classes an example"):
            result.roc_curve(1)
