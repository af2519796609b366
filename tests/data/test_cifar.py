"""CIFAR-10 in its three dresses; the pickles of the Python version cannot run code."""

from __future__ import annotations

import io
import json
import os
import pickle
import pickletools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from torchcaps.data import TestSplit, TrainSplit
from torchcaps.data.readers.cifar import binary_batches_from_sprites, cifar_binary_split, cifar_python_split
from torchcaps.errors import DataError


def batch(count: int, start: int = 0) -> tuple[np.ndarray, np.ndarray]:
    pixels = ((np.arange(count * 3072) + start) % 253).astype(np.uint8).reshape(count, 3072)
    return pixels, ((np.arange(count) + start) % 10).astype(np.uint8)


def binary(pixels, labels) -> bytes:
    return np.concatenate([labels[:, None], pixels], axis=1).tobytes()


def python2_pickle(pixels, labels) -> bytes:
    """What Python 2 wrote: protocol 2, text as bytes, arrays through numpy.core.multiarray."""
    text = pickle.dumps({b"data": pixels, b"labels": labels.tolist(), b"batch_label": b"x"}, protocol=2)
    return text.replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")


def sprite(count: int, width: int = 1024) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, count)).save(buffer, format="PNG")
    return buffer.getvalue()


def test_binary_and_python_versions_agree():
    one, two = batch(4), batch(3, start=5)
    from_binary = cifar_binary_split([binary(*one), binary(*two)], TrainSplit)
    assert b"numpy.core.multiarray" in python2_pickle(*one)
    from_python = cifar_python_split([python2_pickle(*one), python2_pickle(*two)], TrainSplit)
    assert torch.equal(from_binary.images, from_python.images)
    assert torch.equal(from_binary.labels, from_python.labels)
    assert from_binary.images.shape == (7, 3, 32, 32)
    assert from_binary.images[0, 1, 0, 2].item() == one[0][0, 1024 + 2]  # the green plane is the second


def test_sprites_become_the_binary_version():
    files, expected = {}, {}
    labels = {"train": [], "test": []}
    for name, count in (("data_batch_1", 4), ("data_batch_2", 2), ("test_batch", 3)):
        pixels, classes = batch(count, start=len(name))
        sheet = pixels.reshape(count, 3, 1024).transpose(0, 2, 1)  # a row a picture
        buffer = io.BytesIO()
        Image.fromarray(np.ascontiguousarray(sheet)).save(buffer, format="PNG")
        files[f"{name}.png"] = buffer.getvalue()
        labels["test" if name.startswith("test") else "train"] += classes.tolist()
        expected[f"{name}.bin"] = binary(pixels, classes)
    files["train_lables.json"] = json.dumps(labels["train"]).encode()
    files["test_lables.json"] = json.dumps(labels["test"]).encode()
    assert binary_batches_from_sprites(files) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_batch.png": sprite(2)[:40]}, "cannot be decoded"),
        ({"test_batch.png": sprite(2).replace(b"IDAT", b"\0\0\0\0")}, "cannot be decoded"),  # a SyntaxError of Pillow
        ({"test_batch.png": sprite(2, width=1023)}, "has 1023 × 2 pixels"),
        ({"test_batch.png": sprite(10_001)}, "has 1024 × 10001 pixels"),
        ({"train_lables.json": b"[" * 100_000}, "label files"),
        ({"train_lables.json": b"[1, 300]"}, "label files"),
    ],
)
def test_sprites_of_another_form_are_refused(change, message):
    labels = {"train_lables.json": b"[1, 2]", "test_lables.json": b"[3, 4]"}
    files = {"data_batch_1.png": sprite(2), "test_batch.png": sprite(2)} | labels
    assert len(binary_batches_from_sprites(files)) == 2
    with pytest.raises(DataError, match=message):
        binary_batches_from_sprites(files | change)


def test_a_truncated_or_foreign_file_is_refused():
    data = binary(*batch(2))
    with pytest.raises(DataError, match="file 1: expected records of 3073 bytes"):
        cifar_binary_split([data[:-1]], TestSplit)
    with pytest.raises(DataError, match="labels run from 0 to 9"):
        cifar_binary_split([b"\xff" + data[1:]], TestSplit)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("it-ran",)


def test_a_pickle_that_would_run_code_is_refused_before_it_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = pickle.dumps({b"data": Evil(), b"labels": []}, protocol=2)
    assert "mkdir" in "".join(str(argument) for _, argument, _ in pickletools.genops(data))
    with pytest.raises(DataError, match=r"mkdir.*refused"):
        cifar_python_split([data], TrainSplit)
    assert not (tmp_path / "it-ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        {b"data": np.zeros((2, 3072), np.float32), b"labels": [0, 1]},
        {b"data": np.zeros((2, 10), np.uint8), b"labels": [0, 1]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]},
        {b"data": np.zeros((2, 3072), np.uint8)},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [b"0", b"1"]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]},
        {b"data": [0, 1], b"labels": [0, 1]},
        [1, 2],
    ],
)
def test_pickles_of_another_form_are_refused(content):
    with pytest.raises(DataError, match=r"file 1|labels run from 0 to 9"):
        cifar_python_split([pickle.dumps(content, protocol=2)], TrainSplit)


@given(st.binary(max_size=100))
def test_random_bytes_raise_our_error(data):
    for read in (cifar_binary_split, cifar_python_split):
        with pytest.raises(DataError):
            read([data], TrainSplit)
