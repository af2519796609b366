"""The pictures that torchcaps carries with it, for a first run without network or data.

1,000 + 500 of MNIST and as many of Fashion-MNIST, made by ``scripts/make_samples.py``, which states the rule of choice.
They are too few for a figure that can stand beside a published one.
"""

from __future__ import annotations

from importlib import resources
from typing import Literal, overload

import numpy as np
import torch

from torchcaps.data.info import SourceInfo
from torchcaps.data.readers.plain_arrays import parse_npz
from torchcaps.data.source import AnySplit, Source, TestSplit, TrainSplit
from torchcaps.errors import DataError

__all__ = ["SAMPLES", "sample_digits", "sample_source"]

SAMPLES = {"mnist": "mnist-sample", "fashion-mnist": "fashion-sample"}  # by what they are a part of


@overload
def sample_digits(split: Literal["train"] = "train") -> TrainSplit: ...
@overload
def sample_digits(split: Literal["test"]) -> TestSplit: ...
def sample_digits(split: Literal["train", "test"] = "train") -> TrainSplit | TestSplit:
    """The embedded digits of MNIST: 100 of each class to train, 50 of each class to test.

    Shape:
        images uint8 ``[1000, 1, 28, 28]`` or ``[500, 1, 28, 28]``; ``attributes["original_index"]`` says which digit
        of MNIST each one is.

    Example:
        >>> len(sample_digits("train")), len(sample_digits("test"))
        (1000, 500)
    """
    if split not in ("train", "test"):
        raise DataError(f"the sample has the splits 'train' and 'test', not {split!r}")
    return _read("mnist-sample", TrainSplit) if split == "train" else _read("mnist-sample", TestSplit)


def sample_source(info: SourceInfo) -> Source:
    """Both splits of an embedded sample as a :class:`Source` that is marked as a sample."""
    return Source(
        name=info.name,
        train=_read(info.name, TrainSplit),
        test=_read(info.name, TestSplit),
        classes=info.classes,
        licence=info.licence,
        origin=f"embedded in torchcaps; {info.origin}",
        is_sample=True,
    )


def _read(name: str, kind: type[AnySplit]) -> AnySplit:
    split = "train" if kind is TrainSplit else "test"
    place = resources.files("torchcaps.data").joinpath(f"{name}.npz")
    try:
        columns = parse_npz(place.read_bytes(), place.name)
        images = torch.from_numpy(columns[f"{split}_images"])[:, None]  # [N, 1, 28, 28]
        labels = torch.from_numpy(columns[f"{split}_labels"].astype(np.int64))
        attributes = {"original_index": torch.from_numpy(columns[f"{split}_indices"].astype(np.int64))}
    except (OSError, DataError, KeyError) as error:
        raise DataError(f"{place} comes with torchcaps and cannot be read ({error}); install torchcaps anew") from error
    return kind(images, labels, attributes=attributes)
