"""The digits that torchcaps carries with it: 1,000 + 500 of MNIST, for a first run without network or data.

Made by ``scripts/make_sample_digits.py``, which states the rule of choice. They are too few for a figure that
can stand beside a published one.
"""

from __future__ import annotations

from importlib import resources
from typing import Literal, overload

import numpy as np
import torch

from torchcaps.data.source import Source, TestSplit, TrainSplit
from torchcaps.errors import DataError

__all__ = ["SAMPLE_LICENCE", "sample_digits", "sample_source"]

SAMPLE_LICENCE = "CC BY-SA 3.0"


@overload
def sample_digits(split: Literal["train"] = "train") -> TrainSplit: ...
@overload
def sample_digits(split: Literal["test"]) -> TestSplit: ...
def sample_digits(split: Literal["train", "test"] = "train") -> TrainSplit | TestSplit:
    """The embedded digits of MNIST: 100 of each class to train, 50 of each class to test.

    Shape:
        images uint8 ``[1000, 1, 28, 28]`` or ``[500, 1, 28, 28]``; ``attributes["mnist_index"]`` says which digit
        of MNIST each one is.

    Example:
        >>> len(sample_digits("train")), len(sample_digits("test"))
        (1000, 500)
    """
    if split not in ("train", "test"):
        raise DataError(f"the sample has the splits 'train' and 'test', not {split!r}")
    with (
        resources.files("torchcaps.data").joinpath("sample_digits.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as columns,
    ):
        images = torch.from_numpy(columns[f"{split}_images"])[:, None]  # [N, 1, 28, 28]
        labels = torch.from_numpy(columns[f"{split}_labels"].astype(np.int64))
        attributes = {"mnist_index": torch.from_numpy(columns[f"{split}_indices"].astype(np.int64))}
    kind = TrainSplit if split == "train" else TestSplit
    return kind(images, labels, attributes=attributes)


def sample_source() -> Source:
    """Both splits of the sample as a :class:`Source` that is marked as a sample."""
    return Source(
        name="mnist-sample",
        train=sample_digits("train"),
        test=sample_digits("test"),
        classes=tuple("0123456789"),
        licence=SAMPLE_LICENCE,
        origin="embedded in torchcaps: 1,000 + 500 digits of MNIST (LeCun, Cortes)",
        is_sample=True,
    )
