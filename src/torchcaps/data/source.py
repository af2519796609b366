"""What every data set looks like after reading: checked uint8 pictures, labels, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor

from torchcaps.data.repeats import Repeats
from torchcaps.errors import DataError

__all__ = ["Source", "Split", "TestSplit", "TrainSplit", "ValidationSplit"]

AnySplit = TypeVar("AnySplit", bound="Split")


@dataclass(frozen=True)
class Split:
    """Pictures and labels of one part of a data set.

    Shape:
        images: uint8 ``[N, C, H, W]``.
        labels: int64 ``[N]``, or bool ``[N, K]`` when a picture may show several classes.
        groups: int64 ``[N]`` or ``None``; examples of one group (one patient, say) never stand in two splits.
        attributes: further int64 or float columns ``[N]`` by name, for example ``azimuth``.

    ``files`` has the name of each picture's file, from the data folder on; ``None`` where one file holds many pictures.
    """

    images: Tensor
    labels: Tensor
    groups: Tensor | None = None
    attributes: Mapping[str, Tensor] = field(default_factory=dict)
    files: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise DataError(
                f"images must be uint8 [N, C, H, W], got {self.images.dtype} {list(self.images.shape)}; "
                "scale to 0…255 and add the channel dimension"
            )
        if (self.labels.dtype, self.labels.ndim) not in ((torch.int64, 1), (torch.bool, 2)):
            raise DataError(
                f"labels must be int64 [N] or bool [N, K], got {self.labels.dtype} {list(self.labels.shape)}"
            )
        columns: dict[str, Sized | None] = {"labels": self.labels, "groups": self.groups, "files": self.files}
        columns |= self.attributes
        for name, column in columns.items():
            if column is not None and len(column) != len(self.images):
                raise DataError(f"{len(self.images)} images but {len(column)} {name}; each picture needs one")

    def __len__(self) -> int:
        return len(self.images)

    def select(self, indices: Tensor, kind: type[AnySplit]) -> AnySplit:
        """The examples at ``indices`` (int64 ``[M]``), every column with them, as a split of type ``kind``."""
        return kind(
            images=self.images[indices],
            labels=self.labels[indices],
            groups=None if self.groups is None else self.groups[indices],
            attributes={name: column[indices] for name, column in self.attributes.items()},
            files=None if self.files is None else tuple(self.files[index] for index in indices.tolist()),
        )

    def class_counts(self, num_classes: int) -> list[int]:
        """How many examples show each class; an example with several classes counts for each of them."""
        if self.labels.ndim == 2:
            return [int(count) for count in self.labels.sum(dim=0)]
        return [int(count) for count in torch.bincount(self.labels, minlength=num_classes)]


class TrainSplit(Split):
    """Examples that training and model choice may use."""


class ValidationSplit(Split):
    """Examples held out of the training set, to make choices by; not to be trained on."""


class TestSplit(Split):
    """Examples for the last measurement only; loaders for training refuse this type."""

    __test__ = False  # not a pytest class


@dataclass(frozen=True)
class Source:
    """A data set, read and checked.

    ``validation`` is set only where the publisher defines one. ``split_rule`` says who divided the examples and how.
    ``skipped`` has a line for each file or folder that is left out, and why. ``repeats`` names images that are there
    twice, where each has a file of its own. ``is_sample`` marks data too small for a published figure.
    """

    name: str
    train: TrainSplit
    test: TestSplit | None
    classes: tuple[str, ...]
    licence: str
    origin: str
    is_sample: bool = False
    validation: ValidationSplit | None = None
    split_rule: str = "as published"
    skipped: tuple[str, ...] = ()
    repeats: Repeats = field(default_factory=Repeats)

    def __post_init__(self) -> None:
        for part, split in self.splits.items():
            if split.images.shape[1:] != self.train.images.shape[1:]:
                raise DataError(
                    f"{self.name}: training pictures are {list(self.train.images.shape[1:])}, {part} pictures "
                    f"{list(split.images.shape[1:])}; all must have one shape"
                )
            labels = split.labels
            if labels.ndim != self.train.labels.ndim:
                raise DataError(f"{self.name}: train and {part} must both have one class a picture, or both several")
            if labels.ndim == 2:
                in_range = labels.shape[1] == len(self.classes)
            else:
                in_range = not len(labels) or bool(((labels >= 0) & (labels < len(self.classes))).all())
            if not in_range:
                raise DataError(f"{self.name}: {part} labels do not fit its {len(self.classes)} classes")

    @property
    def splits(self) -> dict[str, Split]:
        """Every split that exists, by name."""
        candidates = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: split for name, split in candidates.items() if split is not None}

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of every picture."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def num_classes(self) -> int:
        return len(self.classes)
