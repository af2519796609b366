"""IDX files: read exactly, and any other bytes refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from published_files import digits, idx_bytes
from torchcaps.data import TestSplit, TrainSplit, load
from torchcaps.data.readers.idx import idx_split, parse_idx
from torchcaps.errors import DataError


def test_what_was_written_is_read():
    images, labels = digits(5, size=9)
    split = idx_split(idx_bytes(images), idx_bytes(labels), TrainSplit)
    assert torch.equal(split.images[:, 0], torch.from_numpy(images))
    assert split.labels.tolist() == [0, 1, 2, 3, 4]


def test_emnist_pictures_are_turned_upright():
    images, labels = digits(2, size=6)
    split = idx_split(idx_bytes(images), idx_bytes(labels), TestSplit, transposed=True)
    assert torch.equal(split.images[:, 0], torch.from_numpy(images).transpose(1, 2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: b"\x00\x00\x0d\x03" + data[4:], "magic number"),
        (lambda data: data[:-1], "truncated"),
        (lambda data: data + b"\x00", "truncated or damaged"),
        (lambda data: data[:7], "16 bytes of header"),
        (lambda data: data[:4] + b"\xff" * 12 + data[16:], "announces"),
    ],
)
def test_damaged_pictures_are_refused(change, message):
    images, _ = digits(3)
    with pytest.raises(DataError, match=message):
        parse_idx(change(idx_bytes(images)), 3)


def test_labels_in_place_of_images_are_noticed():
    _, labels = digits(30)
    with pytest.raises(DataError, match="images where labels belong"):
        idx_split(idx_bytes(labels), idx_bytes(labels), TrainSplit)


def test_files_that_do_not_belong_together_are_noticed():
    images, _ = digits(4)
    _, labels = digits(5)
    with pytest.raises(DataError, match="4 images but 5 labels"):
        idx_split(idx_bytes(images), idx_bytes(labels), TrainSplit)


@given(st.binary(max_size=64), st.binary(max_size=64))
@example(b"\x00\x00\x08\x03" + bytes(12), b"\x00\x00\x08\x01" + bytes(4))
@example(b"\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"")
def test_random_bytes_raise_our_error_or_are_a_picture(images, labels):
    try:
        split = idx_split(images, labels, TrainSplit)
    except DataError:
        return
    assert len(split.images) == len(split.labels) > 0


@given(st.binary(max_size=200))
def test_random_bytes_behind_a_right_header_are_counted(data):
    header = b"\x00\x00\x08\x01" + len(data).to_bytes(4, "big")
    assert parse_idx(header + data, 1).tobytes() == data
    with pytest.raises(DataError, match="announces"):
        parse_idx(header + data + b"x", 1)


@given(st.binary(max_size=80))
def test_a_folder_of_random_files_raises_our_error(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("idx")
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte"):
        (folder / name).write_bytes(data)
    with pytest.raises(DataError):
        load(f"idx:{folder}")


def write_pair(folder, prefix, count, pack=False):
    images, labels = digits(count, size=5, classes=4)
    for part, values in (("images-idx3", images), ("labels-idx1", labels)):
        data = idx_bytes(values)
        name = f"{prefix}-{part}-ubyte"
        (folder / (f"{name}.gz" if pack else name)).write_bytes(gzip.compress(data) if pack else data)


def test_a_folder_with_train_and_test(tmp_path):
    write_pair(tmp_path, "emnist-toy-train", 12, pack=True)
    write_pair(tmp_path, "emnist-toy-test", 8)
    source = load(f"idx:{tmp_path}")
    assert (len(source.train), len(source.test), source.classes) == (12, 8, ("0", "1", "2", "3"))


def test_a_single_pair_is_divided(tmp_path):
    write_pair(tmp_path, "t10k", 40)
    source = load(f"idx:{tmp_path}")
    assert source.test.class_counts(4) == [2, 2, 2, 2]
    assert source.train.class_counts(4) == [8, 8, 8, 8]


def test_folders_that_leave_a_choice_or_nothing_are_refused(tmp_path):
    with pytest.raises(DataError, match="it holds 0"):
        load(f"idx:{tmp_path}")
    for prefix in ("a-train", "b-train"):
        write_pair(tmp_path, prefix, 8)
    with pytest.raises(DataError, match="a-train-, b-train-"):
        load(f"idx:{tmp_path}")
    (tmp_path / "b-train-labels-idx1-ubyte").unlink()
    with pytest.raises(DataError, match="images without labels"):
        load(f"idx:{tmp_path}")
    with pytest.raises(DataError, match="not a folder"):
        load(f"idx:{tmp_path / 'absent'}")


def test_pixels_are_the_callers_own():
    images, labels = digits(2)
    split = idx_split(idx_bytes(images), idx_bytes(labels), TrainSplit)
    split.images.zero_()  # would fail, or warn, on memory that belongs to the bytes
    assert np.frombuffer(idx_bytes(images), np.uint8, offset=16).any()
