"""smallNORB's matrix files, written byte by byte."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from published_files import norb_bytes
from torchcaps.data import TrainSplit, validation_split
from torchcaps.data.readers.smallnorb import parse_norb_matrix, smallnorb_split
from torchcaps.errors import DataError


def norb_files(count: int = 10):
    pixels = (np.arange(count * 2 * 6 * 6) % 249).astype(np.uint8).reshape(count, 2, 6, 6)
    categories = (np.arange(count) % 5).astype("<i4")
    info = np.stack(
        [np.arange(count) // 5 + 4, np.arange(count) % 9, np.arange(count) % 18 * 2, np.arange(count) % 6], axis=1
    ).astype("<i4")
    return pixels, categories, info


def test_the_header_is_the_published_one():
    """The page of the data set: [55 4C 3D 1E] for bytes, then 4, 24300, 2, 96, 96, each in four bytes."""
    data = norb_bytes(np.zeros((3, 2, 96, 96), np.uint8))
    assert data[:24] == bytes.fromhex("554c3d1e 04000000 03000000 02000000 60000000 60000000")
    vector = norb_bytes(np.arange(7, dtype="<i4"))
    assert vector[:20] == bytes.fromhex("544c3d1e 01000000 07000000 01000000 01000000")


def test_pairs_and_facts_are_read():
    pixels, categories, info = norb_files()
    split = smallnorb_split(norb_bytes(pixels), norb_bytes(categories), norb_bytes(info), TrainSplit)
    assert torch.equal(split.images, torch.from_numpy(pixels))
    assert split.labels.tolist() == [0, 1, 2, 3, 4] * 2
    assert split.attributes["instance"].tolist() == [4] * 5 + [5] * 5
    assert split.attributes["elevation"].tolist() == [30, 35, 40, 45, 50, 55, 60, 65, 70, 30]
    assert split.attributes["azimuth"].tolist() == [0, 20, 40, 60, 80, 100, 120, 140, 160, 180]
    assert split.attributes["lighting"].tolist() == [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]


def test_a_validation_set_holds_whole_toys_out():
    pixels, categories, info = norb_files(100)
    info[:, 0] = np.arange(100) // 5 % 5
    split = smallnorb_split(norb_bytes(pixels), norb_bytes(categories), norb_bytes(info), TrainSplit)
    train, validation = validation_split(split, 0.2)
    assert not set(train.groups.tolist()) & set(validation.groups.tolist())
    assert validation.class_counts(5) == [4] * 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: struct.pack("<I", 0x803) + data[4:], "found 0x00000803"),
        (lambda data: struct.pack("<I", 0x1E3D4C52) + data[4:], "packed"),
        (lambda data: data[:4] + struct.pack("<i", 99) + data[8:], "99 dimensions"),
        (lambda data: data[:4] + struct.pack("<i", -1) + data[8:], "-1 dimensions"),
        (lambda data: data[:-3], "truncated"),
        (lambda data: data[:12], "20 bytes or more"),
        (lambda data: data[:8] + struct.pack("<i", -10) + data[12:], "announces -10"),
    ],
)
def test_damaged_files_are_refused(change, message):
    pixels, _, _ = norb_files()
    with pytest.raises(DataError, match=message):
        parse_norb_matrix(change(norb_bytes(pixels)))


def test_files_that_do_not_belong_together_are_refused():
    pixels, categories, info = norb_files()
    with pytest.raises(DataError, match="but -cat holds"):
        smallnorb_split(norb_bytes(pixels), norb_bytes(categories[:-1]), norb_bytes(info), TrainSplit)
    with pytest.raises(DataError, match="but -info holds"):
        smallnorb_split(norb_bytes(pixels), norb_bytes(categories), norb_bytes(info[:, :3]), TrainSplit)
    with pytest.raises(DataError, match="-dat should hold bytes"):
        smallnorb_split(norb_bytes(info), norb_bytes(categories), norb_bytes(info), TrainSplit)
    with pytest.raises(DataError, match="number the toys 0 to 9"):
        smallnorb_split(norb_bytes(pixels), norb_bytes(categories), norb_bytes(info + 9), TrainSplit)


@given(st.binary(max_size=60), st.sampled_from([0, 0x1E3D4C54, 0x1E3D4C55]))
def test_random_bytes_raise_our_error_or_are_a_matrix(data, magic):
    data = struct.pack("<I", magic) + data
    with contextlib.suppress(DataError):
        assert parse_norb_matrix(data).size > 0
