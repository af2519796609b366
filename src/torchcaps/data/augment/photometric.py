"""Augmentations of brightness and contrast, and the standardisation that the CIFAR-10 recipe ends with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from torchcaps.data.augment.base import Augmentation, require
from torchcaps.data.random import RandomStream
from torchcaps.data.window import to_unit_float
from torchcaps.ranges import Number

__all__ = ["Brightness", "Contrast", "Standardize"]


def _unit_float(images: Tensor) -> Tensor:
    return images if images.is_floating_point() else to_unit_float(images)


@dataclass(frozen=True)
class Brightness(Augmentation):
    """Add one number to all pixels of a picture, up to ± ``levels`` of 255.

    ``clip`` keeps the result in 0 … 1. The authors' CIFAR-10 code uses 63 and does not clip.
    """

    levels: Annotated[float, Number(0, 255)] = 63.0
    clip: bool = True

    def __post_init__(self) -> None:
        require(self.levels >= 0, self, "levels must be 0 or more")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        limit = self.levels / 255
        images = _unit_float(images)
        added = random.uniform(counter, low=-limit, high=limit).to(images.dtype)  # [B, 1]
        brighter = images + added[..., None, None]
        return brighter.clamp(0, 1) if self.clip else brighter


@dataclass(frozen=True)
class Contrast(Augmentation):
    """Stretch each channel about its own mean by a factor between ``lower`` and ``upper``.

    ``clip`` keeps the result in 0 … 1. The authors' CIFAR-10 code uses 0.2 to 1.8 and does not clip.
    """

    lower: Annotated[float, Number(0, 1000)] = 0.2
    upper: Annotated[float, Number(0, 1000)] = 1.8
    clip: bool = True

    def __post_init__(self) -> None:
        require(0 <= self.lower <= self.upper, self, "0 ≤ lower ≤ upper must hold")

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        images = _unit_float(images)
        factor = random.uniform(counter, low=self.lower, high=self.upper).to(images.dtype)  # [B, 1]
        mean = images.mean((-2, -1), keepdim=True)
        stretched = (images - mean) * factor[..., None, None] + mean
        return stretched.clamp(0, 1) if self.clip else stretched


@dataclass(frozen=True)
class Standardize(Augmentation):
    """Each picture to mean 0 and standard deviation 1 over all its pixels, at test too.

    The deviation is taken as at least 1/√n grey levels of 255, n pixels, so that a flat picture becomes zero.
    """

    def __call__(self, images: Tensor, counter: Tensor, random: RandomStream) -> Tensor:
        return self.evaluate(images)

    def evaluate(self, images: Tensor) -> Tensor:
        images = _unit_float(images)
        centred = images - images.mean((1, 2, 3), keepdim=True)
        deviation = centred.square().mean((1, 2, 3), keepdim=True).sqrt()
        return centred / deviation.clamp(min=1 / (255 * math.sqrt(images.shape[1:].numel())))
