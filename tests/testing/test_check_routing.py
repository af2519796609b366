from functools import partial

import pytest
import torch

import wrong_routings
from torchcaps import ops
from torchcaps.testing import check_routing


@pytest.mark.parametrize("iterations", [1, 2, 5])
def test_our_routing_is_sound(iterations):
    report = check_routing(partial(ops.dynamic_routing, iterations=iterations), algorithm="any number of iterations")
    assert report.passed, str(report)


def test_every_property_is_checked_on_our_routing():
    report = check_routing(ops.dynamic_routing)
    assert report.passed, str(report)
    assert [finding.name for finding in report.findings if finding.skipped] == ["leaky_coefficients"]


def test_our_leaky_routing_is_sound():
    assert check_routing(partial(ops.dynamic_routing, leaky=True), leaky=True).passed


@pytest.mark.parametrize(
    ("routing", "name", "words"),
    [
        (
            wrong_routings.softmax_over_children,
            "coefficients",
            "coefficients sum to 1 over children, expected over parents",
        ),
        (
            wrong_routings.positions_mixed_into_the_vector,
            "child_permutation",
            "positions are mixed into the capsule vector",
        ),
        (
            wrong_routings.logits_shared_over_the_batch,
            "batch_independence",
            "are the logits shared over the batch?",
        ),
        (
            wrong_routings.squash_over_the_wrong_axis,
            "rotation",
            "the squash runs over the wrong axis",
        ),
        (
            wrong_routings.detached_update_called_full_gradient,
            "full_gradient",
            "it is exactly the gradient with the inner iterations cut off",
        ),
    ],
)
def test_five_wrong_routings_fail_with_the_right_words(routing, name, words):
    report = check_routing(routing)
    assert not report.passed
    by_name = {finding.name: finding.problem for finding in report.failures}
    assert words in by_name[name]
    with pytest.raises(AssertionError, match="is not sound"):
        report.raise_if_failed()


def test_one_mistake_brings_no_complaints_about_other_things():
    """A mistake in one place must not drown in follow-up complaints of other properties."""
    assert [f.name for f in check_routing(wrong_routings.detached_update_called_full_gradient).failures] == [
        "full_gradient"
    ]
    names = {f.name for f in check_routing(wrong_routings.softmax_over_children).failures}
    assert names == {"coefficients", "one_iteration_averages", "agrees_with_procedure_1"}


def test_odd_functions_are_findings_not_crashes():
    def broken(votes):
        raise RuntimeError("out of luck")

    def wrong_shape(votes):
        return votes.sum(2)

    def detached(votes):
        return ops.dynamic_routing(votes.detach())

    def nothing(votes):
        return None

    assert "out of luck" in str(check_routing(broken))
    assert "expected [B, J, D] = [3, 4, 5]" in str(check_routing(wrong_shape))
    assert "no gradient flows" in str(check_routing(detached))
    assert "must return a tensor" in str(check_routing(nothing))


def test_unsafe_squash_and_unbounded_length_are_found():
    def book_squash(s):
        return s * s.norm(dim=-1, keepdim=True) / (1 + s.norm(dim=-1, keepdim=True) ** 2) / 1.0

    def divides_by_zero(votes):
        s = votes.sum(1) / votes.shape[2]
        squared = (s * s).sum(-1, keepdim=True)
        return squared / (1 + squared) * s / squared.sqrt()

    def too_long(votes):
        return votes.sum(1) / votes.shape[2]

    assert "squash divides by a length of 0" in str(check_routing(divides_by_zero))
    assert "expected below 1" in str(check_routing(too_long))
    assert check_routing(lambda votes: book_squash(votes.sum(1) / votes.shape[2])).passed


def test_skipping_needs_a_known_name_and_keeps_the_reason():
    report = check_routing(torch.nn.Identity(), skip={"shape": "only to see the reason"})
    assert "only to see the reason" in str(report)
    with pytest.raises(ValueError, match="no property is named speed"):
        check_routing(ops.dynamic_routing, skip={"speed": "slow machine"})
