"""From the checked bytes of a named data set to its splits: which file plays which part."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from torchcaps.data.info import SourceInfo
from torchcaps.data.readers.cifar import cifar_binary_split, cifar_python_split
from torchcaps.data.readers.idx import idx_split
from torchcaps.data.readers.matlab import affnist_split, coil20_splits, coil20_viewpoints, svhn_split
from torchcaps.data.readers.npz import chest_xray_splits, npz_splits
from torchcaps.data.readers.plain_arrays import parse_npz
from torchcaps.data.readers.smallnorb import smallnorb_split
from torchcaps.data.source import Split, TestSplit, TrainSplit, ValidationSplit
from torchcaps.data.splits import split_off_test
from torchcaps.errors import DataError

__all__ = ["Splits", "assemble", "centred_digits"]

Contents = Mapping[str, bytes]
Splits = tuple[TrainSplit, ValidationSplit | None, TestSplit | None]
AFFNIST_MARGIN = 6  # 28 + 2 · 6 = 40


def assemble(info: SourceInfo, contents: Contents) -> Splits:
    """Read the files of a named set, given in the order of the catalogue."""
    family = "emnist" if info.name.startswith("emnist-") else info.name
    return ASSEMBLERS[family](info, contents)


def _mnist_like(info: SourceInfo, contents: Contents) -> Splits:
    train_images, train_labels, test_images, test_labels = contents.values()
    train = idx_split(train_images, train_labels, TrainSplit, where=f"{info.name} train")
    return train, None, idx_split(test_images, test_labels, TestSplit, where=f"{info.name} test")


def _emnist(info: SourceInfo, contents: Contents) -> Splits:
    """The files of EMNIST hold the transpose of each picture, and number letters from 1."""
    first = 1 if info.name == "emnist-letters" else 0
    train_images, train_labels, test_images, test_labels = contents.values()
    train = idx_split(train_images, train_labels, TrainSplit, where=f"{info.name} train", transposed=True)
    test = idx_split(test_images, test_labels, TestSplit, where=f"{info.name} test", transposed=True)
    return TrainSplit(train.images, train.labels - first), None, TestSplit(test.images, test.labels - first)


def _notmnist(info: SourceInfo, contents: Contents) -> Splits:
    images, labels = contents.values()
    train, test = split_off_test(idx_split(images, labels, Split, where=info.name), 0.2)
    return train, None, test


def _cifar10(info: SourceInfo, contents: Contents) -> Splits:
    *train, test = contents.values()
    read = cifar_binary_split if "test_batch.bin" in contents else cifar_python_split
    return read(train, TrainSplit, where="CIFAR-10 train"), None, read([test], TestSplit, where="CIFAR-10 test")


def _svhn(info: SourceInfo, contents: Contents) -> Splits:
    train, test = contents.values()
    return svhn_split(train, TrainSplit, where="SVHN train"), None, svhn_split(test, TestSplit, where="SVHN test")


def _smallnorb(info: SourceInfo, contents: Contents) -> Splits:
    files = list(contents.values())
    train = smallnorb_split(files[0], files[1], files[2], TrainSplit, where="smallNORB training")
    return train, None, smallnorb_split(files[3], files[4], files[5], TestSplit, where="smallNORB testing")


def _coil20(info: SourceInfo, contents: Contents) -> Splits:
    (data,) = contents.values()
    train, test = coil20_viewpoints(data) if info.name == "coil20-azimuths" else coil20_splits(data)
    return train, None, test


def _pneumoniamnist(info: SourceInfo, contents: Contents) -> Splits:
    (data,) = contents.values()
    return npz_splits(parse_npz(data, info.name), info.name)


def _chest_xray(info: SourceInfo, contents: Contents) -> Splits:
    (data,) = contents.values()
    train, test = chest_xray_splits(parse_npz(data, info.name), info.name)
    return train, None, test


def _affnist(info: SourceInfo, contents: Contents) -> Splits:
    """The training half is MNIST itself, which the caller adds with :func:`centred_digits`."""
    (data,) = contents.values()
    test = affnist_split(data, TestSplit)
    nothing = TrainSplit(torch.zeros(0, *info.image_shape, dtype=torch.uint8), torch.zeros(0, dtype=torch.int64))
    return nothing, None, test


def centred_digits(digits: TrainSplit) -> TrainSplit:
    """MNIST digits in the middle of 40×40, as the untransformed files of affNIST hold them."""
    if digits.images.shape[1:] != (1, 28, 28):
        raise DataError(f"expected pictures of 1×28×28, found {list(digits.images.shape[1:])}")
    padded = torch.nn.functional.pad(digits.images, [AFFNIST_MARGIN] * 4)
    return TrainSplit(padded, digits.labels)


ASSEMBLERS: dict[str, Callable[[SourceInfo, Contents], Splits]] = {
    "mnist": _mnist_like,
    "fashion-mnist": _mnist_like,
    "kmnist": _mnist_like,
    "emnist": _emnist,
    "notmnist": _notmnist,
    "cifar10": _cifar10,
    "svhn": _svhn,
    "smallnorb": _smallnorb,
    "coil20": _coil20,
    "coil20-azimuths": _coil20,
    "pneumoniamnist": _pneumoniamnist,
    "chest-xray": _chest_xray,
    "affnist": _affnist,
}
