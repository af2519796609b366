"""The embedded samples: balanced, genuine, and made by the script that says so."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch

import torchcaps.data
from published_files import real_data
from torchcaps.data import TestSplit, TrainSplit, load, sample_digits
from torchcaps.data.registry import source_info
from torchcaps.data.sample import SAMPLES
from torchcaps.errors import DataError

FOLDER = Path(torchcaps.data.__file__).parent
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_samples.py"
ORIGINALS = pytest.mark.parametrize("original", sorted(SAMPLES))


@ORIGINALS
def test_a_sample_is_balanced_typed_and_says_what_it_is(original):
    source = load(SAMPLES[original], download=False)
    assert (type(source.train), type(source.test)) == (TrainSplit, TestSplit)
    assert source.train.images.shape == (1000, 1, 28, 28)
    assert source.train.class_counts(10) == [100] * 10
    assert source.test.class_counts(10) == [50] * 10
    assert source.is_sample
    assert (source.classes, source.licence) == (source_info(original).classes, source_info(original).licence)


def test_the_digits_alone():
    train, test = sample_digits("train"), sample_digits("test")
    source = load("mnist-sample")
    assert torch.equal(train.images, source.train.images)
    assert torch.equal(test.labels, source.test.labels)
    assert train.images.float().mean().item() == pytest.approx(33.3, abs=1.0)  # MNIST: 0.1307 · 255


def test_an_unknown_split_is_refused():
    with pytest.raises(DataError, match="'train' and 'test'"):
        sample_digits("validation")  # type: ignore[call-overload]


@pytest.mark.parametrize("damage", [b"", b"PK", "cut"])
def test_a_damaged_sample_is_said(tmp_path, monkeypatch, damage):
    whole = (FOLDER / "fashion-sample.npz").read_bytes()
    (tmp_path / "fashion-sample.npz").write_bytes(whole[: len(whole) // 2] if damage == "cut" else damage)
    monkeypatch.setattr("torchcaps.data.sample.resources.files", lambda _: tmp_path)
    with pytest.raises(DataError, match=r"fashion-sample\.npz .*install torchcaps anew"):
        load("fashion-sample")
    with pytest.raises(DataError, match=r"mnist-sample\.npz .*install torchcaps anew"):
        sample_digits("test")  # not there at all


@ORIGINALS
def test_the_file_is_small_and_attributed(original):
    file = FOLDER / f"{SAMPLES[original]}.npz"
    assert file.stat().st_size < 700_000
    with np.load(file, allow_pickle=False) as columns:
        attribution = str(columns["attribution"])
    words = {"mnist": ("LeCun", "Attribution-ShareAlike 3.0"), "fashion-mnist": ("Zalando", "MIT")}
    assert all(word in attribution for word in words[original])


@ORIGINALS
def test_every_picture_stands_in_the_original_under_its_index(original):
    sample, whole = load(SAMPLES[original]), load(original, data_dir=real_data(original), download=False)
    for part, split in ((sample.train, whole.train), (sample.test, whole.test)):
        index = part.attributes["original_index"]
        assert torch.equal(part.images, split.images[index])
        assert torch.equal(part.labels, split.labels[index])


@ORIGINALS
def test_the_rule_of_choice_gives_the_pictures_that_are_embedded(original):
    specification = importlib.util.spec_from_file_location("make_samples", SCRIPT)
    script = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(script)
    whole = load(original, data_dir=real_data(original), download=False)
    chosen = script.chosen_indices("test", whole.test.labels.numpy())
    assert chosen.tolist() == load(SAMPLES[original]).test.attributes["original_index"].tolist()
