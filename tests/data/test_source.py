"""The contract that every reader fills: wrong forms are refused where they arise."""

from __future__ import annotations

import pytest
import torch

from torchcaps.data import Source, TestSplit, TrainSplit, ValidationSplit
from torchcaps.errors import DataError


def pictures(count: int = 4, channels: int = 1, size: int = 5) -> torch.Tensor:
    return torch.zeros(count, channels, size, size, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (torch.zeros(4, 1, 5, 5), torch.zeros(4, dtype=torch.int64), "must be uint8"),
        (pictures()[:, 0], torch.zeros(4, dtype=torch.int64), "N, C, H, W"),
        (pictures(), torch.zeros(4), "labels must be int64"),
        (pictures(), torch.zeros(3, dtype=torch.int64), "4 images but 3 labels"),
    ],
)
def test_a_split_of_the_wrong_form_is_refused(images, labels, message):
    with pytest.raises(DataError, match=message):
        TrainSplit(images, labels)


def test_every_column_needs_an_entry_for_each_picture():
    labels = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(DataError, match="but 2 groups"):
        TrainSplit(pictures(), labels, groups=torch.zeros(2, dtype=torch.int64))
    with pytest.raises(DataError, match="but 5 azimuth"):
        TrainSplit(pictures(), labels, attributes={"azimuth": torch.zeros(5)})
    with pytest.raises(DataError, match="but 1 files"):
        TrainSplit(pictures(), labels, files=("a.png",))


def test_select_takes_every_column_along():
    split = TrainSplit(
        torch.arange(4, dtype=torch.uint8).reshape(4, 1, 1, 1),
        torch.tensor([3, 2, 1, 0]),
        torch.tensor([10, 11, 12, 13]),
        {"azimuth": torch.tensor([0, 5, 10, 15])},
        ("a", "b", "c", "d"),
    )
    chosen = split.select(torch.tensor([2, 0]), ValidationSplit)
    assert type(chosen) is ValidationSplit
    assert chosen.images.flatten().tolist() == [2, 0]
    assert chosen.labels.tolist() == [1, 3]
    assert chosen.groups.tolist() == [12, 10]
    assert chosen.attributes["azimuth"].tolist() == [10, 0]
    assert chosen.files == ("c", "a")


def source(**changes) -> Source:
    parts = {
        "name": "toy",
        "train": TrainSplit(pictures(), torch.tensor([0, 1, 2, 2])),
        "test": TestSplit(pictures(), torch.tensor([0, 1, 2, 0])),
        "classes": ("a", "b", "c"),
        "licence": "none",
        "origin": "here",
    }
    return Source(**{**parts, **changes})


def test_a_source_knows_its_shape_and_its_counts():
    toy = source()
    assert (toy.image_shape, toy.num_classes, list(toy.splits)) == ((1, 5, 5), 3, ["train", "test"])
    assert toy.train.class_counts(3) == [1, 1, 2]
    several = TrainSplit(pictures(2), torch.tensor([[True, True, False], [True, False, False]]))
    assert several.class_counts(3) == [2, 1, 0]


@pytest.mark.parametrize("label", [3, -1])
def test_labels_outside_the_classes_are_refused(label):
    with pytest.raises(DataError, match="test labels do not fit its 3 classes"):
        source(test=TestSplit(pictures(), torch.tensor([0, 1, 2, label])))


def test_one_class_a_picture_in_train_and_several_in_test_are_refused():
    with pytest.raises(DataError, match="train and test must both have one class a picture, or both several"):
        source(test=TestSplit(pictures(), torch.zeros(4, 3, dtype=torch.bool)))


def test_splits_of_different_shapes_are_refused():
    with pytest.raises(DataError, match="validation pictures"):
        source(validation=ValidationSplit(pictures(size=6), torch.zeros(4, dtype=torch.int64)))


def test_the_test_split_is_no_train_split():
    assert not issubclass(TestSplit, TrainSplit)
    assert not issubclass(ValidationSplit, TrainSplit)
