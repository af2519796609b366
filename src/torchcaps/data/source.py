"""What every data set looks like after reading: checked uint8 pictures with labels, and where they came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from torchcaps.errors import DataError

__all__ = ["Source", "Split", "TestSplit", "TrainSplit"]


@dataclass(frozen=True)
class Split:
    """Pictures and labels of one part of a data set.

    Shape:
        images: uint8 ``[N, C, H, W]``.
        labels: int64 ``[N]``, or bool ``[N, K]`` when a picture may show several classes.
        groups: int64 ``[N]`` or ``None``; examples of one group (one patient, say) never stand in two splits.
        attributes: further int64 or float columns ``[N]`` by name, for example ``azimuth``.
    """

    images: Tensor
    labels: Tensor
    groups: Tensor | None = None
    attributes: Mapping[str, Tensor] = field(default_factory=dict)

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
        columns = {"labels": self.labels, **self.attributes}
        if self.groups is not None:
            columns["groups"] = self.groups
        for name, column in columns.items():
            if len(column) != len(self.images):
                raise DataError(f"{len(self.images)} images but {len(column)} {name}; each picture needs one")

    def __len__(self) -> int:
        return len(self.images)


class TrainSplit(Split):
    """Examples that training and model choice may use."""


class TestSplit(Split):
    """Examples for the last measurement only; loaders for training refuse this type."""

    __test__ = False  # not a pytest class


@dataclass(frozen=True)
class Source:
    """A data set, read and checked."""

    name: str
    train: TrainSplit
    test: TestSplit | None
    classes: tuple[str, ...]
    licence: str
    origin: str
    is_sample: bool = False

    def __post_init__(self) -> None:
        if self.test is not None and self.test.images.shape[1:] != self.train.images.shape[1:]:
            raise DataError(
                f"{self.name}: training pictures are {list(self.train.images.shape[1:])}, test pictures "
                f"{list(self.test.images.shape[1:])}; both must have one shape"
            )
        for split in filter(None, (self.train, self.test)):
            labels = split.labels
            if labels.ndim == 2:
                in_range = labels.shape[1] == len(self.classes)
            else:
                in_range = len(labels) == 0 or (
                    0 <= int(labels.min()) and int(labels.max()) < len(self.classes)
                )
            if not in_range:
                raise DataError(f"{self.name}: labels do not fit its {len(self.classes)} classes")

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of every picture."""
        channels, height, width = self.train.images.shape[1:]
        return channels, height, width

    @property
    def num_classes(self) -> int:
        return len(self.classes)
