"""The embedded digits: balanced, genuine, and made by the script that says so."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

import torchcaps.data
from published_files import real_data
from torchcaps.data import TestSplit, TrainSplit, load, sample_digits
from torchcaps.errors import DataError

SAMPLE = Path(torchcaps.data.__file__).parent / "sample_digits.npz"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_sample_digits.py"


def test_the_sample_is_balanced_and_typed():
    train, test = sample_digits("train"), sample_digits("test")
    assert (type(train), type(test)) == (TrainSplit, TestSplit)
    assert train.images.shape == (1000, 1, 28, 28)
    assert train.class_counts(10) == [100] * 10
    assert test.class_counts(10) == [50] * 10
    assert train.images.float().mean().item() == pytest.approx(33.3, abs=1.0)  # MNIST: 0.1307 · 255


def test_an_unknown_split_is_refused():
    with pytest.raises(DataError, match="'train' and 'test'"):
        sample_digits("validation")  # type: ignore[call-overload]


def test_the_file_is_small_and_attributed():
    assert SAMPLE.stat().st_size < 600_000
    with np.load(SAMPLE, allow_pickle=False) as columns:
        assert "CC BY-SA" in str(columns["attribution"]) or "Attribution-ShareAlike" in str(columns["attribution"])


def test_every_digit_stands_in_mnist_under_its_index():
    mnist = load("mnist", data_dir=real_data("mnist"), download=False)
    for sample, whole in ((sample_digits("train"), mnist.train), (sample_digits("test"), mnist.test)):
        index = sample.attributes["mnist_index"]
        assert torch.equal(sample.images, whole.images[index])
        assert torch.equal(sample.labels, whole.labels[index])


def test_the_rule_of_choice_gives_the_digits_that_are_embedded():
    specification = importlib.util.spec_from_file_location("make_sample_digits", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    mnist = load("mnist", data_dir=real_data("mnist"), download=False)
    chosen = script.chosen_indices("test", mnist.test.labels.numpy())
    assert chosen.tolist() == sample_digits("test").attributes["mnist_index"].tolist()
