"""SVHN, COIL-20 and affNIST, written here in the form of the published MATLAB files."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.io
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchcaps.data import TestSplit, TrainSplit, validation_split
from torchcaps.data.readers.matlab import affnist_split, coil20_splits, coil20_viewpoints, svhn_split
from torchcaps.errors import DataError


def mat(**variables) -> bytes:
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, variables)
    return buffer.getvalue()


def test_svhn_turns_the_axes_and_calls_ten_zero():
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4), dtype=np.uint8)
    split = svhn_split(mat(X=pixels, y=np.array([[1], [10], [9], [10]], np.uint8)), TrainSplit)
    assert split.labels.tolist() == [1, 0, 9, 0]
    assert split.images.shape == (4, 3, 32, 32)
    assert split.images[2, 1, 5, 7].item() == pixels[5, 7, 1, 2]


def coil_variables(objects: int = 20):
    pixels = np.random.default_rng(1).integers(0, 256, (objects * 72, 32, 32), dtype=np.uint8)
    columns_first = pixels.transpose(0, 2, 1).reshape(-1, 1024)
    labels = np.repeat(np.arange(1, objects + 1), 72).astype(np.uint8)[:, None]
    return pixels, {"X": columns_first / 255, "Y": labels}


def test_coil20_pictures_stand_upright_and_views_are_held_out():
    pixels, variables = coil_variables()
    train, test = coil20_splits(mat(**variables))
    assert (len(train), len(test)) == (720, 720)
    assert set(train.attributes["azimuth"].tolist()) == set(range(0, 360, 10))
    assert set(test.attributes["azimuth"].tolist()) == set(range(5, 360, 10))
    assert torch.equal(train.images[1, 0], torch.from_numpy(pixels[2]))  # object 1 at 10°
    assert torch.equal(test.images[36, 0], torch.from_numpy(pixels[73]))  # object 2 at 5°
    assert test.labels[36].item() == 1


def test_coil20_seen_from_one_side_only():
    train, test = coil20_viewpoints(mat(**coil_variables()[1]))
    assert (len(train), len(test)) == (480, 960)
    assert train.class_counts(20) == [24] * 20
    seen, novel = (set(split.attributes["azimuth"].tolist()) for split in (train, test))
    assert seen == {*range(0, 60, 5), *range(300, 360, 5)}
    assert seen | novel == set(range(0, 360, 5))
    assert not seen & novel
    left, held_out = validation_split(train, 1 / 6)
    azimuths = [set(split.attributes["azimuth"].tolist()) for split in (left, held_out)]
    assert not azimuths[0] & azimuths[1]
    assert held_out.class_counts(20) == [4] * 20


def affnist_record(count: int = 6):
    pixels = np.random.default_rng(2).integers(0, 256, (1600, count), dtype=np.uint8)
    return {
        "affine_params": np.zeros((6, count)),
        "human_readable_transform": np.zeros((6, count)),
        "image": pixels,
        "label_one_of_n": np.eye(10, dtype=np.uint8)[:, np.arange(count) % 10],
        "label_int": (np.arange(count, dtype=np.uint8) % 10)[None],
        "id": np.arange(count)[None],
    }


def test_affnist_pictures_are_stored_row_by_row():
    record = affnist_record()
    split = affnist_split(mat(affNISTdata=record), TestSplit)
    assert split.images.shape == (6, 1, 40, 40)
    assert split.labels.tolist() == [0, 1, 2, 3, 4, 5]
    assert split.images[3, 0, 2, 9].item() == record["image"][2 * 40 + 9, 3]


@pytest.mark.parametrize(
    ("read", "variables", "message"),
    [
        (svhn_split, {"X": np.zeros((32, 32, 3, 2), np.uint8)}, "expected the variable 'y', found X"),
        (svhn_split, {"X": np.zeros((32, 32, 3, 2), np.float32), "y": [[1], [2]]}, "expected X as uint8"),
        (svhn_split, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[1]]}, "2 pictures but 1 labels"),
        (svhn_split, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": [[1], [11]]}, "from 1 to 10"),
        (affnist_split, {"affNISTdata": np.zeros(3)}, "one record"),
        (affnist_split, {"affNISTdata": {**affnist_record(), "image": np.zeros((784, 6), np.uint8)}}, "1600"),
    ],
)
def test_files_of_another_form_are_refused(read, variables, message):
    with pytest.raises(DataError, match=message):
        read(mat(**variables), TrainSplit)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.full((1440, 1024), 2.0)}, "from 0 to 1"),
        ({"X": np.zeros((1440, 900))}, "1024"),
        ({"Y": np.arange(1440)[:, None] % 20 + 1}, "72 views"),
        ({"Y": np.ones((3, 1))}, "but 3 labels"),
    ],
)
def test_coil20_of_another_form_is_refused(change, message):
    _, variables = coil_variables()
    with pytest.raises(DataError, match=message):
        coil20_splits(mat(**{**variables, **change}))


@given(st.binary(max_size=300))
def test_random_bytes_raise_our_error(data):
    with pytest.raises(DataError):
        svhn_split(data, TrainSplit)
    with pytest.raises(DataError):
        coil20_splits(data)
