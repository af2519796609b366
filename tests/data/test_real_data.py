"""Real data sets, where a machine has them: counts and histograms against the published figures."""

from __future__ import annotations

import os

import pytest
import torch

from published_files import real_data
from torchcaps.data import load
from torchcaps.data.catalog import CATALOG
from torchcaps.data.locate import locate

MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]


def test_mnist():
    mnist = load("mnist", data_dir=real_data("mnist"), download=False)
    assert mnist.train.class_counts(10) == MNIST_TRAIN
    assert mnist.test.class_counts(10) == MNIST_TEST
    assert mnist.train.images.float().mean().div(255).item() == pytest.approx(0.1307, abs=1e-4)
    assert mnist.train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]


def test_notmnist():
    letters = load("notmnist", data_dir=real_data("notmnist"), download=False)
    assert letters.train.class_counts(10) == [800] * 10
    assert letters.test.class_counts(10) == [200] * 10


def test_coil20():
    coil = load("coil20", data_dir=real_data("coil20"), download=False)
    assert coil.train.class_counts(20) == coil.test.class_counts(20) == [36] * 20
    assert not set(coil.train.attributes["azimuth"].tolist()) & set(coil.test.attributes["azimuth"].tolist())
    neighbours = coil.train.images[:36].float()  # one object, 10° apart: next views are alike, opposite ones less
    near = (neighbours - neighbours.roll(1, 0)).abs().mean()
    far = (neighbours - neighbours.roll(18, 0)).abs().mean()
    assert near < far


def test_pneumoniamnist():
    root = real_data("medical", "pneumoniamnist_reassembled.npz")
    source = load("pneumoniamnist", data_dir=root, download=False)
    assert source.train.class_counts(2) == [1214, 3494]
    assert source.validation.class_counts(2) == [135, 389]
    assert source.test.class_counts(2) == [234, 390]
    assert "not the official file" in source.origin


def test_chest_xrays_are_split_by_patient():
    source = load("chest-xray", data_dir=real_data("medical", "covid_cxr_paap_64.npz"), download=False)
    counts = [a + b for a, b in zip(source.train.class_counts(2), source.test.class_counts(2), strict=True)]
    assert counts == [189, 337]  # 538 rows less 12 without a finding
    patients = set(source.train.groups.tolist()), set(source.test.groups.tolist())
    assert not patients[0] & patients[1]
    assert len(patients[0] | patients[1]) == 345
    assert (len(source.train), len(source.test)) == (421, 105)


def test_a_folder_of_pictures_made_from_mnist(tmp_path):
    from PIL import Image

    mnist = load("mnist", data_dir=real_data("mnist"), download=False)
    for index in range(300):
        folder = tmp_path / str(int(mnist.train.labels[index]))
        folder.mkdir(exist_ok=True)
        Image.fromarray(mnist.train.images[index, 0].numpy()).save(folder / f"{index}.png")
    source = load(f"folder:{tmp_path}")
    assert source.image_shape == (1, 28, 28)
    assert len(source.train) + len(source.test) == 300
    total = int(source.train.images.sum()) + int(source.test.images.sum())
    assert total == int(mnist.train.images[:300].sum())


@pytest.mark.parametrize(("name", "train", "test"), [("fashion-mnist", 6000, 1000), ("cifar10", 5000, 1000)])
def test_sets_in_the_cache(name, train, test):
    root = os.environ.get("TORCHCAPS_DATA")
    if locate(CATALOG[name], root) is None:
        pytest.skip(f"{name} is not here; torchcaps data fetch {name} brings it")
    source = load(name, download=False)
    assert source.train.class_counts(10) == [train] * 10
    assert source.test.class_counts(10) == [test] * 10
    assert torch.equal(torch.tensor(source.image_shape), torch.tensor(CATALOG[name].image_shape))
