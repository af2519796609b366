"""NumPy files: MedMNIST's keys, one's own, and patients that stay on one side."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchcaps.data import ValidationSplit, load
from torchcaps.data.readers.npz import chest_xray_splits
from torchcaps.data.readers.plain_arrays import parse_npz
from torchcaps.errors import DataError


def save(tmp_path, **columns):
    path = tmp_path / "set.npz"
    np.savez_compressed(path, **columns)
    return f"npz:{path}"


def pixels(count: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)


def test_the_keys_of_medmnist(tmp_path):
    columns = {}
    for part, count in (("train", 8), ("val", 4), ("test", 6)):
        columns[f"{part}_images"] = pixels(count, 28, 28)
        columns[f"{part}_labels"] = np.arange(count, dtype=np.uint8)[:, None] % 2
    source = load(save(tmp_path, **columns))
    assert {name: len(split) for name, split in source.splits.items()} == {"train": 8, "validation": 4, "test": 6}
    assert type(source.validation) is ValidationSplit
    assert (source.image_shape, source.classes) == ((1, 28, 28), ("0", "1"))
    assert (source.train.images[:, 0].numpy() == columns["train_images"]).all()


@pytest.mark.parametrize(("shape", "names"), [((9, 7, 3), ["cat", "dog"]), ((3, 9, 7), [b"cat", b"dog"])])
def test_colour_may_stand_last_or_first_and_classes_have_names(tmp_path, shape, names):
    images = pixels(10, *shape)
    source = load(save(tmp_path, images=images, labels=np.arange(10) % 2, classes=np.array(names)))
    assert source.image_shape == (3, 9, 7)
    assert source.classes == ("cat", "dog")
    assert (len(source.train), len(source.test)) == (8, 2)


def test_several_columns_of_labels_are_several_classes(tmp_path):
    labels = np.array([[1, 0, 1], [0, 0, 0]] * 5)
    source = load(save(tmp_path, images=pixels(10, 4, 4), labels=labels))
    assert source.num_classes == 3
    assert source.train.class_counts(3) == [4, 0, 4]


def test_groups_stay_together(tmp_path):
    groups = np.repeat(["ann", "bob", "cleo", "dan", "eve"], 4)
    source = load(save(tmp_path, images=pixels(20, 4, 4), labels=np.arange(20) % 2, groups=groups))
    assert not set(source.train.groups.tolist()) & set(source.test.groups.tolist())
    assert len(source.test) == 4


@pytest.mark.parametrize("part", ["val", "test"])
def test_a_group_on_both_sides_is_refused(tmp_path, part):
    columns = {f"{name}_images": pixels(4, 4, 4) for name in ("train", part)}
    columns |= {f"{name}_labels": np.arange(4) % 2 for name in ("train", part)}
    apart = {"train_groups": np.array([1, 1, 2, 2]), f"{part}_groups": np.array([3, 3, 4, 4])}
    assert len(load(save(tmp_path, **columns, **apart)).train) == 4
    with pytest.raises(DataError, match=f"the group 2 stands in train_groups and in {part}_groups"):
        load(save(tmp_path, **columns, **apart | {f"{part}_groups": np.array([2, 3, 4, 4])}))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"pictures": pixels(2, 4, 4)}, "expected the keys train_images.*found pictures"),
        ({"images": pixels(2, 4, 4)}, "has no labels beside it"),
        ({"images": pixels(2, 4, 4) / 255, "labels": [0, 1]}, "expected uint8"),
        ({"images": pixels(2, 4), "labels": [0, 1]}, r"expected \[N, H, W\]"),
        ({"images": pixels(4, 4, 4), "labels": [0, 1, 1]}, "4 images but 3 labels"),
        ({"images": pixels(2, 4, 4), "labels": [0.5, 1]}, "expected whole numbers"),
        ({"images": pixels(2, 4, 4), "labels": [[0, 2], [1, 0]]}, "0 and 1 only"),
        ({"images": pixels(0, 4, 4), "labels": np.zeros(0, int)}, "no picture"),
        ({"images": pixels(2, 4, 4, 0), "labels": [0, 1]}, "no picture"),
        ({"images": pixels(4, 4, 4), "labels": [0, 1, -1, 0]}, "found -1 to 1"),
        ({"images": pixels(4, 4, 4), "labels": np.array([0, 1, 2**62, 0])}, "from 0 to 65,535"),
    ],
)
def test_files_of_another_form_are_refused(tmp_path, columns, message):
    with pytest.raises(DataError, match=message):
        load(save(tmp_path, **columns))


def test_pickled_objects_are_refused(tmp_path):
    with pytest.raises(DataError, match="numbers or text"):
        load(save(tmp_path, images=np.array([{"code": 1}], dtype=object), labels=[0]))


@given(st.binary(max_size=200))
def test_random_bytes_raise_our_error(data):
    with pytest.raises(DataError):
        parse_npz(data)


def test_a_damaged_file_raises_our_error():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, images=pixels(5, 8, 8))
    data = bytearray(buffer.getvalue())
    data[80] ^= 0xFF
    with pytest.raises(DataError, match="damaged"):
        parse_npz(bytes(data))


def test_patients_without_a_finding_are_dropped_and_the_others_kept_together():
    count = 60
    columns = {
        "images": pixels(count, 8, 8),
        "covid19": (np.arange(count) // 3 % 2).astype(np.uint8),
        "patientid": np.array([f"p{number // 3}" for number in range(count)]),
        "finding": np.array(["todo" if number < 6 else "Pneumonia" for number in range(count)]),
    }
    train, test = chest_xray_splits(columns)
    assert len(train) + len(test) == 54
    assert not set(train.groups.tolist()) & set(test.groups.tolist())
    assert min(test.class_counts(2)) >= 3
    with pytest.raises(DataError, match="missing: finding"):
        chest_xray_splits({name: column for name, column in columns.items() if name != "finding"})
    with pytest.raises(DataError, match="differ in length"):
        chest_xray_splits({**columns, "covid19": columns["covid19"][1:]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"finding": np.zeros((60, 2))}, "one value a picture"),
        ({"covid19": np.array(1)}, "one value a picture"),
        ({"images": np.array(1)}, "one value a picture"),
        ({"covid19": np.full(60, "yes")}, "whole numbers"),
        ({"covid19": np.full(60, 2**62)}, "from 0 to 65,535"),
        ({"finding": np.full(60, "todo")}, "no picture"),
        ({"finding": np.full(60, b"todo")}, "no picture"),
    ],
)
def test_chest_xrays_with_other_columns_are_refused(change, message):
    columns = {
        "images": pixels(60, 8, 8),
        "covid19": np.arange(60) // 3 % 2,
        "patientid": np.arange(60) // 3,
        "finding": np.full(60, "Pneumonia"),
    }
    assert len(chest_xray_splits(columns)) == 2
    with pytest.raises(DataError, match=message):
        chest_xray_splits(columns | change)
