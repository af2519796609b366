"""Intervals against SciPy's."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some

from torchcaps.eval import Proportion, difference_of_means, summarize_seeds, wilson_interval
from torchcaps.eval.intervals import student_quantile


@given(some.integers(1, 100_000), some.floats(0, 1), some.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_scipys(total, share, confidence):
    stats = pytest.importorskip("scipy.stats")
    count = round(share * total)
    expected = stats.binomtest(count, total).proportion_ci(confidence, method="wilson")
    assert wilson_interval(count, total, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("total", [1, 500])
def test_wilson_stays_inside_and_holds_the_share(total):
    assert wilson_interval(0, total)[0] == 0
    assert wilson_interval(total, total)[1] == 1
    low, high = wilson_interval(total // 2, total)
    assert 0 <= low <= total // 2 / total <= high <= 1


@pytest.mark.parametrize("arguments", [(1, 0), (-1, 5), (6, 5), (1, 5, 1.0), (1, 5, 0.0)])
def test_wilson_refuses_what_is_no_share(arguments):
    with pytest.raises(ValueError, match="got"):
        wilson_interval(*arguments)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 30, 101])
@pytest.mark.parametrize("probability", [0.6, 0.9, 0.975, 0.995, 0.9995])
def test_student_is_scipys(degrees, probability):
    stats = pytest.importorskip("scipy.stats")
    expected = stats.t.ppf(probability, degrees)
    assert student_quantile(probability, degrees) == pytest.approx(expected, rel=1e-8)  # SciPy before 1.12 is no better
    assert student_quantile(1 - probability, degrees) == pytest.approx(-expected, rel=1e-7)


def test_seeds_are_summarised_as_by_hand():
    summary = summarize_seeds([1.0, 2.0, 4.0])
    assert summary.mean == pytest.approx(7 / 3)
    assert summary.deviation == pytest.approx(math.sqrt(7 / 3))
    reach = 4.302652729911275 * math.sqrt(7 / 3) / math.sqrt(3)  # t of 97.5 % at two degrees, from a table
    assert summary.interval == pytest.approx((7 / 3 - reach, 7 / 3 + reach))


def test_one_seed_has_no_spread():
    summary = summarize_seeds([0.3])
    assert (summary.deviation, summary.interval) == (None, None)
    assert str(summary) == "0.300 (one seed)"
    with pytest.raises(ValueError, match="at least one value"):
        summarize_seeds([])


def test_equal_seeds_have_no_interval():
    summary = summarize_seeds([0.3, 0.3, 0.3])
    assert (summary.deviation, summary.interval) == (0, None)
    assert str(summary) == "0.300 ± 0.000 (3 seeds)"
    assert difference_of_means([0.3, 0.3], [0.1, 0.1]) == (pytest.approx(0.2), None)
    low, high = difference_of_means([0.3, 0.3], [0.1, 0.2])[1]
    assert low < 0.15 < high


def test_the_interval_of_a_difference_is_welchs_or_wider():
    stats = pytest.importorskip("scipy.stats")
    one, other = [0.30, 0.34, 0.31, 0.39, 0.33], [0.20, 0.45, 0.10]
    welch = stats.ttest_ind(one, other, equal_var=False)
    mean = sum(one) / 5 - sum(other) / 3
    reach = stats.t.ppf(0.975, int(welch.df)) * mean / welch.statistic
    assert difference_of_means(one, other)[1] == pytest.approx((mean - reach, mean + reach))
    exact = welch.confidence_interval(0.95)
    assert mean - reach < exact.low < exact.high < mean + reach


def test_a_proportion_reads_well():
    assert str(Proportion(25, 10_000)) == "0.25 % (25 of 10,000; 95 % interval 0.17 … 0.37 %)"
