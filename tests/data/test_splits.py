"""Held-out sets: exact shares, whole groups, and a choice that never changes."""

from __future__ import annotations

import dataclasses
import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcaps.data import TestSplit, TrainSplit, load, sample_digits, train_and_validation, validation_split
from torchcaps.data.splits import path_keys, split_off_test
from torchcaps.errors import DataError


def split_of(labels: list[int], groups: list[int] | None = None) -> TrainSplit:
    """Pictures that carry their own position, so that a split can be followed."""
    count = len(labels)
    return TrainSplit(
        torch.zeros(count, 1, 1, 1, dtype=torch.uint8),
        torch.tensor(labels, dtype=torch.int64),
        None if groups is None else torch.tensor(groups, dtype=torch.int64),
        {"position": torch.arange(count)},
    )


def positions(split) -> list[int]:
    return split.attributes["position"].tolist()


def test_classes_keep_their_shares_and_no_example_is_lost():
    train, validation = validation_split(sample_digits("train"), count=200)
    assert validation.class_counts(10) == [20] * 10
    assert train.class_counts(10) == [80] * 10
    both = torch.cat([train.attributes["original_index"], validation.attributes["original_index"]])
    assert sorted(both.tolist()) == sample_digits("train").attributes["original_index"].tolist()


def test_the_choice_is_the_same_today_and_tomorrow():
    _, validation = validation_split(sample_digits("train"), count=200, seed=0)
    chosen = validation.attributes["original_index"].numpy().astype("<i8").tobytes()
    assert hashlib.sha256(chosen).hexdigest()[:16] == "6394056bc823e9f3"
    _, other = validation_split(sample_digits("train"), count=200, seed=1)
    assert other.attributes["original_index"].tolist() != validation.attributes["original_index"].tolist()


@given(
    st.lists(st.integers(0, 3), min_size=4, max_size=60),
    st.floats(0.05, 0.95),
    st.integers(0, 2**40),
)
def test_any_set_is_divided_exactly(labels, fraction, seed):
    split = split_of(labels)
    count = min(max(1, round(len(labels) * fraction)), len(labels) - 1)
    train, validation = validation_split(split, count=count, seed=seed)
    assert len(validation) == count
    assert sorted(positions(train) + positions(validation)) == list(range(len(labels)))
    for label in set(labels):
        share = labels.count(label) * count / len(labels)
        assert abs(validation.class_counts(4)[label] - share) < 2


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), min_size=6, max_size=60), st.integers(0, 99))
def test_no_group_stands_on_both_sides(rows, seed):
    labels, groups = zip(*rows, strict=True)
    split = split_of(list(labels), list(groups))
    if len(set(groups)) < 2:
        with pytest.raises(DataError, match="one group"):
            validation_split(split, 0.3, seed=seed)
        return
    train, validation = validation_split(split, 0.3, seed=seed)
    assert min(len(train), len(validation)) > 0
    assert not set(train.groups.tolist()) & set(validation.groups.tolist())


def test_groups_of_one_give_the_wanted_size():
    split = split_of([0, 1] * 50, list(range(100)))
    _, validation = validation_split(split, count=20)
    assert validation.class_counts(2) == [10, 10]


def test_large_groups_show_every_class_on_both_sides():
    toys = [(label, 10 * label + toy) for label in range(3) for toy in range(5) for _ in range(8)]
    labels, groups = map(list, zip(*toys, strict=True))
    _, validation = validation_split(split_of(labels, groups), 0.1)  # half a toy of each class
    assert validation.class_counts(3) == [8, 8, 8]
    train, validation = validation_split(split_of([0] * 3 + [1] * 9, [0] * 3 + [1] * 5 + [2] * 4), 0.2)
    assert (train.class_counts(2), validation.class_counts(2)) == ([3, 5], [0, 4])  # the only group of 0 stays


def test_a_rare_class_keeps_its_example_in_training():
    train, _ = validation_split(split_of([0] * 97 + [1] * 3), count=5)
    assert train.class_counts(2)[1] >= 2
    train, _ = validation_split(split_of([0] * 10 + [1]), count=9)
    assert train.class_counts(2) == [1, 1]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("shared", range(5))
def test_a_group_with_the_only_examples_of_a_class_stays_in_training(shared, several):
    split = split_of([0] * 25 + [1] * 2, [group for group in range(5) for _ in range(5)] + [shared] * 2)
    if several:
        split = dataclasses.replace(split, labels=torch.nn.functional.one_hot(split.labels).bool())
    train, test = split_off_test(split, 0.2)
    assert (train.class_counts(2), test.class_counts(2)) == ([20, 2], [5, 0])


@pytest.mark.parametrize(("labels", "groups"), [([0, 1], None), ([0, 0, 1, 1], [0, 0, 1, 1])])
def test_a_class_that_could_only_be_tested_is_refused(labels, groups):
    with pytest.raises(DataError, match=r"no example of class number \d would be left to train on"):
        split_off_test(split_of(labels, groups), 0.2)


def test_every_class_of_two_gives_a_test_example():
    train, test = split_off_test(split_of([0] * 3 + [1] * 3 + [2] * 2 + [3] + [4] * 4), 0.2)
    assert test.class_counts(5) == [1, 1, 1, 0, 1]
    assert train.class_counts(5) == [2, 2, 1, 1, 3]
    assert len(split_off_test(split_of([0] * 20 + [1] * 3), 0.2)[1]) == 5


def test_several_labels_are_stratified_by_their_combination():
    combinations = torch.tensor([[1, 0], [0, 1], [1, 1], [0, 0]], dtype=torch.bool)
    split = TrainSplit(torch.zeros(80, 1, 1, 1, dtype=torch.uint8), combinations.repeat(20, 1))
    _, validation = validation_split(split, count=8)
    assert validation.class_counts(2) == [4, 4]


def test_a_picture_keeps_its_side_when_others_come():
    names = [f"class/{number}.png" for number in range(100)]
    train, test = split_off_test(split_of([0] * 100), 0.2, keys=path_keys(names))
    fewer = split_of([0] * 90)
    train_before, test_before = split_off_test(fewer, 0.2, keys=path_keys(names[:90]))
    assert type(test) is TestSplit
    moved = set(positions(train_before)) & set(positions(test)) | set(positions(test_before)) & set(positions(train))
    assert len(moved) <= 4
    assert len(test) == 20


def test_folds_hold_every_example_out_once():
    digits = sample_digits("train")
    seen = []
    for fold in range(5):
        train, validation = validation_split(digits, 0.2, fold=fold)
        assert validation.class_counts(10) == [20] * 10
        held = validation.attributes["original_index"].tolist()
        assert not set(held) & set(train.attributes["original_index"].tolist())
        seen += held
    assert sorted(seen) == sorted(digits.attributes["original_index"].tolist())
    first = validation_split(digits, 0.2)[1].attributes["original_index"].tolist()
    assert seen[:200] == first
    with pytest.raises(DataError, match="of 1000 examples nothing is left for fold 5"):
        validation_split(digits, 0.2, fold=5)
    with pytest.raises(DataError, match="a fold is 0 or a whole number above it, got -1"):
        validation_split(digits, 0.2, fold=-1)


def test_consecutive_examples_are_held_out_in_a_row():
    digits = split_of([0, 1] * 11 + [0])
    folds = [validation_split(digits, count=5, fold=fold, consecutive=True) for fold in range(5)]
    assert [positions(held) for _, held in folds] == [
        list(range(first, min(first + 5, 23))) for first in (0, 5, 10, 15, 20)
    ]
    for train, held in folds:
        assert sorted(positions(train) + positions(held)) == list(range(23))
    with pytest.raises(DataError, match="of 23 examples nothing is left for fold 5"):
        validation_split(digits, count=5, fold=5, consecutive=True)
    with pytest.raises(DataError, match="a fold is 0 or a whole number above it, got -1"):
        validation_split(digits, count=5, fold=-1, consecutive=True)
    with pytest.raises(DataError, match="both sides need at least one"):
        validation_split(digits, count=23, consecutive=True)
    with pytest.raises(DataError, match="would take all of class number 2: the set is sorted by class"):
        validation_split(split_of([0, 0, 0, 0, 1, 1, 2, 2]), count=3, fold=2, consecutive=True)
    with pytest.raises(DataError, match="the set has groups"):
        validation_split(split_of([0, 0, 1, 1], [0, 1, 2, 3]), count=2, consecutive=True)
    source = load("mnist-sample")
    held = train_and_validation(source, 0.1, fold=2, consecutive=True)[1]
    assert torch.equal(held.images, source.train.images[200:300])


@pytest.mark.parametrize("sizes", [[25] * 4, [96, 4], [13, 7, 10]])
def test_ten_tenths_are_everything_also_where_classes_do_not_divide_by_ten(sizes):
    split = split_of([label for label, size in enumerate(sizes) for _ in range(size)])
    folds = [validation_split(split, 0.1, fold=fold)[1] for fold in range(10)]
    assert sorted(position for fold in folds for position in positions(fold)) == list(range(len(split)))
    for label, size in enumerate(sizes):
        assert all(abs(fold.class_counts(len(sizes))[label] - size / 10) < 1.01 for fold in folds)


@pytest.mark.parametrize("groups", [None, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]])
def test_a_fold_far_beyond_what_there_is_is_refused_at_once(groups):
    with pytest.raises(DataError, match="nothing is left for fold 1152921504606846976"):
        validation_split(split_of([0] * 6 + [1] * 6, groups), 0.25, fold=2**60)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), min_size=6, max_size=60), st.booleans())
def test_folds_never_overlap(rows, grouped):
    labels, groups = zip(*rows, strict=True)
    split = split_of(list(labels), list(groups) if grouped else None)
    if grouped and len(set(groups)) < 2:
        return
    held: list[int] = []
    for fold in range(4):
        try:
            train, validation = validation_split(split, 0.25, fold=fold)
        except DataError:  # nothing is left
            assert fold
            break
        assert sorted(positions(train) + positions(validation)) == list(range(len(rows)))
        held += positions(validation)
    assert len(set(held)) == len(held)


def test_a_published_validation_set_is_used_as_it_is():
    digits = load("mnist-sample")
    train, validation = train_and_validation(digits, 0.25)
    assert (len(train), len(validation)) == (750, 250)
    published = dataclasses.replace(digits, train=train, validation=validation)
    assert train_and_validation(published, 0.5) == (train, validation)
    with pytest.raises(DataError, match="has one validation set, that of its publisher, so there is no fold 2"):
        train_and_validation(published, 0.5, fold=2)
    with pytest.raises(DataError, match="that of its publisher, so there is no other one of consecutive examples"):
        train_and_validation(published, 0.5, consecutive=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fraction": 1.0}, "between 0 and 1"),
        ({"fraction": 0.1, "count": 3}, "not both"),
        ({"count": 1000}, "both sides need"),
        ({"count": 0}, "both sides need"),
    ],
)
def test_impossible_wishes_are_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        validation_split(sample_digits("train"), **arguments)


def test_the_test_set_cannot_be_taken_by_mistake():
    with pytest.raises(DataError, match="not from a TestSplit"):
        validation_split(sample_digits("test"), 0.1)  # type: ignore[arg-type]


def test_groups_times_classes_have_a_limit():
    each = list(range(6000))
    with pytest.raises(DataError, match="6,000 groups of 6,000 classes are too many"):
        split_off_test(split_of(each, each), 0.2)
